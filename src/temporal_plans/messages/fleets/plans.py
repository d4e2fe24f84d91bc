"""Plans that environments issue: the orders, how they stand, and how they end."""

from typing import Any

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.names import (
    ClusterName,
    EntityName,
    EnvironmentName,
    ProductName,
    ShortName,
    Text,
)
from temporal_plans.domain.fleets.plans import EndStatus, EntityVersion, Intent, PlanKind
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue, Name, WorkflowId
from temporal_plans.messages.fleets.names import fleet_plan_id

PLANS_KEPT = 500
"""Ended plans that an environment lists."""


class IssuedPlan(CompactValue):
    """A plan that was issued and has not ended: the environment's side of ``ActivePlan``.

    ``started``: its workflow was started; ``ending``: why it was asked to end; ``failed``: it rests
    in ERROR; ``closed``: it has ended, and its result is read next. ``kind`` is the kind of the
    entity, ``product`` its product: both may be edited meanwhile. ``spoke`` is the record of the
    spoke that carries it out, ``progress`` what that reports of its steps; empty for a plan here.
    ``by`` and ``reason`` are those of the command that it carries out.
    """

    number: int
    kind: str
    product: ProductName
    started: bool = False
    ending: str = ""
    asked: bool = False
    failed: bool = False
    closed: bool = False
    lost: str = ""
    spoke: str = Field(default="", max_length=100)
    progress: tuple[Text, ...] = Field(default=(), max_length=10)
    by: Text = ""
    reason: Text = ""


class PlanRow(CompactValue):
    """A plan in the list of an environment. ``status``: that of the running plan, or how it
    ended. ``by`` and ``reason`` are those of the command that it carries out. ``progress``: what a
    spoke reports of the steps of a running plan."""

    entity: str
    number: int
    plan_id: str
    kind: PlanKind
    intent: Intent
    from_version: str | None = None
    to: str | None = None
    status: str
    issued_at: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    errors: tuple[Text, ...] = ()
    progress: tuple[Text, ...] = ()
    by: Text = ""
    reason: Text = ""


class PlansQuery(CompactValue):
    """Argument of the query ``plans``: those of an entity, or all."""

    entity: str = Field(default="", max_length=200)


class PlanRows(CompressibleValue):
    """Answer of the query ``plans``, newest first."""

    rows: tuple[PlanRow, ...] = ()


class ChangeOrder(CompactValue):
    """Input of the activity ``issue_plan``: a plan as decided, with everything that its steps need.

    ``config`` is the configuration of the target, ``environment_config`` that of the environment.
    ``cluster`` and ``namespace`` are where the settings want a package; None: they do not say.
    ``starter`` is the first run id of the environment's workflow, ``owner`` its id; at a spoke they
    are those of its record. ``contents`` has the digests of the files of releases that are in the
    content store already, by version: no product is asked for them.
    """

    environment: EnvironmentName
    entity: EntityName
    entity_kind: str = Field(max_length=100)
    product: ProductName
    number: int
    kind: PlanKind
    intent: Intent
    before: EntityVersion = EntityVersion()
    to: EntityVersion = EntityVersion()
    config: dict[str, Any] = {}
    environment_config: dict[str, Any] = {}
    cluster: ClusterName | None = None
    namespace: ShortName | None = None
    owner: WorkflowId
    starter: Name
    at: AwareDatetime
    contents: dict[VersionText, str] = Field(default={}, max_length=2)

    @property
    def plan_id(self) -> str:
        return fleet_plan_id(self.environment, self.entity, self.number)


class PlanOutcomeQuery(CompactValue):
    """Input of the activity ``plan_outcome``: a plan that has ended, as its environment started
    it."""

    plan_id: WorkflowId
    number: int
    starter: Name


class PlanOutcome(CompactValue):
    """Result of the activity ``plan_outcome``. Without ``status`` nothing is known; ``lost`` says
    why. ``changed``: steps of the change had begun. ``open``: it has not ended after all."""

    status: EndStatus | None = None
    errors: tuple[Text, ...] = Field(default=(), max_length=20)
    changed: bool = False
    lost: Text = ""
    open: bool = False
