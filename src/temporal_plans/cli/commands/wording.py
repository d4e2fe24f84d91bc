"""The words of usage errors."""

from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from pydantic import ValidationError

    from temporal_plans.domain.values.refusal import Reason


class WordedCommand(TyperCommand):
    """A command that tells about a wrong value of an option as our files and messages do.

    Typer passes on the text of pydantic: "Input should be a valid integer, unable to parse string
    as an integer".
    """

    def make_context(self, *args: Any, **options: Any) -> Any:
        try:
            return super().make_context(*args, **options)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            if isinstance(error.__cause__, ValidationError):
                error.message = _in_our_words(error.__cause__)
            raise


def _in_our_words(error: "ValidationError") -> str:
    from pydantic import BaseModel

    from temporal_plans.domain.values.complaints import complaints

    return "; ".join(str(_of_value(one)) for one in complaints(error, BaseModel))


def _of_value(reason: "Reason") -> "Reason":
    """Return the reason without what the usage error says itself: the option, and its value where
    the problem quotes it."""
    problem = reason.problem.removesuffix(".")
    value = None if repr(reason.value) in problem else reason.value
    return reason.but(field="", problem=problem, value=value)
