"""What is decided of each entity, as ``fleet decide --json`` prints it."""

from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, ConfigDict, Field

from temporal_plans.domain.fleets.plans import ActiveStatus, EntityConfig, Intent, PlanKind
from temporal_plans.domain.fleets.suppressions import Suppression
from temporal_plans.domain.values.model import Value


class Outcome(StrEnum):
    """``BLOCKED`` waits for something that may happen without a change of the entity's settings or
    a new release; at ``NO_WORK`` there is nothing to wait for."""

    ISSUE = "ISSUE"
    BLOCKED = "BLOCKED"
    NO_WORK = "NO_WORK"
    ACTIVE = "ACTIVE"
    UNMANAGED = "UNMANAGED"


class VerdictState(StrEnum):
    OK = "OK"
    FAILED = "FAILED"
    UNCHECKED = "UNCHECKED"
    IGNORED = "IGNORED"


class Verdict(Value):
    """The answer of one constraint. ``data`` has the found values by the field that they are of."""

    id: str = Field(description="The constraint, K1 to K30, or a developer's own.")
    title: str = Field(description="What it asks for.")
    state: VerdictState = Field(
        description="`UNCHECKED`: facts are missing, and it lets the plan through; `IGNORED`: it "
        "does not hold, and does not count for this plan."
    )
    code: str = Field(default="", description="Why it does not hold, for programs.")
    message: str = Field(default="", description="Why it does not hold, for people.")
    data: dict[str, list[Any]] = Field(default={}, description="What was found, by field.")
    next_change_at: AwareDatetime | None = Field(
        default=None, description="When the answer may change by itself."
    )
    actions: tuple[str, ...] = Field(default=(), description="What would cure it.")
    who_can_act: tuple[str, ...] = Field(default=(), description="Roles that may do so.")


class PlanView(Value):
    """A plan, as decided."""

    model_config = ConfigDict(serialize_by_alias=True)

    id: str = Field(description="`<environment>/<entity>/<number>`.")
    number: int = Field(description="Its number, per entity.")
    kind: PlanKind = Field(description="What it changes.")
    intent: Intent = Field(description="Why it is made.")
    from_: str | None = Field(
        default=None,
        validation_alias="from",
        serialization_alias="from",
        description="The installed version; null when nothing is installed.",
    )
    to: str | None = Field(
        default=None, description="The version after it; null when it uninstalls."
    )
    config: EntityConfig = Field(default=EntityConfig(), description="The configuration after it.")
    config_key: str | None = Field(
        default=None, description="The key of the block of configuration after it."
    )
    secrets: tuple[str, ...] = Field(default=(), description="Pending secrets that it applies.")
    downtime: bool = Field(default=False, description="Whether it needs downtime.")
    proposed_at: AwareDatetime | None = Field(
        default=None, description="When it was first proposed."
    )
    blocked_since: AwareDatetime | None = Field(
        default=None, description="Since when constraints hold it back."
    )
    skipped: tuple[str, ...] = Field(
        default=(), description="Newer versions passed over for lack of artifacts."
    )
    command: str | None = Field(default=None, description="The id of the command that asks for it.")
    risk: float | None = Field(
        default=None,
        description="The risk of its release, of one that is recalled for vulnerabilities.",
    )
    current_risk: float | None = Field(
        default=None, description="Beside `risk`: that of the installed release."
    )
    status: ActiveStatus | None = Field(
        default=None,
        description="How far it is when it was issued; null for one that was not. `UNKNOWN`: "
        "nothing is known of it; `CANCELLING`: it was asked to end.",
    )


class RejectedTarget(Value):
    """A release that was not chosen."""

    version: str = Field(description="Its version.")
    code: str = Field(description="The first reason, for programs.")
    codes: tuple[str, ...] = Field(description="All reasons.")
    message: str = Field(description="The reasons, for people.")
    data: dict[str, list[Any]] = Field(default={}, description="What was found, by field.")


class Note(Value):
    """A remark about an entity."""

    code: str = Field(description="For programs.")
    message: str = Field(description="For people.")


class WaitingPlan(Value):
    """A plan that waits beside the one that is issued or runs."""

    plan: PlanView = Field(description="The plan.")
    constraints: tuple[Verdict, ...] = Field(description="What every constraint says of it.")


class DiscardedPlan(Value):
    """A plan that waited and is not wanted as it was."""

    number: int = Field(description="Its number.")
    reason: str = Field(
        description="`SUPERSEDED` by another, `BLOCKED_4H` by another after it was blocked for the "
        "time after which plans are computed again, or `NOT_NEEDED`."
    )


REJECTED_LIMIT = 20
"""How many rejected releases a decision names, newest first."""


class Decision(Value):
    """What is decided of one entity."""

    entity: str = Field(description="`<environment>/<entity>`.")
    at: AwareDatetime = Field(description="The time of the decision.")
    outcome: Outcome = Field(
        description="`ISSUE`: the plan may begin; `BLOCKED`: it waits, or a release would be wanted"
        " that can't be used now; `NO_WORK`: there is nothing to do; `ACTIVE`: a plan runs; "
        "`UNMANAGED`: the entity has no settings."
    )
    code: str = Field(default="", description="The first reason; empty when a plan is issued.")
    installed: str | None = Field(
        default=None, description="The installed version; null when nothing is installed."
    )
    plan: PlanView | None = Field(default=None, description="The plan.")
    wanted: str | None = Field(
        default=None, description="The newest release that could not be chosen, without a plan."
    )
    constraints: tuple[Verdict, ...] = Field(
        default=(), description="What every constraint says of the plan."
    )
    rejected_targets: tuple[RejectedTarget, ...] = Field(
        default=(), description="Newer releases that were not chosen, newest first."
    )
    rejected_count: int = Field(default=0, description="How many those are in all.")
    notes: tuple[Note, ...] = Field(default=(), description="Remarks.")
    waiting: WaitingPlan | None = Field(default=None, description="A plan that waits beside.")
    discarded: DiscardedPlan | None = Field(
        default=None, description="The plan that waited before, when it is not the same."
    )
    cancel: str | None = Field(
        default=None, description="Why the running plan is to be cancelled, for programs."
    )
    next_evaluation_at: AwareDatetime | None = Field(
        default=None, description="When it is decided again, if nothing else happens."
    )


class ThresholdChange(Value):
    """What the count of failures does to the suppression of the whole environment."""

    created: Suppression | None = Field(default=None, description="The suppression that begins.")
    removed: tuple[str, ...] = Field(default=(), description="The ids of those that end.")


class FleetDecision(Value):
    """What is decided of an environment at a time."""

    environment: str = Field(description="The environment.")
    at: AwareDatetime = Field(description="The time of the decision.")
    decisions: tuple[Decision, ...] = Field(description="The decisions, by entity.")
    threshold: ThresholdChange = Field(
        default=ThresholdChange(), description="The change of the environment's suppression."
    )
    next_wakeup: AwareDatetime | None = Field(
        default=None, description="When to decide again, if nothing happens before."
    )


class UnmetExpectation(Value):
    """A decision that is not as a document expects it."""

    source: str = Field(description="The file.")
    line: int | None = Field(default=None, description="The line, from 1.")
    message: str = Field(description="What is not as expected.")
