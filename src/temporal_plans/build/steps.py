"""Steps: a function for every kind of work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from temporal_plans.build.definitions import TypeName, activity_type, workflow_type
from temporal_plans.build.documents import Settings, given
from temporal_plans.build.durations import Length, file_value


@dataclass(frozen=True, eq=False)
class Step:
    """A step, not yet checked. ``settings`` are those of its work.

    A step without a ``name`` gets ``default_name``: the type or the kind of its work; equal names
    in a phase are numbered (``sleep``, ``sleep-2``). Give names to the steps of plans that you will
    change, because commands and histories identify steps by name.
    """

    kind: str
    settings: Settings
    default_name: str
    name: str | None = None
    depends_on: Sequence["str | Step"] = ()
    fault: str = ""


@dataclass(frozen=True)
class Retry:
    """The retry policy of an activity or a workflow, as in plan files."""

    settings: Settings


DependsOn = Sequence[str | Step]
"""Other steps of the same phase, by name or as objects."""


def retry(
    *,
    maximum_attempts: int | None = None,
    initial_interval: Length | None = None,
    backoff_coefficient: float | None = None,
    maximum_interval: Length | None = None,
    non_retryable_error_types: Sequence[str] | None = None,
) -> Retry:
    """Make a retry policy of Temporal. Temporal's defaults apply: no limit of attempts, and
    intervals from 1 s on."""
    return Retry(
        given(
            maximum_attempts=maximum_attempts,
            initial_interval=file_value(initial_interval),
            backoff_coefficient=backoff_coefficient,
            maximum_interval=file_value(maximum_interval),
            non_retryable_error_types=non_retryable_error_types,
        )
    )


def activity(
    type: str | Callable[..., Any],
    input: Any = None,
    *,
    inputs: Sequence[Any] | None = None,
    name: str | None = None,
    task_queue: str | None = None,
    timeout: Length | None = None,
    heartbeat_timeout: Length | None = None,
    schedule_to_close_timeout: Length | None = None,
    retry: Retry | None = None,
    depends_on: DependsOn = (),
) -> Step:
    """Make a step that runs a Temporal activity, by type name or as a function with
    ``@activity.defn``.

    ``input`` is a single argument, ``inputs`` are several, of types that Temporal's pydantic
    converter can convert. ``${NAME}`` in their texts is replaced by a parameter. ``timeout`` is for
    one attempt, by default 10 minutes. ``task_queue`` is by default the plan's own.
    """
    return _of_type(
        "activity",
        activity_type(type),
        given(
            task_queue=task_queue,
            input=input,
            inputs=inputs,
            timeout=file_value(timeout),
            heartbeat_timeout=file_value(heartbeat_timeout),
            schedule_to_close_timeout=file_value(schedule_to_close_timeout),
            retry=retry and retry.settings,
        ),
        name,
        depends_on,
    )


def workflow(
    type: str | Callable[..., Any],
    input: Any = None,
    *,
    inputs: Sequence[Any] | None = None,
    id: str | None = None,
    name: str | None = None,
    task_queue: str | None = None,
    timeout: Length | None = None,
    retry: Retry | None = None,
    depends_on: DependsOn = (),
) -> Step:
    """Make a step that runs a child workflow, by type name, as a class with ``@workflow.defn``, or
    as its run method.

    ``id`` is its workflow id, by default derived from the step's; ``timeout`` is for all its runs.
    """
    return _of_type(
        "workflow",
        workflow_type(type),
        given(
            task_queue=task_queue,
            id=id,
            input=input,
            inputs=inputs,
            timeout=file_value(timeout),
            retry=retry and retry.settings,
        ),
        name,
        depends_on,
    )


def _of_type(
    kind: str,
    type: TypeName,
    settings: Settings,
    name: str | None,
    depends_on: DependsOn,
) -> Step:
    return Step(
        kind,
        {**given(type=type.name), **settings},
        default_name=type.name,
        name=name,
        depends_on=depends_on,
        fault=type.fault,
    )


def command(
    cmd: str,
    *,
    name: str | None = None,
    cpus: float | None = None,
    memory: int | None = None,
    pool: str | None = None,
    placement: str | None = None,
    env: Mapping[str, str | int | float | bool] | None = None,
    uris: Sequence[str] | None = None,
    user: str | None = None,
    timeout: Length | None = None,
    retries: int | None = None,
    depends_on: DependsOn = (),
) -> Step:
    """Make a step that runs a shell command on an agent with enough resources, until it succeeds.

    ``cpus`` is in cores, ``memory`` in MiB; ``retries`` limits the retries, by default unlimited.
    """
    settings = given(
        cmd=cmd,
        cpus=cpus,
        memory=memory,
        pool=pool,
        placement=placement,
        env=env,
        uris=uris,
        user=user,
        timeout=file_value(timeout),
        retries=retries,
    )
    return Step("command", settings, default_name="command", name=name, depends_on=depends_on)


def approval(message: str = "", *, name: str | None = None, depends_on: DependsOn = ()) -> Step:
    """Make a step that waits for an operator's ``continue``; ``message`` is what they approve."""
    settings = given(message=message or None)
    return Step("approval", settings, default_name="approval", name=name, depends_on=depends_on)


def sleep(duration: Length, *, name: str | None = None, depends_on: DependsOn = ()) -> Step:
    """Make a step that waits for a duration."""
    settings = given(duration=file_value(duration))
    return Step("sleep", settings, default_name="sleep", name=name, depends_on=depends_on)


def custom(
    type: str, input: Any = None, *, name: str | None = None, depends_on: DependsOn = ()
) -> Step:
    """Make a step of a kind that is registered with ``PlansPlugin(step_kinds={type: ...})``."""
    settings = given(type=type, input=input)
    return Step("custom", settings, default_name=type, name=name, depends_on=depends_on)


def work(
    kind: str, *, name: str | None = None, depends_on: DependsOn = (), **settings: Any
) -> Step:
    """Make a step of any kind by the kind's name, with its settings as in plan files."""
    return Step(kind, given(**settings), kind, name, depends_on)
