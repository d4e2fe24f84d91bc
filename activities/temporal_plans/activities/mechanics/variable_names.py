"""Names of environment variables."""

import re


def variable_name(text: str) -> str:
    """Return a text as part of a variable's name: ``SERVER_XML`` for ``server.xml``."""
    return re.sub(r"[^A-Z0-9]", "_", text.upper())
