"""The option ``--status``: statuses of plans, and the ways in which their workflows end."""

from collections.abc import Iterable

import typer

from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.names import suggestion

_KNOWN = {status.value for status in Status} | {
    ended.value.upper() for ended in Ended if ended not in (Ended.COMPLETED, Ended.CONTINUED_AS_NEW)
}


def statuses_of(texts: Iterable[str]) -> set[str]:
    """Return the statuses, in capitals: those of plans, and FAILED, CANCELLED, TERMINATED, TIMED
    OUT. Raises typer.BadParameter for another word."""
    words = (text.strip().upper().replace("-", " ").replace("_", " ") for text in texts)
    wanted = {"IN_PROGRESS" if word == "IN PROGRESS" else word for word in words}
    for text in sorted(wanted - _KNOWN):
        raise typer.BadParameter(
            f"{text!r} is not a status of plans; {suggestion(text, _KNOWN)}", param_hint="--status"
        )
    return wanted
