"""What is asked: a plan, its phases, their steps, and the work of a step.

The same values are a plan file (``loading.plans``), the input of the Plan workflow, and what plan
generation makes of a service.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from temporal_plans.domain.model import CompactValue, Duration
from temporal_plans.domain.plan_file import normalise
from temporal_plans.domain.service import Goal, PodSpec, ResourceSet, TaskSpec


class StrategySpec(CompactValue):
    """A strategy by name and settings: ``serial``, or ``{name: max-parallel, limit: 3}``.

    ``limit`` bounds ``max-parallel``; ``waves`` are counts (3) or shares ("25%") of all children
    for ``waves``; ``proceeds`` is how many continues a canary asks for; ``options`` belong to
    strategies that users register.
    """

    name: str = "serial"
    limit: int | None = Field(default=None, ge=1)
    waves: tuple[int | str, ...] = ()
    proceeds: int = Field(default=2, ge=1)
    options: dict[str, Any] = {}


def _strategy(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


Strategy = Annotated[StrategySpec, BeforeValidator(_strategy)]


class ParameterSpec(CompactValue):
    """A declared parameter of a plan. ``pattern`` must match the whole value."""

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    description: str = ""
    default: str | None = None
    required: bool = False
    pattern: str | None = None


TypeName = Annotated[str, Field(min_length=1, max_length=200)]
QueueName = Annotated[str, Field(min_length=1, max_length=200)]
"""Names as long as the server takes them: 1,000 bytes, with room for what is put around them."""


class RetrySpec(CompactValue):
    """Temporal's retry policy, in its own words. ``maximum_attempts`` 0 is without limit."""

    initial_interval: Duration = timedelta(seconds=1)
    backoff_coefficient: float = Field(default=2.0, ge=1, allow_inf_nan=False)
    maximum_interval: Duration | None = None
    maximum_attempts: int = Field(default=0, ge=0, le=2**31 - 1)
    non_retryable_error_types: tuple[str, ...] = ()


class PodWork(CompactValue):
    """Launch some tasks of one pod instance of a service, all at once.

    ``tasks`` is empty only in a step with errors, which is never carried out. ``recovery``: the
    step brings back what failed, on the resources it has or, ``permanent``, on others (reference
    6.4). ``config_id`` is the configuration to launch; empty: the plan's own, or else the target.
    """

    kind: Literal["pod"] = "pod"
    pod: str
    index: int
    tasks: tuple[str, ...]
    recovery: Literal["transient", "permanent"] | None = None
    config_id: str = ""


class KillWork(CompactValue):
    """End a task of a service for good (reference 7.2, 8.2). ``task`` is the task instance's name
    (``hello-0-server``); ``task_id`` one launch of it, empty: whichever is the newest."""

    kind: Literal["kill"] = "kill"
    task: str
    task_id: str = ""


class UnreserveWork(CompactValue):
    """Give a resource on an agent back (reference 7.2, 8.2): ``resource`` is its id, ``key`` and
    ``reservation`` (its id) the reservation that it belongs to, ``agent`` where that is. One that
    has since taken its place under the key is left alone."""

    kind: Literal["unreserve"] = "unreserve"
    resource: str
    key: str
    reservation: str = ""
    agent: str = ""


class EraseWork(CompactValue):
    """Forget a task of a service (reference 7.2). ``task`` is the task instance's name."""

    kind: Literal["erase"] = "erase"
    task: str


class DeregisterWork(CompactValue):
    """The last step of an uninstall: the service is no more (reference 8.2)."""

    kind: Literal["deregister"] = "deregister"


class ActivityWork(CompactValue):
    """Run a Temporal activity. ``input`` is its argument; ``inputs`` for several."""

    kind: Literal["activity"] = "activity"
    type: TypeName
    task_queue: QueueName | None = None
    input: Any = None
    inputs: tuple[Any, ...] | None = None
    timeout: Duration = timedelta(minutes=10)
    heartbeat_timeout: Duration | None = None
    schedule_to_close_timeout: Duration | None = None
    retry: RetrySpec | None = None


class WorkflowWork(CompactValue):
    """Run a child workflow and wait for it."""

    kind: Literal["workflow"] = "workflow"
    type: TypeName
    task_queue: QueueName | None = None
    id: str | None = Field(default=None, min_length=1, max_length=500)
    input: Any = None
    inputs: tuple[Any, ...] | None = None
    timeout: Duration | None = None
    retry: RetrySpec | None = None


class CommandWork(CompactValue):
    """Run a command once, to success, on an agent of a pool."""

    kind: Literal["command"] = "command"
    cmd: str
    cpus: float = Field(default=0.1, gt=0)
    memory: int = Field(default=32, gt=0)
    pool: str = "default"
    placement: str = ""
    env: dict[str, str] = {}
    uris: tuple[str, ...] = ()
    user: str | None = None
    timeout: Duration | None = None
    retries: int | None = Field(
        default=None, ge=0, description="how often it is tried again; for ever when absent"
    )


class ApprovalWork(CompactValue):
    """Wait until somebody says continue."""

    kind: Literal["approval"] = "approval"
    message: str = ""


class SleepWork(CompactValue):
    kind: Literal["sleep"] = "sleep"
    duration: Duration


class CustomWork(CompactValue):
    """A step kind that a developer registered with the plugin."""

    kind: Literal["custom"] = "custom"
    type: str
    input: Any = None


Work = Annotated[
    PodWork
    | ActivityWork
    | WorkflowWork
    | CommandWork
    | ApprovalWork
    | SleepWork
    | CustomWork
    | KillWork
    | UnreserveWork
    | EraseWork
    | DeregisterWork,
    Field(discriminator="kind"),
]


class StepSpec(CompactValue):
    """One unit of work. ``errors`` are faults of the plan's making: the step reads ERROR."""

    name: str
    work: Work
    depends_on: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class PhaseSpec(CompactValue):
    name: str
    strategy: Strategy = StrategySpec()
    depends_on: tuple[str, ...] = ()
    steps: tuple[StepSpec, ...] = ()


STEPS_AT_ONCE: Mapping[str, int] = {"child": 32, "inline": 100}
"""Steps of a phase in flight, as child workflows or inside the phase: more stall the server."""


class PlanSpec(CompactValue):
    """A plan. ``steps`` says whether steps are child workflows or run inside their phase.

    Validation takes everything that a plan file may write (``domain.plan_file``).
    """

    name: str
    description: str = ""
    strategy: Strategy = StrategySpec()
    parameters: tuple[ParameterSpec, ...] | None = None
    steps: Literal["child", "inline"] = "child"
    phases: tuple[PhaseSpec, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _normalised(cls, document: object) -> object:
        return normalise(document)


def command_pod(work: CommandWork, name: str) -> PodSpec:
    """The pod that a command step runs as: one instance, one task named ``command``."""
    return PodSpec(
        type=name,
        count=1,
        user=work.user,
        uris=work.uris,
        placement=work.placement,
        resource_sets=(ResourceSet(id="command", cpus=work.cpus, memory=work.memory),),
        tasks=(
            TaskSpec(
                name="command", goal=Goal.ONCE, cmd=work.cmd, resource_set="command", env=work.env
            ),
        ),
    )


__all__ = [
    "ActivityWork",
    "ApprovalWork",
    "CommandWork",
    "CustomWork",
    "DeregisterWork",
    "EraseWork",
    "KillWork",
    "ParameterSpec",
    "PhaseSpec",
    "PlanSpec",
    "PodWork",
    "RetrySpec",
    "SleepWork",
    "StepSpec",
    "Strategy",
    "StrategySpec",
    "UnreserveWork",
    "Work",
    "WorkflowWork",
    "command_pod",
]
