"""Reports of deployments of packages."""

from datetime import timedelta

from temporal_plans.cli.actions.showing import wait_for_plan
from temporal_plans.cli.terminal.object_preview_lines import object_preview_lines
from temporal_plans.cli.terminal.output import print_error, print_json, print_line, print_lines
from temporal_plans.cli.terminal.package_change_lines import change_lines
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.verbs.packages import PackageDeployment
from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.packages.configuration import rollback_request
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.packages import PackageDeployResult, PackagePreview


async def deploy_package(
    client: PlansClient,
    deployment: PackageDeployment,
    *,
    wait: bool,
    timeout: timedelta | None = None,
    json: bool = False,
) -> int:
    """Deploy, print the result and, with ``wait``, follow the plan to its end, no longer than
    ``timeout``; return the exit code."""
    result = await client.deploy_package(deployment)
    return await report_package(
        client, deployment.name, result, wait=wait, timeout=timeout, json=json
    )


async def report_package(
    client: PlansClient,
    service: str,
    result: PackageDeployResult,
    *,
    wait: bool,
    timeout: timedelta | None = None,
    json: bool = False,
) -> int:
    """Print what a deployment or rollback did, and follow its plan; return the exit code."""
    if json:
        print_json(result)
    if result.outcome.refused:
        print_error("\n".join(map(str, result.problems)) or result.outcome.message)
        return 1
    if not json:
        _print_result(service, result)
    if not result.outcome.changed:
        return await _tell_failed_plans(client, service) if wait else 0
    if not (wait and result.plan):
        return 0
    return await wait_for_plan(client, result.plan, quiet=json, timeout=timeout)


async def _tell_failed_plans(client: PlansClient, service: str) -> int:
    """Name the plans in ERROR: a deployment that changes nothing does not repeat them. Return the
    exit code: 1 when there are some."""
    records = await client.plans(service)
    failed = [one for one in records if one.status is Status.ERROR and not one.superseded]
    for one in failed:
        print_error(
            f"plan {one.workflow_id} is in ERROR, and a deployment that changes nothing does not "
            f"repeat it; `temporal plan explain {one.name} -s {service}` says why and what to do"
        )
    return 1 if failed else 0


async def report_package_preview(
    client: PlansClient, preview: PackagePreview, *, json: bool
) -> int:
    """Print the change that a deployment would make, and what its plan would do with each object;
    return the exit code: 1 when it would be refused. Raises ClusterUnreachable after the change."""
    if not json and preview.change is not None:
        print_lines(change_lines(preview.change))
    objects = await client.preview_objects(preview)
    if json:
        print_json({"change": preview.change, "problems": preview.problems, "objects": objects})
    elif objects is not None:
        print_lines(object_preview_lines(objects))
    problems = [str(one) for one in preview.problems]
    if objects is not None:
        problems += [*filter(None, [objects.problem]), *objects.problems]
    if problems:
        print_error("\n".join(problems))
    return 1 if problems else 0


def _print_result(service: str, result: PackageDeployResult) -> None:
    if result.change is not None:
        print_lines(change_lines(result.change))
    if not result.outcome.changed:
        print_line(f'Service "{service}": {result.outcome.message}.')
        return
    print_line(
        f'Service "{service}": configuration {result.number}, plan {result.plan} is under way.'
    )


async def roll_package_back(
    client: PlansClient,
    service: str,
    config: str,
    *,
    by: str,
    reason: str,
    dry_run: bool,
    wait: bool,
    timeout: timedelta | None = None,
    json: bool = False,
) -> int:
    """Deploy an earlier configuration of a package again, by default the one before that in force;
    return the exit code."""
    kept = await client.package_configurations(service)
    book = ConfigurationBook(kept.configurations, kept.target)
    found = book.find(config) if config else book.before()
    if dry_run:
        change = rollback_request(found)
        preview = await client.preview_change(service, change)
        return await report_package_preview(client, preview, json=json)
    result = await client.rollback_package(service, found.id, by=by, reason=reason)
    return await report_package(client, service, result, wait=wait, timeout=timeout, json=json)
