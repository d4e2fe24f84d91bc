"""Import the instances of a cluster, and say what became of each."""

from collections.abc import Iterator, Sequence

from temporal_plans.cli.actions.running import call_client
from temporal_plans.cli.inputs.author import whoami
from temporal_plans.cli.inputs.flags import ConnectionFlags
from temporal_plans.cli.terminal.output import print_json, print_line, print_lines
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.verbs.takeover import Imported

_KEEP = (
    "Keep the Instance resources until each service has applied its plan once: until then they own"
    " the objects."
)


def import_instances(
    flags: ConnectionFlags, cluster: str, namespace: str, *, dry_run: bool, json: bool
) -> int:
    """Return the exit code: 1 if an instance was not taken over."""

    async def imported(client: PlansClient) -> list[Imported]:
        return await client.import_instances(cluster, namespace, dry_run=dry_run, by=whoami())

    found = call_client(flags, imported)
    if json:
        print_json(found)
    elif not found:
        print_line("The cluster has no instances of packages.")
    else:
        print_lines(list(import_lines(found, dry_run=dry_run)))
    return 1 if any(one.problems for one in found) else 0


def import_lines(found: Sequence[Imported], *, dry_run: bool) -> Iterator[str]:
    """Yield what became of each instance, with the reasons and notes below it."""
    for one in found:
        yield f"{one.namespace}/{one.instance}: {_outcome(one, dry_run=dry_run)}"
        yield from (f"  {reason}" for reason in one.problems)
        yield from (f"  note: {note}" for note in one.notes)
    if any(one.service and not one.present for one in found) and not dry_run:
        yield _KEEP


def _outcome(one: Imported, *, dry_run: bool) -> str:
    if one.problems:
        return "not taken over"
    if one.present:
        return f"is the service {one.service} already"
    verb = "would be" if dry_run else "is"
    counts = f"{one.parameters} parameters, {one.plans} plans that ran, {one.objects} objects"
    return f"{verb} the service {one.service} ({one.package} {one.version}; {counts})"
