"""The Python that documents print."""

import re
from pathlib import Path
from typing import Any

_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def carried_out(page: Path) -> dict[str, Any]:
    """What a page's Python defines: its blocks, one after the other, as one module."""
    names: dict[str, Any] = {"__name__": page.stem}
    for code in _PYTHON.findall(page.read_text()):
        exec(compile(code, page.name, "exec"), names)
    return names
