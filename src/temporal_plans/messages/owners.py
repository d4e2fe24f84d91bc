"""Messages between an owner of plans, its plans, and clients."""

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, ConfigDict, Field

from temporal_plans.domain.owners.rollout import Rollout
from temporal_plans.domain.owners.runs import RunHistory
from temporal_plans.domain.plans.commands import Command, Outcome, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.malformed import SignalArgument
from temporal_plans.messages.plans import (
    CommandLog,
    FirstCommand,
    LeaseGrant,
    PlanFaults,
    PlanInput,
    PlanRevision,
    Supersede,
)
from temporal_plans.messages.tasks import TaskStatuses

PACKAGE_TYPE = "Instance"
"""The workflow type of services that are packages."""

SERVICE_TYPES = ("Service", PACKAGE_TYPE)
"""The workflow types of services, whose ids are ``service/<name>``."""

OWNER_TYPES = (*SERVICE_TYPES, "Environment")
"""The workflow types of owners of plans, for list queries."""


def _query(types: tuple[str, ...]) -> str:
    return f"WorkflowType IN ({', '.join(repr(name) for name in types)})"


SERVICES_QUERY, OWNERS_QUERY = _query(SERVICE_TYPES), _query(OWNER_TYPES)
"""The list queries that find all services, and all owners."""


class PlanRecord(CompactValue):
    """A service's record of one of its plans.

    ``run`` is the number of its starts; ``superseded``: it ended because another run took its
    place; ``dropped``: the service no longer has this plan, and its workflow was asked to end;
    ``resting`` and ``stopped`` as in PlanReport.
    """

    name: str
    workflow_id: str
    priority: int
    status: Status = Status.PENDING
    run: int = 0
    open: bool = False
    changed: datetime | None = None
    superseded: bool = False
    dropped: bool = False
    resting: bool = False
    stopped: bool = False


class StartPlan(Command):
    """Argument of the Service's update ``start_plan``: start a new run of a plan that has ended.

    The new run begins in the state in which the last one ended, with this command: ``start``, or
    ``restart`` of the plan, a phase or a step.
    """

    plan: str
    verb: Literal[Verb.START, Verb.RESTART] = Verb.START


class PlanBegin(CompactValue):
    """A pending start of a plan, which must wait until the plan's previous run has ended.

    ``first``: the new run begins in the state in which the previous one ended, with this command.
    ``interrupted``: it begins WAITING. ``forced`` are the steps (``phase/step``) that stay
    complete because an operator forced them in the previous run, which deployed the configuration
    ``former``. ``arguments`` are values of the plan's parameters for this run; a run that begins
    with ``first`` has them in its command. ``what`` is the description of the start in the run
    history.
    """

    first: FirstCommand | None = None
    interrupted: bool = False
    rollout: Rollout = Rollout()
    forced: tuple[str, ...] = ()
    former: str = ""
    arguments: dict[str, str] = {}
    by: str = ""
    reason: str = ""
    what: str = ""


class PlanStart(CompressibleValue):
    """Input of the activity ``start_plan``; idempotent by ``run`` and ``starter``.

    ``starter`` is the first run id of the Service that starts the plan, ``at`` the time of the
    start: a Service that was reset assigns the same run numbers again. ``keep_log``: the commands
    to the plan's previous runs stay in its log. ``rivals`` are all plans that the owner may have,
    in the first start of an owner: those of a terminated owner of its name end before.
    """

    workflow_id: str
    run: int
    starter: str = ""
    at: AwareDatetime | None = None
    keep_log: bool = False
    rivals: tuple[str, ...] = ()
    input: PlanInput


class OpenPlans(CompactValue):
    """Input of the activity ``closed_plans``: plan workflows that the owner takes for open."""

    workflow_ids: tuple[str, ...]


class ClosedPlans(CompactValue):
    """Result of the activity ``closed_plans``: the plan workflows that are closed."""

    workflow_ids: tuple[str, ...] = ()


class UninstallRequest(CompactValue):
    """Argument of an owner's update and signal ``uninstall``: remove it permanently, with all that
    it has. Of a package, claims of its pods stay unless ``volumes``; with ``force`` its own plan
    for this is left out, and superseded where it runs."""

    volumes: bool = False
    force: bool = False
    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)


class UninstallMessage(UninstallRequest, SignalArgument):
    """The request of an uninstall that arrives as a signal."""


Message = LeaseGrant | TaskStatuses | Supersede | PlanFaults | PlanRevision
"""A signal's argument from a Service to its plans, phases and steps."""


class Unsent(CompactValue):
    """A signal that a run of the Service left to its successor to send. It may arrive twice."""

    receiver: str
    signal: str
    message: Message


class OwnerState(CompactValue):
    """The state of plans that an owner's workflow carries over when it continues as new.

    ``pending`` are plans whose start waits, ``starting`` those that are being started, ``unsent``
    the signals that the previous run left.
    """

    plans: dict[str, PlanRecord] = {}
    pending: dict[str, PlanBegin] = {}
    starting: tuple[PlanStart, ...] = ()
    runs: RunHistory = RunHistory()
    uninstalling: bool = False
    log: CommandLog = CommandLog()
    unsent: tuple[Unsent, ...] = ()


# --- answers to clients that have a common part for all owners with the id of a service ----------


class OwnerStatus(CompressibleValue):
    """The common part of the answers to the query ``status``. ``errors`` are the reasons for which
    the newest configuration was refused, until another is deployed; ``trouble`` is what is wrong
    with what it has while no plan of it runs, in a line."""

    name: str
    config_id: str
    number: int = 1
    errors: tuple[str, ...] = ()
    trouble: str = ""
    uninstalling: bool = False
    configs: tuple[str, ...] = ()
    plans: tuple[PlanRecord, ...] = ()


class CommonStatus(OwnerStatus):
    """The same, read from the answer of any owner. ``content`` is what the service is made of."""

    model_config = ConfigDict(extra="ignore")

    content: Literal["service", "package"] = "service"


class DeployAnswer(CompressibleValue):
    """The common part of the answers to the updates ``deploy`` and ``rollback``: the configuration
    in force, the plan that carries the change out (empty without one), and the outcome."""

    config_id: str
    plan: str
    outcome: Outcome
    number: int = 0


class OwnerResult(CompressibleValue):
    """Result of an owner's workflow, which ends when it is uninstalled. ``content`` as in
    CommonStatus."""

    name: str
    content: Literal["service", "package"] = "service"
    log: CommandLog = CommandLog()
    runs: RunHistory = RunHistory()


class Rollback(CompactValue):
    """Argument of the updates ``rollback``: deploy an earlier configuration again. ``config``: its
    id or its number."""

    config: str
    rollout: Rollout = Rollout()
    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)
