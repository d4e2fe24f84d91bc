"""Messages between an environment at its hub, the process of its spoke, and the spoke's record."""

from typing import Annotated

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.names import EntityName, EnvironmentName, Text
from temporal_plans.domain.fleets.spokes import SpokeInfo, Token
from temporal_plans.domain.fleets.taken import TakenEnd, TakenPlan, TakenRecord
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue, Duration, Name
from temporal_plans.messages.fleets.names import environment_id
from temporal_plans.messages.fleets.plans import ChangeOrder
from temporal_plans.messages.fleets.reports import EntityReport
from temporal_plans.messages.plans import CommandLog

NumberAtSpoke = Annotated[int, Field(ge=0, le=10**9)]
"""The number of a plan, as a spoke says it. The environment goes on from the highest one, and has
room for later numbers."""

REPORTED_LIMIT = 100
"""Plans, or entities, in one report."""


def environment_queue(environment: str) -> str:
    """Return the task queue of the hub that the spoke of an environment polls."""
    return environment_id(environment)


def spoke_id(environment: str) -> str:
    """Return the workflow id of the record of a spoke, which is also the task queue of its server
    that its process polls."""
    return f"spoke/{environment}"


# --- from a spoke to its environment --------------------------------------------------------------


class RegisterSpoke(CompactValue):
    """Update ``register_spoke`` of an Environment."""

    info: SpokeInfo


class SpokeAccepted(CompactValue):
    """Answer of ``register_spoke``. ``starter`` is the first run id of the environment."""

    starter: Name


class PlanAtSpoke(CompactValue):
    """A plan as its spoke knows it. ``progress`` are its steps that are at work or in error."""

    entity: EntityName
    number: NumberAtSpoke
    at: AwareDatetime
    started: bool = False
    lost: Text = ""
    end: TakenEnd | None = None
    progress: tuple[Text, ...] = Field(default=(), max_length=10)


class SpokeReport(CompressibleValue):
    """Update ``spoke_report`` of an Environment, and input of the activity ``report_to_hub``."""

    lineage: Token | None = None
    record: Token
    starter: Name
    plans: dict[str, PlanAtSpoke] = Field(default={}, max_length=REPORTED_LIMIT)
    entities: tuple[EntityReport, ...] = Field(default=(), max_length=REPORTED_LIMIT)


class SpokeAnswer(CompactValue):
    """Answer of ``spoke_report``: plans whose end is recorded, and plans that are to end."""

    settled: tuple[str, ...] = Field(default=(), max_length=REPORTED_LIMIT)
    unwanted: tuple[str, ...] = Field(default=(), max_length=REPORTED_LIMIT)


# --- from an environment to its spoke -------------------------------------------------------------


class WatchSpoke(CompactValue):
    """Input of the activity ``watch_spoke``: it heartbeats as long as the spoke is there."""

    boot: Token
    heartbeat: Duration


class SpokeOrder(CompactValue):
    """Input of the activity ``take_order``, and of the update ``take`` of a Spoke: a plan that the
    spoke of this lineage and record is to carry out."""

    lineage: Token
    record: Token
    order: ChangeOrder


class SpokeEnd(CompactValue):
    """Input of the activity ``end_order``, and of the update ``end`` of a Spoke: a plan is to end,
    and is not started any more when it was not. ``untaken``: only one that was not taken ends."""

    lineage: Token
    record: Token
    starter: Name
    entity: EntityName
    number: NumberAtSpoke
    at: AwareDatetime
    why: Text = ""
    untaken: bool = False


class Taken(CompactValue):
    """Answer of ``take_order``. ``taken``: the plan is in the record. Else ``highest`` is the
    highest number that was taken of the entity, and ``why`` says what was wrong. ``unbound``: the
    record does not know this environment before its process has registered."""

    taken: bool
    unbound: bool = False
    highest: NumberAtSpoke = 0
    why: Text = ""


# --- the record of a spoke ------------------------------------------------------------------------


class SpokeBind(CompactValue):
    """Update ``bind`` of a Spoke: the first run id of its environment, when it registers."""

    starter: Name


class SpokeIdentity(CompactValue):
    """Answer of the query ``identity`` of a Spoke: the id of the record."""

    record: Token


class SpokeState(CompressibleValue):
    """What a Spoke carries from run to run. ``orders`` are those of plans that were not started;
    ``entities`` are reports that the hub has not acknowledged."""

    record: TakenRecord = TakenRecord()
    orders: dict[str, ChangeOrder] = {}
    entities: dict[str, EntityReport] = {}
    log: CommandLog = CommandLog()


class SpokeInput(CompactValue):
    """Input of the Spoke workflow."""

    environment: EnvironmentName
    history_limit: int = Field(default=2000, ge=50)
    state: SpokeState | None = None


class SpokeStatus(CompressibleValue):
    """Answer of the query ``status`` of a Spoke: the plans that the hub has not acknowledged."""

    environment: str
    starter: str = ""
    plans: tuple[TakenPlan, ...] = ()
