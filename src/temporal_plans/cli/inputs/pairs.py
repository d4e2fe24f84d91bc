"""``NAME=VALUE`` arguments."""

from collections.abc import Iterable

import typer


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Return the values by name, split at the first ``=``; the last value of a name wins.

    Raises typer.BadParameter, a usage error, for a text that is not NAME=VALUE.
    """
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(
                f"{text!r}: must have one variable name and one variable value per definition, "
                "as NAME=VALUE",
                param_hint=option,
            )
        values[name.strip()] = value
    return values
