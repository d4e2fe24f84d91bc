"""The spoke of an environment as its hub knows it: which process may act for the environment."""

from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, StringConstraints

from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.refusal import Code, Reason, Refusal

Token = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class SpokeInfo(CompactValue):
    """What a spoke says of itself. ``lineage`` is the id of its work directory, ``record`` that of
    the record of plans on its server, ``boot`` that of its process."""

    lineage: Token
    record: Token
    boot: Token
    hostname: Annotated[str, StringConstraints(max_length=255)] = ""
    version: Annotated[str, StringConstraints(max_length=100)] = ""

    def is_other_than(self, other: "SpokeInfo") -> bool:
        """Whether the two are different spokes, and not starts of the same one."""
        return (self.lineage, self.record) != (other.lineage, other.record)


class SpokeStanding(CompactValue):
    """The spoke that is registered. ``since``: when it was connected, or last heard of when it is
    ``away``."""

    info: SpokeInfo
    since: AwareDatetime
    away: bool = False


def registration_refusal(known: SpokeStanding | None, info: SpokeInfo) -> Refusal | None:
    """Return why a spoke may not register: another one acts for the environment."""
    if known is None or known.away or not info.is_other_than(known.info):
        return None
    host = f" on {known.info.hostname}" if known.info.hostname else ""
    reason = Reason(
        field="environment",
        problem=f"another spoke{host} is connected since {known.since:%Y-%m-%d %H:%M:%S %Z}",
        fix="stop that spoke, or start this one with its work directory and its server",
    )
    return Refusal(code=Code.NAME_TAKEN, reasons=(reason,))


def registered(known: SpokeStanding | None, info: SpokeInfo, now: datetime) -> SpokeStanding:
    """Return the standing after a registration that was not refused."""
    stays = known is not None and not known.away and not info.is_other_than(known.info)
    return SpokeStanding(info=info, since=known.since if known and stays else now)


def stranger_refusal(known: SpokeStanding | None, lineage: str, record: str) -> Refusal | None:
    """Return why a message of a spoke is not accepted: it is not the registered one."""
    if known is not None and (known.info.lineage, known.info.record) == (lineage, record):
        return None
    text = "no spoke is registered" if known is None else "another spoke has replaced this one"
    return Refusal.of(Code.SUPERSEDED, text, field="environment")
