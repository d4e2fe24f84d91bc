"""The tables that the reading commands print."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.text import Text

from temporal_plans.cli.columns import columns
from temporal_plans.cli.duration import duration
from temporal_plans.cli.output import coloured, printable
from temporal_plans.client.gateway import Ended, Execution
from temporal_plans.client.plan_run import PlanRun
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskState
from temporal_plans.messages.cluster import AgentView, PoolStatus, WaitingView
from temporal_plans.messages.plan import CommandLog
from temporal_plans.messages.service import PlanRecord, PodView, TaskRecord


@dataclass(frozen=True)
class ListedPlan:
    """One line of ``list``. ``status`` is empty when the plan can't say it."""

    id: str
    name: str
    service: str
    status: str
    ended: str
    since: datetime | None

    def as_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "name": self.name,
            "service": self.service,
            "status": self.status,
            "ended": self.ended or None,
            "since": self.since.isoformat() if self.since else None,
        }


async def list_plans(client: PlansClient, said: str | None, limit: int) -> list[ListedPlan]:
    """The plans of the service that was said, else of all, with those of no service."""
    services = [said.strip("/")] if said else [] if said == "" else await client.services()
    records = [(service, record) for service in services for record in await client.plans(service)]
    ended = await client.show_all(record.workflow_id for _, record in records if _is_cut(record))
    found = [
        _of_service(service, record, ended.get(record.workflow_id)) for service, record in records
    ]
    if said:
        return found
    own = await client.own_plans(limit)
    runs = await client.show_all(run.id for run in own)
    return found + [_own(run, runs[run.id]) for run in own]


def _is_cut(record: PlanRecord) -> bool:
    """It was started and is over, but not COMPLETE."""
    return not record.open and record.run > 0 and record.status is not Status.COMPLETE


def _of_service(
    service: str, record: PlanRecord, ended: PlanRun | Exception | None = None
) -> ListedPlan:
    how = ended.cut_short if isinstance(ended, PlanRun) else ""
    return ListedPlan(
        record.workflow_id,
        record.name,
        service,
        str(record.status),
        how or ("not running" if _is_cut(record) else ""),
        record.changed,
    )


def _own(execution: Execution, run: PlanRun | Exception) -> ListedPlan:
    status, ended = "", execution.ended.value if execution.ended else ""
    if isinstance(run, PlanRun):
        status, ended = str(run.view.status), run.cut_short
    since = execution.closed or execution.started
    return ListedPlan(execution.id, execution.id, "", status, ended, since)


def plan_table(plans: Sequence[ListedPlan]) -> list[Text]:
    rows = [
        (
            plan.service or "-",
            plan.name,
            _status_cell(plan.status or "?", plan.ended),
            moment(plan.since),
        )
        for plan in plans
    ]
    return columns(("SERVICE", "PLAN", "STATUS", "SINCE"), rows)


def _status_cell(status: str, ended: str) -> Text:
    """A plan whose workflow failed is FAILED, whatever its tree said last."""
    if ended == Ended.FAILED.value:
        return coloured(TaskState.FAILED)
    cell = coloured(status)
    return cell.append(f", {ended}", style="red") if ended else cell


def log_lines(log: CommandLog) -> list[Text]:
    if not log.entries:
        return [Text("No commands were given to this plan.")]
    rows = [
        (
            moment(entry.at),
            _command(entry.verb),
            " ".join(part for part in (entry.phase, entry.step) if part),
            " ".join(f"{name}={value}" for name, value in entry.parameters.items()),
            entry.by,
            entry.via,
            entry.reason,
            str(entry.outcome.code),
            entry.outcome.message,
        )
        for entry in log.entries
    ]
    head = ("TIME", "COMMAND", "ELEMENT", "PARAMETERS", "BY", "VIA", "REASON", "CODE", "OUTCOME")
    lines = columns(head, rows)
    if log.dropped:
        lines.append(Text(f"({log.dropped} older ones are no longer kept)", style="dim"))
    return lines


def _command(verb: str) -> str:
    """As people give it. Commands to a service have names behind them: ``restart_pod hello-0``."""
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
        lines += [Text(), Text("Waiting for room:", style="yellow")]
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
        f"{agent.free_cpus:g} of {has.cpus:g}",
        f"{agent.free_memory} of {has.memory} MB",
        f"{agent.free_disk} of {has.disk} MB" if has.disk else "",
        f"{agent.free_gpus:g} of {has.gpus:g}" if has.gpus else "",
        str(agent.reservations),
        info.isolation,
        " ".join(f"{name}={value}" for name, value in attributes.items()),
    )


def _waiting(view: WaitingView) -> Iterable[Text]:
    wanted = view.requirement
    since = duration(datetime.now(UTC) - view.since)
    yield Text(printable(f"- {wanted.pod}-{wanted.index} of {wanted.owner}, for {since}"))
    for refusal in view.refusals:
        yield Text(printable(f"  {refusal}"))


def pod_lines(pods: Sequence[PodView]) -> list[Text]:
    if not pods:
        return [Text("No pods: nothing was launched yet.")]
    rows = [(pod.name, pod.agent, pod.hostname, _tasks_of(pod)) for pod in pods]
    return columns(("POD", "AGENT", "HOST", "TASKS"), rows)


def _tasks_of(pod: PodView) -> Text:
    cell = Text()
    for index, record in enumerate(pod.tasks):
        cell.append(", " if index else "")
        cell.append(printable(f"{record.task} "))
        cell.append_text(coloured(pod.shown.get(record.name) or _state(record)))
    if not pod.wanted:
        cell.append(" (to be removed)", style="red")
    return cell


def task_lines(tasks: Sequence[TaskRecord]) -> list[Text]:
    if not tasks:
        return [Text("No tasks: nothing was launched yet.")]
    rows = [
        (
            record.name,
            coloured(_state(record)),
            _check(record),
            record.goal,
            record.agent,
            moment(record.launched),
            record.task_id,
            record.status.message if record.status else "",
        )
        for record in tasks
    ]
    head = ("TASK", "STATE", "READY", "GOAL", "AGENT", "LAUNCHED", "ID", "MESSAGE")
    return columns(head, rows)


def _state(record: TaskRecord) -> str:
    return str(record.status.state) if record.status else "LAUNCHING"


def _check(record: TaskRecord) -> str:
    if record.status is None or record.status.ready is None:
        return ""
    return "yes" if record.status.ready else "no"


def moment(moment: datetime | None) -> str:
    """In the reader's own time zone."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else ""
