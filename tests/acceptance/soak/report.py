"""What is needed to understand a soak test that failed."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from temporalio.service import RPCError

from acceptance.histories import keep_histories
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.domain.plans.status import Status

if TYPE_CHECKING:
    from acceptance.soak.drill import Soak


async def report(soak: "Soak", faults: Iterable[str]) -> str:
    """The faults, the seed to try again with, the timeline, and the state of everything."""
    try:
        kept = await keep_histories(soak.cluster.server.address, soak.kept)
    except (RPCError, RuntimeError):  # no server answers
        kept = 0
    lines = [
        f"soak test with --soak-seed {soak.seed}; {kept} histories are in {soak.kept}:",
        *(f"- {fault}" for fault in faults),
        "",
        "timeline:",
        *soak.ledger.lines,
    ]
    client = await soak.cluster.client()
    for name in soak.operators.services:
        lines += ["", f"service {name}:"]
        try:
            lines += await _service(client, name)
        except (PlansError, ServerUnreachableError, RPCError) as error:
            lines.append(f"  not to be had: {error}")
    lines += ["", "pool:"]
    try:
        pool = await client.pool()
    except (PlansError, ServerUnreachableError, RPCError) as error:
        return "\n".join([*lines, f"  not to be had: {error}"])
    lines += [f"  {one.info.id} {one.state} {one.reservations} reservations" for one in pool.agents]
    lines += [f"  {one.key} on {one.agent}: {one.id}" for one in pool.reservations]
    lines += [f"  waits: {one.requirement.key}: {one.refusals}" for one in pool.waiting]
    lines += [f"  runs: {task}" for task in sorted(soak.cluster.running())]
    return "\n".join(lines)


async def _service(client: PlansClient, name: str) -> list[str]:
    lines: list[str] = []
    status = await client.service(name)
    lines.append(f"  configuration {status.number}, errors {status.errors}, {status.leases}")
    for plan in status.plans:
        lines.append(f"  plan {plan.name} run {plan.run} {plan.status} open={plan.open}")
        if plan.status is not Status.COMPLETE:
            lines += await _plan(client, plan.workflow_id)
    for pod in await client.pods(name):
        held = pod.reservation.id if pod.reservation else "nothing"
        lines.append(
            f"  pod {pod.name} on {pod.agent or 'no agent'} holds {held}, wanted={pod.wanted}"
        )
        for task in pod.tasks:
            said = f"{task.status.state} ({task.status.message})" if task.status else "no status"
            marks = " ".join(
                mark
                for mark, is_so in (
                    ("paused", task.paused),
                    ("permanently-failed", task.permanently_failed),
                )
                if is_so
            )
            owner = f" owner {task.owner}" if task.owner else ""
            lines.append(f"    {task.task_id} on {task.agent} {said} {marks}{owner}")
    return lines


async def _plan(client: PlansClient, plan_id: str) -> list[str]:
    try:
        view = (await client.show(plan_id)).view
        explained = await client.explain(plan_id)
    except PlansError as error:
        return [f"    not to be had: {error}"]
    lines = [f"    {error}" for error in view.errors]
    for phase in view.phases:
        lines.append(f"    {phase.name} {phase.status}")
        lines += [
            f"      {step.name} {step.status} {step.message} {'forced' if step.forced else ''}"
            for step in phase.steps
        ]
    return [*lines, *(f"    why: {one}" for one in explained.explanations)]
