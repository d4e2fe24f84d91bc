"""The errors of PlansClient.

Every message has the request, the problem and a fix.

PlansError
 ├─ NotFound                there is nothing of this name
 │   ├─ ServiceNotFound
 │   ├─ PlanNotFound
 │   ├─ TaskNotFound
 │   ├─ PoolNotFound
 │   ├─ AgentNotFound
 │   └─ ScheduleNotFound
 ├─ Ambiguous               the name matches several
 ├─ Refused                 the request was refused, with a code and reasons
 ├─ Unreadable              the workflow can't answer: it failed before it began
 ├─ WorkerUnreachable       no worker takes the workflow's tasks
 │   └─ StandsStill         workers take them, and fail
 ├─ AgentUnreachable        no agent takes the activity
└─ ClusterUnreachable      no worker of the cluster takes the activity

``client.temporal.connection.ServerUnreachableError`` and ``AnswerLostError`` are not in this tree:
they concern the server. After the latter the command may have been carried out.
"""

from collections.abc import Iterable
from typing import Any, Self

from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError


class PlansError(UserFacingError):
    """A request to a service, a plan or an agent failed."""


class NotFound(PlansError):
    """There is nothing of this name; the message lists the names that exist."""


class ServiceNotFound(NotFound):
    """There is no such service; ``ended``: there was one."""

    def __init__(self, name: str = "", known: Iterable[str] = (), *, ended: bool = False) -> None:
        if ended:
            super().__init__(
                f"service {name!r} not found: it was uninstalled, or has ended; `temporal plan log "
                f"-s {name}`, `history` and `show` have what is left of it"
            )
            return
        hint = suggestion(name, known) or "deploy one with `temporal plan deploy FILE`"
        problem = f"service {name!r} not found" if name else "there is no service"
        super().__init__(f"{problem}; {hint}")


class PlanNotFound(NotFound):
    """There is no such plan, neither of a service nor on its own."""

    def __init__(self, name: str, known: Iterable[str] = (), *, service: str = "") -> None:
        if service:
            hint = suggestion(name, known) or "the service has no plans"
            super().__init__(f"service {service!r} has no plan {name!r}; {hint}")
        else:
            hint = suggestion(name, known) or (
                "there are no plans; deploy a service with `temporal plan deploy FILE`, or run a "
                "plan file with `temporal plan run FILE`"
            )
            super().__init__(f"plan {name!r} not found; {hint}")


class TaskNotFound(NotFound):
    """No service or agent knows the task."""

    def __init__(self, task: str, known: Iterable[str] = ()) -> None:
        hint = suggestion(task, known) or "no task was launched yet"
        super().__init__(f"task {task!r} not found; {hint}")


class PoolNotFound(NotFound):
    """No agent ever registered in this pool."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        hint = suggestion(name, known) or (
            "there are no pools; start an agent with `temporal plan agent`"
        )
        super().__init__(f"pool {name!r} not found; {hint}")


class AgentNotFound(NotFound):
    """No pool has an agent of this id."""

    def __init__(self, agent: str, known: Iterable[str] = ()) -> None:
        hint = (
            suggestion(agent, known) or "there are no agents; start one with `temporal plan agent`"
        )
        super().__init__(f"agent {agent!r} is in no pool; {hint}")


class ScheduleNotFound(NotFound):
    """There is no such schedule of a plan."""

    def __init__(self, schedule: str, known: Iterable[str] = ()) -> None:
        hint = suggestion(schedule, known) or (
            "there are no schedules; create one with `temporal plan schedule create`"
        )
        super().__init__(f"schedule {schedule!r} not found; {hint}")


class Ambiguous(PlansError):
    """The name matches several tasks; the message lists their ids."""


class Refused(PlansError, RefusedError):
    """The request was refused, and changed nothing. ``refusal`` has the code and the reasons."""

    @classmethod
    def of(
        cls, code: Code, problem: str, *, field: str = "", value: Any = None, fix: str = ""
    ) -> Self:
        """Return the error for one reason."""
        reason = Reason(field=field, problem=problem, value=value, fix=fix)
        return cls(Refusal(code=code, reasons=(reason,)))


class ServiceEnded(Refused):
    """The service accepted a command, and ended before it answered."""

    def __init__(self, name: str, command: str) -> None:
        problem = f"service {name!r} ended before it answered {command}"
        super().__init__(Refusal.of(Code.NOT_RUNNING, problem))


class Unreadable(PlansError):
    """The state of a closed workflow can't be read, for example because it failed at its start.
    ``why`` is the reason without the workflow's name, where it failed."""

    def __init__(self, text: str, *, why: str = "") -> None:
        super().__init__(text)
        self.why = why


class WorkerUnreachable(PlansError):
    """A workflow exists, but no worker took its task in time."""

    def __init__(self, workflow_id: str, *, sent: str = "") -> None:
        sent = f" The server has the {sent}, which may still be carried out." if sent else ""
        super().__init__(
            f"no worker answers for {workflow_id!r}; check that a worker is running, or start one "
            f"with `temporal plan worker` (or `temporal plan dev`).{sent}"
        )


class StandsStill(WorkerUnreachable):
    """A workflow can't answer, because its workflow task fails (``stuck``)."""

    def __init__(self, stuck: StuckWorkflow, *, sent: str = "") -> None:
        super().__init__(stuck.workflow_id, sent=sent)
        sent = f"\nThe server has the {sent}, which may still be carried out." if sent else ""
        self.args = (f"{stuck.in_full}{sent}",)
        self.stuck = stuck


class AgentUnreachable(PlansError):
    """The agent did not take an activity in time."""

    def __init__(self, agent: str, seconds: float) -> None:
        super().__init__(
            f"agent {agent!r} did not answer within {seconds:g} s; see `temporal plan agents` for "
            "its state, and restart it on its machine with `temporal plan agent`"
        )


class ClusterUnreachable(PlansError):
    """No worker of the cluster took an activity in time."""

    def __init__(self, cluster: str, seconds: float) -> None:
        super().__init__(
            f"no worker of cluster {cluster!r} answered within {seconds:g} s; start one with "
            f"`temporal plan worker --kubernetes {cluster}`, or look at its log"
        )


__all__ = [
    "AgentNotFound",
    "AgentUnreachable",
    "Ambiguous",
    "ClusterUnreachable",
    "NotFound",
    "PlanNotFound",
    "PlansError",
    "PoolNotFound",
    "Refused",
    "ScheduleNotFound",
    "ServiceNotFound",
    "StandsStill",
    "TaskNotFound",
    "Unreadable",
    "WorkerUnreachable",
]
