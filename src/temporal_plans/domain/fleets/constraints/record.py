"""What every constraint says about itself.

A constraint is one file with one rule and its record, and one line in ``CONSTRAINTS``. Its row says
for each reason of a plan whether the rule applies, is ignored (its answer is shown and does not
count) or has no meaning.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from temporal_plans.domain.constraints.rule import Rule
from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.plans import Intent
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


class Stage(StrEnum):
    """What a constraint decides: whether settings count at all, which release can be chosen, or
    when the chosen plan may begin."""

    INPUT = "input"
    TARGET = "target"
    ISSUE = "issue"


COLUMNS: Mapping[Intent, str] = MappingProxyType(
    {
        Intent.INSTALL: "IN",
        Intent.UPGRADE: "UP",
        Intent.CONFIG: "CF",
        Intent.SECRET: "CF",
        Intent.UNINSTALL: "UN",
        Intent.RECALL_ROLL_OFF: "RO",
        Intent.ROLLBACK: "RB",
        Intent.BREAK_GLASS: "CM",
    }
)
"""The column of a row for each intent."""


def unchanging(_proposal: Proposal, _world: World, _now: datetime, /) -> datetime | None:
    """The answer does not change with time."""
    return None


def checked(_proposal: Proposal, _world: World, _now: datetime, /) -> str:
    """Everything that the rule needs is known."""
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Constraint:
    """A constraint. ``applies`` and ``ignored`` are its row: columns separated by blanks.

    ``next_change`` returns the next time at which the answer may change by itself, whatever it is
    now. ``unchecked`` returns why the rule can't judge a plan that it lets through, empty when it
    can. ``who_can_act`` are the roles that can cure a refusal.
    """

    id: str
    title: str
    stage: Stage
    rule: Rule[Proposal, World]
    applies: str
    ignored: str = ""
    next_change: Callable[[Proposal, World, datetime], datetime | None] = unchanging
    unchecked: Callable[[Proposal, World, datetime], str] = checked
    who_can_act: tuple[str, ...] = ()
    _applies: frozenset[Intent] = field(init=False, repr=False)
    _ignored: frozenset[Intent] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_applies", _intents(self.applies))
        object.__setattr__(self, "_ignored", _intents(self.ignored))

    def applies_to(self, intent: Intent) -> bool:
        return intent in self._applies

    def is_ignored_by(self, intent: Intent) -> bool:
        return intent in self._ignored


def _intents(columns: str) -> frozenset[Intent]:
    wanted = set(columns.split())
    if unknown := wanted - set(COLUMNS.values()):
        raise ValueError(f"unknown columns {sorted(unknown)}")
    return frozenset(intent for intent, column in COLUMNS.items() if column in wanted)


def refused(
    code: FleetCode,
    *reasons: Reason,
    cure: str = "",
    again: datetime | None = None,
) -> Refusal:
    """Return the refusal of a constraint; the values of its reasons are the decision's data."""
    return Refusal(code=code, reasons=reasons, cure=cure, again=again)
