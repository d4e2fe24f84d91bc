"""What operators do to pods: restart, replace, pause, resume (reference 6.7, 6.8, 10.3).

Each marks what is wanted and kills tasks; that they come back is the recovery plan's work, or that
of the plan that works on the pod.
"""

from temporal_plans.domain.commands import Outcome, suggest
from temporal_plans.domain.goal_override import GoalOverride
from temporal_plans.domain.pod_verb import PodVerb
from temporal_plans.domain.service import ServiceSpec, task_instance_name
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.messages.service import PodCommand, PodCommandResult
from temporal_plans.workflows.kills import Kills
from temporal_plans.workflows.refusal import refusal
from temporal_plans.workflows.service_tasks import ServiceTasks

_OF_TASKS = (PodVerb.PAUSE, PodVerb.RESUME)
"""Those that may be about some of the pod's tasks."""


class PodCommands:
    """Carries the commands out on a service's records."""

    def __init__(self, tasks: ServiceTasks, kills: Kills) -> None:
        self._tasks = tasks
        self._kills = kills

    def check(self, verb: PodVerb, command: PodCommand, spec: ServiceSpec) -> None:
        """Raises ApplicationError for a pod or a task that there is not, or that is on its way
        out (reference 10.3: 404, 409)."""
        views = {view.name: view for view in self._tasks.pods(spec)}
        view = views.get(command.pod)
        if view is None:
            raise refusal(404, f"Pod {command.pod} not found{suggest(command.pod, list(views))}")
        if any(
            self._tasks.overrides.get(task.name) is GoalOverride.DECOMMISSIONED
            for task in view.tasks
        ):
            raise refusal(409, f"Pod {command.pod} is being decommissioned")
        if verb not in _OF_TASKS:
            if command.tasks:
                raise refusal(400, f"{verb} is of whole pods; leave tasks out")
            return
        names = self._names(view.type, view.index, spec)
        for task in command.tasks:
            if task not in names and f"{command.pod}-{task}" not in names:
                raise refusal(
                    404, f"Pod {command.pod} has no task {task}{suggest(task, sorted(names))}"
                )

    def carry_out(self, verb: PodVerb, command: PodCommand, spec: ServiceSpec) -> PodCommandResult:
        """Mark, kill, and say which task instances are concerned."""
        view = next(view for view in self._tasks.pods(spec) if view.name == command.pod)
        records = {record.name: record for record in view.tasks}
        names = self._names(view.type, view.index, spec)
        if command.tasks:
            names = [n for n in names if self._named(n, command)]
        changed = True
        if verb is PodVerb.PAUSE:
            fresh = [n for n in names if self._tasks.overrides.get(n) is not GoalOverride.PAUSED]
            names, changed = fresh, bool(fresh)
            self._tasks.overrides.update(dict.fromkeys(fresh, GoalOverride.PAUSED))
        elif verb is PodVerb.RESUME:
            names = [n for n in names if self._tasks.overrides.get(n) is GoalOverride.PAUSED]
            changed = bool(names)
            for name in names:
                del self._tasks.overrides[name]
        else:
            names = [name for name in names if name in records]
        if verb is PodVerb.REPLACE:
            self._tasks.give_up(view.type, view.index)
        launched = [records[name] for name in names if name in records]
        self._kill(launched, verb, command)
        text = _text(verb, command.pod, names, changed=changed)
        return PodCommandResult(
            pod=command.pod,
            tasks=tuple(names),
            outcome=Outcome(code=200 if changed else 208, message=text, changed=changed),
        )

    def _kill(self, records: list[TaskRecord], verb: PodVerb, command: PodCommand) -> None:
        for record in records:
            if record.live:
                by = f" by {command.by}" if command.by else ""
                self._kills.kill(record.ref, f"{verb}{by}")

    def _names(self, pod: str, index: int, spec: ServiceSpec) -> list[str]:
        """The pod's task instances, in the file's order; those of its records when it has gone."""
        for one in spec.pods:
            if one.type == pod:
                return [task_instance_name(pod, index, task.name) for task in one.tasks]
        return [record.name for record in self._tasks.of_pod(pod, index)]

    @staticmethod
    def _named(name: str, command: PodCommand) -> bool:
        return any(name in (task, f"{command.pod}-{task}") for task in command.tasks)


def _text(verb: PodVerb, pod: str, names: list[str], *, changed: bool) -> str:
    if not changed:
        state = "paused already" if verb is PodVerb.PAUSE else "not paused"
        return f"Pod {pod} is {state}; nothing was changed"
    return f"Received cmd: {verb} {pod} ({', '.join(names) or 'no task was launched yet'})"
