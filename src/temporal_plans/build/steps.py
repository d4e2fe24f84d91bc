"""Steps: one unit of work each. A function for every kind of work."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from temporal_plans.build.definitions import TypeName, activity_type, workflow_type
from temporal_plans.build.documents import Settings, given
from temporal_plans.build.durations import Length, written


@dataclass(frozen=True, eq=False)
class Step:
    """A step as it was written. ``settings`` are those of its work.

    Without a ``name`` it is called as ``called`` says: by the type of its work, or the kind; where
    several of one phase would share that name they are numbered (``sleep``, ``sleep-2``). Give
    names to steps of plans that you will change: commands and histories know steps by name.
    """

    kind: str
    settings: Settings
    called: str
    name: str | None = None
    depends_on: Sequence["str | Step"] = ()
    fault: str = ""


@dataclass(frozen=True)
class Retry:
    """How often and how fast failed work is tried again, as plan files write it."""

    settings: Settings


DependsOn = Sequence[str | Step]
"""Other steps of the same phase, by name or as they are."""


def retry(
    *,
    maximum_attempts: int | None = None,
    initial_interval: Length | None = None,
    backoff_coefficient: float | None = None,
    maximum_interval: Length | None = None,
    non_retryable_error_types: Sequence[str] | None = None,
) -> Retry:
    """Temporal's retry policy; what is left out is as Temporal has it (for ever, from 1 s on)."""
    return Retry(
        given(
            maximum_attempts=maximum_attempts,
            initial_interval=written(initial_interval),
            backoff_coefficient=backoff_coefficient,
            maximum_interval=written(maximum_interval),
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
    """A Temporal activity, by type name or as a function with ``@activity.defn``.

    ``input`` is its one argument, ``inputs`` are several: anything that Temporal could pass on as
    JSON. ``${NAME}`` in their texts stands for a parameter. ``timeout`` is for one attempt, 10
    minutes when absent. It runs on the plan's own task queue unless ``task_queue`` says another.
    """
    return _of_type(
        "activity",
        activity_type(type),
        given(
            task_queue=task_queue,
            input=input,
            inputs=inputs,
            timeout=written(timeout),
            heartbeat_timeout=written(heartbeat_timeout),
            schedule_to_close_timeout=written(schedule_to_close_timeout),
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
    """A child workflow, by type name, as a class with ``@workflow.defn``, or as its run method.

    ``id`` is its workflow id, by default one below the step's; ``timeout`` is for all its runs.
    """
    return _of_type(
        "workflow",
        workflow_type(type),
        given(
            task_queue=task_queue,
            id=id,
            input=input,
            inputs=inputs,
            timeout=written(timeout),
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
        called=type.name,
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
    """A shell command that runs once, to success, on an agent that has room for it.

    ``memory`` is in MiB; ``retries`` is how often it is tried again, for ever when absent.
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
        timeout=written(timeout),
        retries=retries,
    )
    return Step("command", settings, called="command", name=name, depends_on=depends_on)


def approval(message: str = "", *, name: str | None = None, depends_on: DependsOn = ()) -> Step:
    """Waits until somebody says continue; ``message`` tells people what they approve."""
    settings = given(message=message or None)
    return Step("approval", settings, called="approval", name=name, depends_on=depends_on)


def sleep(duration: Length, *, name: str | None = None, depends_on: DependsOn = ()) -> Step:
    """Lets time pass."""
    settings = given(duration=written(duration))
    return Step("sleep", settings, called="sleep", name=name, depends_on=depends_on)


def custom(
    type: str, input: Any = None, *, name: str | None = None, depends_on: DependsOn = ()
) -> Step:
    """A kind of step that is registered with ``PlansPlugin(step_kinds={type: ...})``."""
    settings = given(type=type, input=input)
    return Step("custom", settings, called=type, name=name, depends_on=depends_on)
