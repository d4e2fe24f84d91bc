"""Commands about promotions: releases that people bring to channels, or hold back."""

from typing import Annotated

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs.flags import ByOption, ConnectionFlags, JsonOption, ReasonOption


def promote(
    flags: ConnectionFlags,
    product: Annotated[str, typer.Argument(metavar="PRODUCT", help="A product, group:name.")],
    version: Annotated[str, typer.Argument(metavar="VERSION", help="The release.")],
    channels: Annotated[
        list[str] | None,
        typer.Option("--to", metavar="CHANNEL", help="To this channel; repeatable."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option("--like", metavar="VERSION", help="To all channels that have this release."),
    ] = None,
    up_to: Annotated[
        str | None,
        typer.Option("--up-to", metavar="CHANNEL", help="Through the pipeline, to this channel."),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole-pipeline", help="To all channels of the pipeline.")
    ] = False,
    pause: Annotated[
        str | None,
        typer.Option("--pause", metavar="CHANNEL", help="Pause its promotion to this channel."),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="CHANNEL", help="Resume its promotion to this channel."),
    ] = None,
    cancel: Annotated[
        str | None,
        typer.Option("--cancel", metavar="CHANNEL", help="Cancel its promotion to this channel."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="CHANNEL", help="The stage, where several lead there."),
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    json: JsonOption = False,
) -> None:
    """Bring a release to channels now, or pause, resume or cancel its promotion.

    By hand no soak, canary or window holds a release back; labels that a channel needs do. Needs
    --reason, but to resume.
    """
    from temporal_plans.cli.actions.fleet_showing import print_outcome
    from temporal_plans.cli.actions.running import call_client
    from temporal_plans.cli.inputs.author import whoami
    from temporal_plans.cli.inputs.fleet_names import product_of
    from temporal_plans.messages.promotions import PromoteRelease, PromotionVerb, SteerPromotion

    name, who = product_of(product), by or whoami()
    ways = {"--to": channels, "--like": like, "--up-to": up_to, "--whole-pipeline": whole}
    steps = {"pause": pause, "resume": resume, "cancel": cancel}
    given = [key for key, value in ways.items() if value]
    steers = [key for key, value in steps.items() if value is not None]
    if len(given) + len(steers) != 1:
        names = ", ".join([*ways, *(f"--{key}" for key in steps)])
        raise typer.BadParameter(f"give exactly one of: {names}")
    if source is not None and not steers:
        raise typer.BadParameter("is for --pause, --resume and --cancel", param_hint="--from")
    if steers:
        request = SteerPromotion(
            verb=PromotionVerb(steers[0]),
            version=version,
            target=steps[steers[0]] or "",
            source=source,
            by=who,
            reason=reason,
        )
        outcome = call_client(flags, lambda client: client.steer_promotion(name, request))
    else:
        wanted = PromoteRelease(
            version=version,
            channels=tuple(channels or ()),
            like=like,
            up_to=up_to,
            whole_pipeline=whole,
            by=who,
            reason=reason,
        )
        outcome = call_client(flags, lambda client: client.promote(name, wanted))
    print_outcome(outcome, as_json=json)


def add_to(fleet: typer.Typer) -> None:
    offer(
        fleet,
        promote,
        "promote",
        "temporal-plan fleet promote shop:web 1.2.3 --to stable --reason 'a security fix'",
        "temporal-plan fleet promote shop:web 1.2.3 --pause stable --reason 'a look at it'",
    )
