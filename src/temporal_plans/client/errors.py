"""What can go wrong between a person's wish and the workflows.

Every message says what was asked, what is the case and what to do about it.

PlansError
 ├─ NotFound                what was named is not there
 │   ├─ ServiceNotFound
 │   ├─ PlanNotFound
 │   ├─ TaskNotFound
 │   ├─ PoolNotFound
 │   └─ ScheduleNotFound
 ├─ Ambiguous               the name fits several
 ├─ Refused                 the workflow says no, and why
 ├─ Unreadable              the workflow can't answer: it failed before it began
 ├─ WorkerUnreachable       no worker takes the workflow's tasks
 └─ AgentUnreachable        no agent takes the activity

``client.connection.ServerUnreachableError`` stands beside the tree: without a server there is no
one to ask. Its ``AnswerLostError`` is for what the server got, and may have done.
"""

from collections.abc import Iterable

from temporal_plans.domain.names import suggestion


class PlansError(Exception):
    """Something that was asked of a service, a plan or an agent can't be had."""


class NotFound(PlansError):
    """What was named is not there; the message names what is."""


class ServiceNotFound(NotFound):
    """There is no such service."""

    def __init__(self, name: str = "", known: Iterable[str] = ()) -> None:
        hint = suggestion(name, known) or "deploy one with `temporal plan deploy FILE`"
        what = f"service {name!r} not found" if name else "there is no service"
        super().__init__(f"{what}; {hint}")


class PlanNotFound(NotFound):
    """There is no such plan, in its service or as a workflow of its own."""

    def __init__(self, name: str, known: Iterable[str] = (), *, service: str = "") -> None:
        if service:
            hint = suggestion(name, known) or "the service has no plans"
            super().__init__(f"service {service!r} has no plan {name!r}; {hint}")
        else:
            hint = suggestion(name, known) or (
                "there is none; deploy a service with `temporal plan deploy FILE`, or run a plan "
                "file with `temporal plan run FILE`"
            )
            super().__init__(f"plan {name!r} not found; {hint}")


class TaskNotFound(NotFound):
    """No service or agent knows the task."""

    def __init__(self, task: str, known: Iterable[str] = ()) -> None:
        hint = suggestion(task, known) or "nothing was launched yet"
        super().__init__(f"task {task!r} not found; {hint}")


class PoolNotFound(NotFound):
    """No agent ever registered in this pool."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        hint = suggestion(name, known) or "there is none; start an agent with `temporal plan agent`"
        super().__init__(f"pool {name!r} not found; {hint}")


class ScheduleNotFound(NotFound):
    """There is no such schedule of a plan."""

    def __init__(self, schedule: str, known: Iterable[str] = ()) -> None:
        hint = suggestion(schedule, known) or (
            "there is none; make one with `temporal plan schedule create`"
        )
        super().__init__(f"schedule {schedule!r} not found; {hint}")


class Ambiguous(PlansError):
    """A name that several things have; the message names them."""


class Refused(PlansError):
    """The workflow refused, and changed nothing; the message is its own."""


class ServiceEnded(Refused):
    """It took a command, and ended before it answered."""

    def __init__(self, name: str, command: str) -> None:
        super().__init__(f"service {name!r} ended before it answered to {command}")


class Unreadable(PlansError):
    """The workflow is closed and can't tell its state: it failed before it began."""


class WorkerUnreachable(PlansError):
    """A workflow exists but no worker takes its tasks, or takes them in time."""

    def __init__(self, workflow_id: str, *, sent: str = "") -> None:
        sent = f" The {sent} is with the server and may still be carried out." if sent else ""
        super().__init__(
            f"no worker answers for {workflow_id!r}; is one running? Start one with "
            f"`temporal plan worker` (or `temporal plan dev`).{sent}"
        )


class AgentUnreachable(PlansError):
    """An agent does not take the activity that was asked of it."""

    def __init__(self, agent: str, seconds: float) -> None:
        super().__init__(
            f"agent {agent!r} did not answer within {seconds:g} s; see `temporal plan agents` for "
            "its state, and start it again on its machine with `temporal plan agent`"
        )


__all__ = [
    "AgentUnreachable",
    "Ambiguous",
    "NotFound",
    "PlanNotFound",
    "PlansError",
    "PoolNotFound",
    "Refused",
    "ScheduleNotFound",
    "ServiceNotFound",
    "TaskNotFound",
    "Unreadable",
    "WorkerUnreachable",
]
