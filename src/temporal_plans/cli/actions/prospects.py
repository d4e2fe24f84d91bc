"""What a plan that was just started or restarted can't do."""

from temporal_plans.cli.terminal.output import print_error, print_line
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.values.text import shortened


async def tell_what_stops(client: PlansClient, plan_id: str) -> int:
    """Print why a plan does not run although it was restarted: its new run failed at once, its
    configuration was refused, it waits for an operator. Return the exit code. A plan that does not
    answer is left to ``explain``."""
    try:
        await client.show(plan_id)  # answered when a worker has taken the run
        run = await client.show(plan_id)
    except PlansError:
        return 0
    if run.ended is Ended.FAILED:
        print_error(f"its new run has failed: {run.why or 'no reason is known'}")
        return 1
    for line in _hindrances(run):
        print_line(line)
    return 0


def _hindrances(run: PlanRun) -> list[str]:
    if run.view.errors:
        first, *others = run.view.errors
        more = f" (and {len(others)} more)" if others else ""
        error = shortened(" ".join(first.split()), 300)
        return [f"Note: it stays in ERROR, which no restart removes: {error}{more}"]
    if run.ended is None and run.view.waiting:
        return ["Note: it waits:", *(f"- {text}" for text in run.view.waiting)]
    return []
