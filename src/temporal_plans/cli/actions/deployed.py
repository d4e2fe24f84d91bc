"""Reports of deployments and rollbacks."""

from datetime import timedelta

from temporal_plans.cli.actions.showing import wait_for_plan
from temporal_plans.cli.terminal.change_lines import change_lines, problem_text, show_change
from temporal_plans.cli.terminal.output import print_error, print_json, print_line, print_lines
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.messages.services import ChangeView, DeployResult


async def report_deployment(
    client: PlansClient,
    service: str,
    result: DeployResult,
    *,
    wait: bool,
    timeout: timedelta | None = None,
    json: bool = False,
) -> int:
    """Print the result and, with ``wait``, follow the plan to its end, no longer than ``timeout``;
    return the exit code."""
    if json:
        print_json(result)
    if result.outcome.refused:
        change = result.change
        print_error(problem_text(change) if change and change.problems else result.outcome.message)
        return 1
    if not json:
        _print_result(service, result)
    if not (wait and result.plan):
        return 0
    return await wait_for_plan(client, result.plan, quiet=json, timeout=timeout)


def report_preview(change: ChangeView, *, json: bool) -> int:
    """Print what would change, and the plans in their first state; return the exit code."""
    if json:
        print_json(change)
    else:
        show_change(change, plans=True)
    if change.problems:
        print_error(problem_text(change))
    return 1 if change.problems else 0


def _print_result(service: str, result: DeployResult) -> None:
    if not result.outcome.changed:
        print_line(f'Service "{service}": {result.outcome.message}.')
        return
    if result.change is not None:
        print_lines(change_lines(result.change))
    number = f"configuration {result.number}, " if result.number else ""
    print_line(f'Service "{service}": {number}plan {result.plan} is under way.')
