"""`temporal plan fleet apply`, `diff` and `export`."""

import difflib
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml

from temporal_plans.client.errors import Refused
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.fleets.environment import EnvironmentFacts
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.pipelines import PipelineOptions
from temporal_plans.domain.fleets.suppressions import Origin, Suppression, WindowOverride
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.values.model import Value, in_file_form
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, SpecError
from temporal_plans.loading.fleets.documents import (
    ChannelDocument,
    EntityStateDocument,
    EnvironmentDocument,
    EventsDocument,
    ExpectationDocument,
    FleetDocument,
    PipelineDocument,
    ProductDocument,
    StateDocument,
    SuppressionsDocument,
)
from temporal_plans.loading.fleets.files import FleetFile, load_documents
from temporal_plans.loading.fleets.snapshots import check_each
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration, ProductDeclaration
from temporal_plans.messages.fleets.environments import EnvironmentApply
from temporal_plans.messages.fleets.product_views import ProductExport
from temporal_plans.messages.fleets.products import ProductApply
from temporal_plans.messages.fleets.reports import EntityFacts, ReportFacts
from temporal_plans.messages.fleets.stops import (
    OverrideWindows,
    RemoveOverride,
    Suppress,
    Unsuppress,
)
from temporal_plans.messages.promotions import SetChannel, SetPipeline

_ORDER = (
    *(ProductDocument, ChannelDocument, PipelineDocument),
    *(EnvironmentDocument, StateDocument, SuppressionsDocument),
)
"""Products first: channels are rules in all of them, and the first decision about an environment
finds their releases."""


_V = TypeVar("_V", bound=Value)


class Applied(NamedTuple):
    """What became of one document."""

    subject: str
    outcome: Outcome


def read_files(paths: Sequence[Path]) -> list[FleetFile]:
    """Return the documents of files that can be applied, in the order in which they are. Raises
    SpecError."""
    files = load_documents(paths)
    for file in files:
        if reasons := [file.problem(one) for one in _not_applied(file.value)]:
            raise SpecError(reasons, source=file.source)
    check_each(files)
    return sorted(files, key=lambda file: [isinstance(file.value, kind) for kind in _ORDER][::-1])


def _not_applied(document: FleetDocument) -> Iterator[Reason]:
    """Yield what `fleet decide` reads, and a server has no place for."""
    fix = "use it with fleet decide or fleet simulate"
    match document:
        case ExpectationDocument() | EventsDocument():
            yield Reason(field="kind", problem="can't be applied", value=document.kind, fix=fix)
        case SuppressionsDocument():
            for index, one in enumerate(document.suppressions):
                path = f"suppressions.{index}"
                if one.origin is not Origin.MANUAL:
                    text, value = "is made by the environment itself", str(one.origin)
                    yield Reason(field=f"{path}.origin", problem=text, value=value, fix=fix)
                elif one.target_version is not None:
                    text, value = "is for suppressions after failures", one.target_version
                    yield Reason(
                        field=f"{path}.target-version", problem=text, value=value, fix="remove it"
                    )
        case StateDocument():
            for name, entity in document.entities.items():
                yield from _not_reported(f"entities.{name}", entity)
        case _:
            pass


_OWN = {
    "soak": "is counted by the product itself, from what is reported",
    "command": "is given by people",
}
_INSTEAD = {
    "command": "give it with fleet command",
    "config_overrides": "write the configuration in the document of the environment",
    "environment_config": "write the configuration in the document of the environment",
}


def _not_reported(path: str, entity: EntityStateDocument) -> Iterator[Reason]:
    """Yield what a state says of an entity that a server does not take from others."""
    written = in_file_form(entity, exclude_unset=True)
    for key, value in written.items():
        field = key.replace("-", "_")
        if field not in EntityFacts.model_fields:
            problem = _OWN.get(field, "is known to the environment itself, and can't be applied")
            fix = _INSTEAD.get(field, "remove it, or use it with fleet decide or fleet simulate")
            yield Reason(field=f"{path}.{key}", problem=problem, value=value, fix=fix)
        elif value is None:
            problem = "can't be taken back"
            fix = "remove it: what is not given stays as it is"
            yield Reason(field=f"{path}.{key}", problem=problem, value="null", fix=fix)


async def apply_files(
    client: PlansClient, files: Iterable[FleetFile], by: str, reason: str
) -> list[Applied]:
    """Apply documents one after the other. Raises Refused at the first that is refused."""
    done: list[Applied] = []
    for file in files:
        try:
            done += [one async for one in _apply(client, file, by, reason)]
        except Refused as error:
            reasons = [file.problem(one) for one in error.reasons]
            raise SpecError(reasons, source=file.source, code=Code.INVALID) from error
    return done


async def _apply(
    client: PlansClient, file: FleetFile, by: str, reason: str
) -> AsyncIterator[Applied]:
    match file.value:
        case ProductDocument() as product:
            request = ProductApply(**product_fields(product), by=by, reason=reason)
            outcome = await client.apply_product(request)
            yield Applied(f"product {product.name}", outcome)
        case ChannelDocument() as channel:
            wanted = SetChannel(channel=rules_of(channel), by=by, reason=reason)
            found = await client.set_channel(wanted)
            yield Applied(f"channel {channel.name}", _in_products(found))
        case PipelineDocument() as pipeline:
            given = SetPipeline(pipeline=options_of(pipeline), by=by, reason=reason)
            outcome = await client.set_pipeline(pipeline.product, given)
            yield Applied(f"pipeline {pipeline.product}", outcome)
        case EnvironmentDocument() as environment:
            declared = EnvironmentApply(environment=declaration(environment), by=by, reason=reason)
            yield Applied(
                f"environment {environment.name}", await client.apply_environment(declared)
            )
        case StateDocument() as state:
            facts = ReportFacts(**_facts(state), by=by, reason=reason)
            outcome = await client.ask_environment(state.environment, facts)
            yield Applied(f"state of {state.environment}", outcome)
        case SuppressionsDocument() as stops:
            for one in stops.suppressions:
                outcome = await _suppress(client, stops.environment, one, by, reason)
                yield Applied(f"suppression {one.id} of {stops.environment}", outcome)
            for override in stops.overrides:
                outcome = await _override(client, stops.environment, override, by, reason)
                yield Applied(f"override {override.id} of {stops.environment}", outcome)
        case _:
            pass


async def _suppress(
    client: PlansClient, environment: str, one: Suppression, by: str, reason: str
) -> Outcome:
    """Bring one suppression about: one of the same id is replaced when it differs."""
    known = (await client.environment(environment)).suppressions
    former = next((other for other in known if other.id == one.id), None)
    same = ("entity", "start", "end", "cancel_active")
    if former is not None and all(getattr(former, name) == getattr(one, name) for name in same):
        text = f"suppression {one.id} is so already"
        return Outcome(result=Result.ALREADY, message=text)
    if former is not None:
        await client.ask_environment(environment, Unsuppress(id=one.id, by=by, reason=reason))
    request = Suppress(
        id=one.id,
        entity=one.entity,
        start=one.start,
        end=one.end,
        cancel_active=one.cancel_active,
        by=one.by or by,
        reason=one.reason or reason,
    )
    return await client.ask_environment(environment, request)


async def _override(
    client: PlansClient, environment: str, one: WindowOverride, by: str, reason: str
) -> Outcome:
    """Bring one override about: one of the same id is replaced when it differs."""
    known = (await client.environment(environment)).overrides
    former = next((other for other in known if other.id == one.id), None)
    same = ("entity", "admits", "start", "end")
    if former is not None and all(getattr(former, name) == getattr(one, name) for name in same):
        return Outcome(result=Result.ALREADY, message=f"override {one.id} is so already")
    request = OverrideWindows(
        id=one.id,
        entity=one.entity,
        admits=one.admits,
        start=one.start,
        duration=one.end - one.start,
        by=one.by or by,
        reason=one.reason or reason,
    )
    if not request.reason.strip():
        raise Refused.of(
            Code.INVALID, "is missing", field="reason", fix="say why, or give --reason"
        )
    if former is not None:
        await client.ask_environment(environment, RemoveOverride(id=one.id, by=by, reason=reason))
    return await client.ask_environment(environment, request)


def declaration(document: EnvironmentDocument) -> EnvironmentDeclaration:
    """Return a document of an environment as it is sent."""
    written = document.model_dump(mode="json", exclude={"kind"})
    return EnvironmentDeclaration.model_validate(written)


def rules_of(document: ChannelDocument) -> Channel:
    """Return a document of a channel as it is sent."""
    return Channel(**{name: getattr(document, name) for name in Channel.model_fields})


def options_of(document: PipelineDocument) -> PipelineOptions:
    """Return a document of a pipeline as it is sent."""
    fields = PipelineOptions.model_fields
    return PipelineOptions(**{name: getattr(document, name) for name in fields})


def _in_products(found: dict[str, Outcome]) -> Outcome:
    """Return what became of a channel in all products. Raises Refused when there are none."""
    if not found:
        text = "there are no products, which keep the rules of channels"
        raise Refused.of(Code.NOT_FOUND, text, fix="apply a document of a product before")
    new = sum(one.result is not Result.ALREADY for one in found.values())
    if not new:
        text = f"{len(found)} products have its rules already"
        return Outcome(result=Result.ALREADY, message=text)
    return Outcome(result=Result.DONE, message=f"{new} of {len(found)} products have new rules")


def product_fields(document: ProductDocument) -> dict[str, Any]:
    """Return what a document of a product says, as it is sent."""
    written = document.model_dump(mode="json", include={"name", "maintenance_window", "rollouts"})
    return {
        "product": ProductDeclaration.model_validate(written),
        "releases": document.releases,
        "recalls": document.recalls,
        "ramps": document.ramps,
        "admissions": document.admissions,
        "promotions": document.promotions,
    }


def _facts(state: StateDocument) -> dict[str, Any]:
    given = {
        name: getattr(state, name)
        for name in EnvironmentFacts.model_fields
        if name in state.model_fields_set
    }
    entities = {
        name: EntityFacts(
            **{
                field: getattr(one, field)
                for field in EntityFacts.model_fields
                if field in one.model_fields_set
            }
        )
        for name, one in state.entities.items()
    }
    return {"facts": EnvironmentFacts(**given) if given else None, "entities": entities}


# --- documents as text ----------------------------------------------------------------------------


def environment_text(declared: EnvironmentDeclaration) -> str:
    """Return an environment as the YAML of its document."""
    return _yaml({"kind": "environment", **in_file_form(declared, exclude_defaults=True)})


def product_text(export: ProductExport) -> str:
    """Return a product as the YAML of its document."""
    own = in_file_form(export.product, exclude_defaults=True)
    parts = {
        name: [in_file_form(one, exclude_defaults=True) for one in getattr(export, name)]
        for name in ("releases", "recalls", "ramps", "admissions", "promotions")
    }
    return _yaml({"kind": "product", **own, **{name: one for name, one in parts.items() if one}})


def pipeline_text(pipeline: PipelineOptions) -> str:
    """Return a pipeline as the YAML of its document."""
    return _yaml({"kind": "pipeline", **in_file_form(pipeline, exclude_defaults=True)})


def channel_text(channel: Channel) -> str:
    """Return the rules of a channel as the YAML of their document."""
    return _yaml({"kind": "channel", **in_file_form(channel, exclude_defaults=True)})


def _yaml(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)


async def changes(client: PlansClient, files: Iterable[FleetFile]) -> list[str]:
    """Return the lines in which documents differ from what the server has."""
    return [line for file in files async for line in _changes(client, file)]


async def _changes(client: PlansClient, file: FleetFile) -> AsyncIterator[str]:
    match file.value:
        case ProductDocument() as product:
            fields = product_fields(product)
            subject, new = f"product/{product.name}", product_text(ProductExport(**fields))
            old = await _or_nothing(_product_now(client, product))
        case EnvironmentDocument() as environment:
            subject = f"environment/{environment.name}"
            new = environment_text(declaration(environment))
            old = await _or_nothing(_environment_now(client, environment.name))
        case PipelineDocument() as pipeline:
            subject = f"pipeline/{pipeline.product}"
            new = pipeline_text(options_of(pipeline))
            old = await _or_nothing(_pipeline_now(client, pipeline))
        case ChannelDocument() as channel:
            for line in await _channel_changes(client, channel):
                yield line
            return
        case _:
            return
    for line in _difference(subject, old, new):
        yield line


async def _pipeline_now(client: PlansClient, document: PipelineDocument) -> str:
    """Return a pipeline as it is; when it was enabled is no difference unless the document says."""
    pipeline = (await client.releases(document.product)).pipeline
    if pipeline is None:
        return ""
    return pipeline_text(pipeline if document.since else pipeline.but(since=None))


async def _channel_changes(client: PlansClient, document: ChannelDocument) -> list[str]:
    """Return the differences of a channel, of the products that have them."""
    lines: list[str] = []
    new = channel_text(rules_of(document))
    for product in await client.products():
        known = (await client.releases(product)).channels
        old = "".join(channel_text(one) for one in known if one.name == document.name)
        lines += _difference(f"channel/{document.name} of {product}", old, new)
    return lines or ([] if await client.products() else list(_difference("channel", "", new)))


async def _environment_now(client: PlansClient, name: str) -> str:
    return environment_text(await client.environment_document(name))


async def _product_now(client: PlansClient, document: ProductDocument) -> str:
    """Return a product as it is, as far as its document says something: releases that were
    published otherwise are no difference, nor are channels that they came to."""
    export = await client.product_document(document.name)
    known = {one.version: one for one in export.releases}
    releases = tuple(
        one.but(channels=given.channels, published_at=given.published_at, scan=given.scan)
        for given in document.releases
        if (one := known.get(given.version)) is not None
    )
    ids = {one.id for one in document.recalls}
    recalls = tuple(one for one in export.recalls if one.id in ids)
    shown = export.but(
        releases=releases,
        recalls=recalls,
        ramps=export.ramps if document.ramps else (),
        admissions=_known(document.admissions, export.admissions, "version", "channel"),
        promotions=_known(document.promotions, export.promotions, "source", "target", "version"),
    )
    return product_text(shown)


def _known(given: tuple[_V, ...], known: tuple[_V, ...], *names: str) -> tuple[_V, ...]:
    """Return the given values of which some are known already: these are not taken again."""
    keys = {tuple(getattr(one, name) for name in names) for one in known}
    return tuple(one for one in given if tuple(getattr(one, name) for name in names) in keys)


async def _or_nothing(text: Awaitable[str]) -> str:
    try:
        return await text
    except Refused as error:
        if error.refusal.code == Code.NOT_FOUND:
            return ""
        raise


def _difference(subject: str, old: str, new: str) -> Iterator[str]:
    yield from difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{subject} (now)", f"{subject} (applied)", lineterm=""
    )


async def exported(client: PlansClient, subjects: Sequence[str]) -> list[str]:
    """Return the documents of ``KIND/NAME``, the kinds ``SUBJECTS``, or of all. Raises Refused."""
    if subjects:
        return [await _exported(client, one) for one in subjects]
    products = [await client.product_document(one) for one in await client.products()]
    channels = {channel.name: channel for one in products for channel in one.channels}
    return [
        *(product_text(one) for one in products),
        *(channel_text(channels[name]) for name in sorted(channels)),
        *(pipeline_text(one.pipeline) for one in products if one.pipeline is not None),
        *[await _environment_now(client, one) for one in await client.environments()],
    ]


SUBJECTS = ("environment", "product", "pipeline", "channel")


async def _exported(client: PlansClient, subject: str) -> str:
    kind, _, name = subject.partition("/")
    if kind == "product":
        return product_text(await client.product_document(name))
    if kind == "pipeline":
        pipeline = (await client.product_document(name)).pipeline
        if pipeline is None:
            raise Refused.of(Code.NOT_FOUND, "has no pipeline", field="product", value=name)
        return pipeline_text(pipeline)
    if kind == "channel":
        return await _exported_channel(client, name)
    return await _environment_now(client, name)


async def _exported_channel(client: PlansClient, name: str) -> str:
    known: set[str] = set()
    for product in await client.products():
        channels = {one.name: one for one in (await client.releases(product)).channels}
        if name in channels:
            return channel_text(channels[name])
        known |= channels.keys()
    fix = suggestion(name, known) or "channels without rules need no document"
    raise Refused.of(Code.NOT_FOUND, "has no rules", field="channel", value=name, fix=fix)
