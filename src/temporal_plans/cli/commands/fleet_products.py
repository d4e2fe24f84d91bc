"""Commands about products: publish, releases, recall."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs.flags import ByOption, ConnectionFlags, JsonOption, ReasonOption

if TYPE_CHECKING:
    from temporal_plans.domain.fleets.recalls import Recall

_Product = Annotated[str, typer.Argument(metavar="PRODUCT", help="A product, group:name.")]


def publish(
    flags: ConnectionFlags,
    product: _Product,
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Such as 1.2.3 or 1.2.3-rc1.")],
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="What it carries: a svc.yml with its templates, or plan files by their names "
            "(install.yml, upgrade.yml, configure.yml, uninstall.yml, rollback.yml); repeatable. "
            "Or an operator package: its folder, archive (.tgz) or address.",
        ),
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option(
            "--manifest",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            readable=True,
            help="A file with what a release in a document has: dependencies, labels and so on.",
        ),
    ] = None,
    channels: Annotated[
        list[str] | None,
        typer.Option(
            "--channel",
            metavar="NAME",
            help="A channel beside those that its version comes to by itself; repeatable.",
        ),
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Publish a release. Environments that follow one of its channels hear of it at once.

    A release comes to DEV, RELEASE_CANDIDATE and RELEASE by itself, a candidate to the first two,
    any other version to DEV.
    """
    from temporal_plans.cli.actions.fleet_publishing import publication
    from temporal_plans.cli.actions.fleet_showing import print_outcome
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.fleet_names import product_of

    name = product_of(product)
    request = publication(version, files or (), manifest, channels or (), by or whoami(), reason)
    outcome = call_client(
        flags, lambda client: client.publish(name, request.publish, request.contents)
    )
    print_outcome(outcome, as_json=json)


def releases(flags: ConnectionFlags, product: _Product, json: JsonOption = False) -> None:
    """List the releases of a product, newest first, its recalls, and what promotion waits for."""
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.fleet_names import product_of
    from temporal_plans.cli.terminal.fleet_status_lines import release_lines
    from temporal_plans.cli.terminal.output import print_json, print_lines
    from temporal_plans.cli.terminal.promotion_lines import stage_lines

    name = product_of(product)
    found = call_client(flags, lambda client: client.releases(name))
    if json:
        print_json(found)
    else:
        print_lines(release_lines(found))
        print_lines(stage_lines(found))


def recall(
    flags: ConnectionFlags,
    product: _Product,
    start: Annotated[
        str | None,
        typer.Argument(metavar="[VERSION]", help="The oldest version that is recalled."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--before", metavar="VERSION", help="The first version that is not."),
    ] = None,
    later: Annotated[
        bool, typer.Option("--and-later", help="All later versions as well, also future ones.")
    ] = False,
    but: Annotated[
        list[str] | None,
        typer.Option("--except", metavar="VERSION", help="A version that may be used; repeatable."),
    ] = None,
    downgrade: Annotated[
        bool, typer.Option("--allow-downgrade", help="Go back where no newer release can be used.")
    ] = False,
    minimum: Annotated[
        str | None, typer.Option("--minimum", metavar="VERSION", help="The oldest one to go to.")
    ] = None,
    freeze: Annotated[
        str | None,
        typer.Option("--freeze-until", metavar="TIME", help="Change no version before then."),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Its id; edits one. [default: its version]"),
    ] = None,
    revert: Annotated[
        str | None, typer.Option("--revert", metavar="ID", help="Revert a recall instead.")
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Recall one release, or a range of them: entities leave it, and no other takes it.

    Entities go to a newer release, unless --allow-downgrade lets them go back.
    """
    from temporal_plans.cli.actions.fleet_publishing import recall_of
    from temporal_plans.cli.actions.fleet_showing import print_outcome
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.fleet_names import product_of
    from temporal_plans.cli.inputs.times import time_of
    from temporal_plans.messages.fleets.products import RecallRelease, RevertRecall

    name, who = product_of(product), by or whoami()
    if (revert is None) == (start is None):
        raise typer.BadParameter("give either a version, or --revert with the id of a recall")
    if revert is not None:
        gone = RevertRecall(id=revert, by=who, reason=reason)
        outcome = call_client(flags, lambda client: client.revert_recall(name, gone))
        print_outcome(outcome, as_json=json)
        return
    if end is not None and later:
        raise typer.BadParameter("--before and --and-later contradict each other")
    found: Recall = recall_of(
        {
            "id": id or start,
            "start": start,
            "end": end,
            "single": end is None and not later,
            "except-versions": but or (),
            "roll-off": {
                "allow-downgrade": downgrade,
                "minimum-release": minimum,
                "freeze-until": time_of(freeze, "--freeze-until"),
            },
        }
    )
    request = RecallRelease(recall=found, by=who, reason=reason)
    print_outcome(call_client(flags, lambda client: client.recall(name, request)), as_json=json)


def add_to(fleet: typer.Typer) -> None:
    offer(
        fleet,
        publish,
        "publish",
        "temporal-plan fleet publish shop:web 1.2.3 -f svc.yml --channel stable",
        "temporal-plan fleet publish shop:db 2.0.0-rc1 -f install.yml -f upgrade.yml",
    )
    offer(fleet, releases, "releases", "temporal-plan fleet releases shop:web")
    offer(
        fleet,
        recall,
        "recall",
        "temporal-plan fleet recall shop:web 1.2.3 --allow-downgrade --reason 'it leaks memory'",
        "temporal-plan fleet recall shop:web --revert 1.2.3",
    )
