"""The tables that the reading commands print."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.text import Text

from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.output import coloured, printable
from temporal_plans.cli.terminal.width import wrapped
from temporal_plans.client.errors import PlansError, WorkerUnreachable
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.client.temporal.executions import Ended, Execution
from temporal_plans.domain.cluster.refusals import in_short
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.domain.services.records import EarlierLaunch, TaskRecord
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.owners import CommonStatus, PlanRecord
from temporal_plans.messages.plans import CommandLog
from temporal_plans.messages.pools import AgentView, PoolStatus, WaitingView
from temporal_plans.messages.services import PodView

_PROBLEM_SIZE = 120
"""Characters of a problem in a line of ``list``; ``explain`` has all of it."""


@dataclass(frozen=True)
class ListedPlan:
    """A line of ``list``. ``status`` is empty when the plan can't answer it; ``problem`` is why it
    makes no progress, in short."""

    id: str
    name: str
    service: str
    status: str
    ended: str
    since: datetime | None
    problem: str = ""
    kind: str = ""

    @property
    def shown_statuses(self) -> set[str]:
        """Its status and how its workflow ended early, in capitals; FAILED alone if it failed."""
        if self.ended == Ended.FAILED.value:
            return {"FAILED"}
        return {text.upper() for text in (self.status, self.ended) if text}

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "name": self.name,
            "service": self.service,
            "kind": self.kind,
            "status": self.status,
            "ended": self.ended or None,
            "since": self.since,
            "problem": self.problem or None,
        }


async def list_plans(
    client: PlansClient, chosen: str | None, limit: int, *, scheduled: bool = False
) -> list[ListedPlan]:
    """Return the plans of the chosen service, else of all services, and those without a service.
    ``scheduled``: also runs that have ended and that a schedule of a plan file started."""
    services = [chosen.strip("/")] if chosen else [] if chosen == "" else await client.services()
    records, silent = await _records(client, services)
    own = [] if chosen else await client.own_plans(limit, scheduled=scheduled)
    runs = await client.show_all(
        [record.workflow_id for _, record in records if record.open or _ended_early(record)]
        + [run.id for run in own]
    )
    still = await client.stuck(*(id for id, run in runs.items() if _may_stand_still(run)))
    stuck = {one.element[0]: one for one in reversed(still)}
    found = [
        _of_service(owner, record, runs.get(record.workflow_id), stuck.get(record.workflow_id))
        for owner, record in records
    ]
    found += [_own(run, runs[run.id], stuck.get(run.id)) for run in own]
    return found + silent


async def _records(
    client: PlansClient, services: Sequence[str]
) -> tuple[list[tuple[CommonStatus, PlanRecord]], list[ListedPlan]]:
    """Return the plans of services that answer, with the service; and lines for the others, and for
    those that have trouble while no plan runs. The error of a single service is raised."""
    records: list[tuple[CommonStatus, PlanRecord]] = []
    silent: list[ListedPlan] = []
    for service in services:
        try:
            owner = await client.owner(service)
            records += [(owner, record) for record in owner.plans]
            if owner.trouble:
                silent.append(_in_trouble(owner))
        except PlansError as error:
            if len(services) == 1:
                raise
            problem = _in_short(error)
            silent.append(ListedPlan(service_id(service), "", service, "", "", None, problem))
    return records, silent


def _in_trouble(owner: CommonStatus) -> ListedPlan:
    id, kind = service_id(owner.name), owner.content
    return ListedPlan(id, "", owner.name, "", "", None, owner.trouble, kind=kind)


def _may_stand_still(run: PlanRun | Exception) -> bool:
    return not isinstance(run, PlanRun) or (run.ended is None and not run.complete)


def _problem(run: PlanRun | Exception | None, stuck: StuckWorkflow | None) -> str:
    """Return why a plan makes no progress, in short; empty when it does, or waits as it should."""
    if stuck is not None:
        return f"{stuck.workflow_id} stands still: {stuck.failure or stuck.error}"
    if isinstance(run, PlanRun):
        return _failing(run) if run.ended is None else ""
    return _in_short(run) if isinstance(run, WorkerUnreachable) else ""


def _in_short(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _failing(run: PlanRun) -> str:
    if not run.failing:
        return ""
    [(path, step), *others] = run.failing
    attempt = f", attempt {step.attempt}" if step.attempt > 1 else ""
    return f"{path} failed{attempt}" + (f", and {len(others)} more" if others else "")


def _ended_early(record: PlanRecord) -> bool:
    """Whether the plan was started and has ended, but is not COMPLETE."""
    return not record.open and record.run > 0 and record.status is not Status.COMPLETE


def _of_service(
    owner: CommonStatus,
    record: PlanRecord,
    run: PlanRun | Exception | None = None,
    stuck: StuckWorkflow | None = None,
) -> ListedPlan:
    how = run.cut_short if isinstance(run, PlanRun) and not record.open else ""
    return ListedPlan(
        record.workflow_id,
        record.name,
        owner.name,
        str(record.status),
        how or _not_open(owner, record),
        record.changed,
        _problem(run, stuck),
        kind=owner.content,
    )


def _not_open(owner: CommonStatus, record: PlanRecord) -> str:
    if owner.content == "package" and record.run == 0:
        return "never run"
    return "not running" if _ended_early(record) else ""


def _own(
    execution: Execution, run: PlanRun | Exception, stuck: StuckWorkflow | None = None
) -> ListedPlan:
    status, ended = "", execution.ended.value if execution.ended else ""
    if isinstance(run, PlanRun):
        status, ended = str(run.view.status), run.cut_short
    since = execution.closed or execution.started
    problem = _problem(run, stuck)
    return ListedPlan(execution.id, execution.id, "", status, ended, since, problem, kind="plan")


def plan_table(plans: Sequence[ListedPlan]) -> list[Text]:
    rows = [
        (
            plan.service or "-",
            plan.kind,
            plan.name,
            _status_cell(plan.status or ("-" if plan.kind and not plan.name else "?"), plan.ended),
            moment(plan.since),
            shortened(plan.problem, _PROBLEM_SIZE),
        )
        for plan in plans
    ]
    return columns(("SERVICE", "KIND", "PLAN", "STATUS", "SINCE", "PROBLEM"), rows)


def _status_cell(status: str, ended: str) -> Text:
    """Return FAILED for a plan whose workflow failed, whatever its last status was."""
    if ended == Ended.FAILED.value:
        return coloured(TaskState.FAILED)
    cell = coloured(status)
    return cell.append(f", {ended}", style="red") if ended else cell


def log_lines(log: CommandLog, *, of: str = "plan") -> list[Text]:
    if not log.entries:
        return [Text(f"No commands were given to this {of}.")]
    rows = [
        (
            moment(entry.at),
            _command(entry.verb) + (" --force" if entry.force else ""),
            " ".join(part for part in (entry.phase, entry.step) if part),
            " ".join(f"{name}={value}" for name, value in entry.parameters.items()),
            entry.by,
            entry.via,
            entry.reason,
            entry.outcome.result.value,
            entry.outcome.message,
        )
        for entry in log.entries
    ]
    head = ("TIME", "COMMAND", "ELEMENT", "PARAMETERS", "BY", "VIA", "REASON", "RESULT", "OUTCOME")
    lines = columns(head, rows)
    if log.dropped:
        lines.append(Text(f"({log.dropped} older commands are no longer kept)", style="dim"))
    return lines


def _command(verb: str) -> str:
    """Return ``restart-pod hello-0`` for ``restart_pod hello-0``."""
    verb, *names = verb.split(" ")
    return " ".join((verb.replace("_", "-"), *names))


def agent_lines(pools: Sequence[PoolStatus]) -> list[Text]:
    if not any(pool.agents for pool in pools):
        return [Text("No agents. Start one with `temporal plan agent`.")]
    rows = [
        _agent(pool.name, agent)
        for pool in pools
        for agent in sorted(pool.agents, key=lambda agent: agent.info.id)
    ]
    head = ("POOL", "AGENT", "HOST", "STATE", "CPUS", "MEMORY", "DISK", "GPUS", "PODS", "LIMITS",
            "ATTRIBUTES")  # fmt: skip
    lines = columns(head, rows)
    waiting = [view for pool in pools for view in pool.waiting]
    if waiting:
        lines += [Text(), Text("Waiting for resources:", style="yellow")]
        lines += [line for view in waiting for line in _waiting(view)]
    return lines


def _agent(pool: str, agent: AgentView) -> tuple[str | Text, ...]:
    info, has = agent.info, agent.info.resources
    places = {"region": info.region, "zone": info.zone}
    attributes = {**{k: v for k, v in places.items() if v}, **info.attributes}
    return (
        pool,
        info.id,
        info.hostname,
        coloured(str(agent.state)),
        f"{agent.free_cpus:g} free of {has.cpus:g}",
        f"{agent.free_memory} free of {has.memory} MB",
        f"{agent.free_disk} free of {has.disk} MB" if has.disk else "",
        f"{agent.free_gpus:g} free of {has.gpus:g}" if has.gpus else "",
        str(agent.reservations),
        info.isolation,
        " ".join(f"{name}={value}" for name, value in attributes.items()),
    )


def _waiting(view: WaitingView) -> Iterable[Text]:
    requirement = view.requirement
    since = duration(datetime.now(UTC) - view.since)
    yield from wrapped(
        Text(
            printable(
                f"- {requirement.pod}-{requirement.index} of {requirement.owner}, for {since}"
            )
        ),
        indent=4,
    )
    for refusal in view.refusals:
        yield from wrapped(Text(printable(f"  {in_short(refusal)}")), indent=4)


def pod_lines(pods: Sequence[PodView], silent: Mapping[str, str] | None = None) -> list[Text]:
    """Return a line for each pod. ``silent`` are the states of agents that are not ALIVE: what
    their tasks do is not known then."""
    if not pods:
        return [Text("No pods: nothing was launched yet.")]
    now, states = datetime.now(UTC), silent or {}
    rows = [
        (
            pod.name,
            _place(pod, states),
            pod.hostname,
            _ports_of(pod),
            str(sum(record.launches - 1 for record in pod.tasks)) if pod.tasks else "",
            duration(now - pod.reservation.created) if pod.reservation else "",
            _tasks_of(pod),
        )
        for pod in pods
    ]
    return columns(("POD", "AGENT", "HOST", "PORTS", "RESTARTS", "AGE", "TASKS"), rows)


def _ports_of(pod: PodView) -> str:
    resources = pod.reservation.resources if pod.reservation else ()
    return " ".join(
        f"{resource.name}:{int(resource.value)}"
        for resource in resources
        if resource.kind == "port"
    )


def _place(pod: PodView, silent: Mapping[str, str]) -> Text:
    cell = Text(printable(pod.agent))
    if state := silent.get(pod.agent):
        cell.append(" (").append_text(coloured(state)).append(")")
    return cell


def _tasks_of(pod: PodView) -> Text:
    cell = Text()
    for index, record in enumerate(pod.tasks):
        cell.append(", " if index else "")
        cell.append(printable(f"{record.task} "))
        cell.append_text(coloured(pod.shown.get(record.name) or _state(record)))
    if not pod.wanted:
        cell.append(" (to be removed)", style="red")
    return cell


def task_lines(tasks: Sequence[TaskRecord], *, earlier: bool = False) -> list[Text]:
    """Return a line for each task; with ``earlier`` also for each launch before the newest."""
    if not tasks:
        return [Text("No tasks: nothing was launched yet.")]
    rows = [
        row for record in tasks for row in (_newest(record), *(_before(record) if earlier else ()))
    ]
    head = ("TASK", "STATE", "READY", "GOAL", "AGENT", "LAUNCHED", "ID", "MESSAGE")
    return columns(head, rows)


def _newest(record: TaskRecord) -> tuple[str | Text, ...]:
    return (
        record.name,
        coloured(_state(record)),
        _check(record),
        record.goal,
        record.agent,
        moment(record.launched),
        record.task_id,
        record.status.message if record.status else "",
    )


def _before(record: TaskRecord) -> Iterator[tuple[str | Text, ...]]:
    for launch in record.earlier:
        yield (
            record.name,
            coloured(_state(launch)),
            "",
            record.goal,
            launch.agent,
            moment(launch.launched),
            launch.task_id,
            launch.status.message if launch.status else "",
        )


def _state(launch: TaskRecord | EarlierLaunch) -> str:
    return str(launch.status.state) if launch.status else "LAUNCHING"


def _check(record: TaskRecord) -> str:
    if record.status is None or record.status.ready is None:
        return ""
    return "yes" if record.status.ready else "no"


def moment(moment: datetime | None) -> str:
    """Return the time in the reader's time zone, with its offset; empty for None."""
    return moment.astimezone().isoformat(" ", "seconds") if moment else ""
