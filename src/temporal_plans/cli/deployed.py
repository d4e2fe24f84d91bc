"""What came of a deployment or a rollback."""

from temporal_plans.cli.change_lines import change_lines, problem_text
from temporal_plans.cli.output import complain, print_json, say, say_all
from temporal_plans.cli.showing import waited
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.messages.service import DeployResult


async def told(
    client: PlansClient, service: str, result: DeployResult, *, wait: bool, json: bool = False
) -> int:
    """Print it and, when asked, follow the plan to its end; the exit code."""
    if json:
        print_json(result)
    if result.outcome.refused:
        change = result.change
        complain(problem_text(change) if change and change.problems else result.outcome.message)
        return 1
    if not json:
        _say(service, result)
    return await waited(client, result.plan, quiet=json) if wait and result.plan else 0


def _say(service: str, result: DeployResult) -> None:
    if not result.outcome.changed:
        say(f'Service "{service}": {result.outcome.message}.')
        return
    if result.change is not None:
        say_all(change_lines(result.change.pods))
    number = f"configuration {result.number}, " if result.number else ""
    say(f'Service "{service}": {number}plan {result.plan} is under way.')
