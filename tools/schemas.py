"""The JSON Schemas that stand in ``docs/schemas``, for readers and for editors.

``make docs`` writes them; ``tests/unit/test_documents.py`` fails when they are out of date.
"""

import json
from typing import Literal

from temporal_plans.loading.schema import json_schema
from tools.sections import DOCS

KINDS: tuple[Literal["fleet", "fleet-decision"], ...] = ("fleet", "fleet-decision")
FOLDER = DOCS / "schemas"


def text_of(kind: Literal["fleet", "fleet-decision"]) -> str:
    """Return the text of the file of a schema."""
    return json.dumps(json_schema(kind), indent=2, ensure_ascii=False) + "\n"


def write() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for kind in KINDS:
        (FOLDER / f"{kind}.schema.json").write_text(text_of(kind), encoding="utf-8")
