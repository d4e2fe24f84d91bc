"""The pod commands of operators: restart, replace, pause, resume (behaviour 6.7, 6.8, 10.3).

Each records the goal and kills tasks; the recovery plan, or the plan that works on the pod,
launches them again.
"""

from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.services.goal_override import GoalOverride
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.services import PodCommand, PodCommandResult, pod_views
from temporal_plans.workflows.mechanics.refusal import refused
from temporal_plans.workflows.services.kills import Kills

_TASK_VERBS = (PodVerb.PAUSE, PodVerb.RESUME)
"""The commands that may apply to some of the pod's tasks."""


class PodCommands:
    """Carries out the commands on a service's records."""

    def __init__(self, tasks: TaskBook, kills: Kills) -> None:
        self._tasks = tasks
        self._kills = kills

    def check(self, verb: PodVerb, command: PodCommand, spec: ServiceSpec) -> None:
        """Raise ApplicationError when the pod or a task does not exist, or the pod is being
        decommissioned (behaviour 10.3)."""
        views = {view.name: view for view in pod_views(self._tasks, spec)}
        view = views.get(command.pod)
        if view is None:
            known = suggestion(command.pod, views)
            raise refused(Code.NOT_FOUND, f"pod {command.pod} not found", fix=known)
        if any(
            self._tasks.overrides.get(task.name) is GoalOverride.DECOMMISSIONED
            for task in view.tasks
        ):
            raise refused(Code.DECOMMISSIONING, f"pod {command.pod} is being decommissioned")
        if verb not in _TASK_VERBS:
            if command.tasks:
                raise refused(
                    Code.NOT_APPLICABLE,
                    f"tasks: {verb} applies to whole pods",
                    fix="leave tasks out",
                )
            return
        names = self._names(view.type, view.index, spec)
        for task in command.tasks:
            if task not in names and f"{command.pod}-{task}" not in names:
                text = f"pod {command.pod} has no task {task}"
                raise refused(Code.NOT_FOUND, text, fix=suggestion(task, names))

    def carry_out(self, verb: PodVerb, command: PodCommand, spec: ServiceSpec) -> PodCommandResult:
        """Record the goal, kill the tasks, and return the task instances concerned."""
        view = next(view for view in pod_views(self._tasks, spec) if view.name == command.pod)
        records = {record.name: record for record in view.tasks}
        names = self._names(view.type, view.index, spec)
        if command.tasks:
            names = [n for n in names if self._named(n, command)]
        changed = True
        if verb is PodVerb.PAUSE:
            running = [n for n in names if self._tasks.overrides.get(n) is not GoalOverride.PAUSED]
            names, changed = running, bool(running)
            self._tasks.overrides.update(dict.fromkeys(running, GoalOverride.PAUSED))
        elif verb is PodVerb.RESUME:
            names = [n for n in names if self._tasks.overrides.get(n) is GoalOverride.PAUSED]
            changed = bool(names)
            for name in names:
                del self._tasks.overrides[name]
        else:
            names = [name for name in names if name in records]
        if verb is PodVerb.REPLACE:
            self._tasks.mark_for_replacement(view.type, view.index)
        launched = [records[name] for name in names if name in records]
        self._kill(launched, verb, command)
        for stranger in self._tasks.strangers_of(names):
            self._kills.kill(stranger, str(verb))
        text = _text(verb, command.pod, names, changed=changed)
        return PodCommandResult(
            pod=command.pod,
            tasks=tuple(names),
            outcome=Outcome(result=Result.DONE if changed else Result.ALREADY, message=text),
        )

    def _kill(self, records: list[TaskRecord], verb: PodVerb, command: PodCommand) -> None:
        for record in records:
            if record.live:
                by = f" by {command.by}" if command.by else ""
                self._kills.kill(record.ref, f"{verb}{by}")

    def _names(self, pod: str, index: int, spec: ServiceSpec) -> list[str]:
        """Return the pod's task instances, in the file's order; from records without a spec."""
        for pod_spec in spec.pods:
            if pod_spec.type == pod:
                return [task_instance_name(pod, index, task.name) for task in pod_spec.tasks]
        return [record.name for record in self._tasks.of_pod(pod, index)]

    @staticmethod
    def _named(name: str, command: PodCommand) -> bool:
        return any(name in (task, f"{command.pod}-{task}") for task in command.tasks)


def _text(verb: PodVerb, pod: str, names: list[str], *, changed: bool) -> str:
    if not changed:
        state = "paused already" if verb is PodVerb.PAUSE else "not paused"
        return f"nothing to do: pod {pod} is {state}"
    return f"{verb} of pod {pod}: {', '.join(names) or 'no task was launched yet'}"
