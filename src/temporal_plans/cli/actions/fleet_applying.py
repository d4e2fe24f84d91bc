"""`temporal plan fleet apply`, `diff` and `export`."""

import difflib
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from temporal_plans.client.errors import Refused
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.fleets.environment import EnvironmentFacts
from temporal_plans.domain.fleets.suppressions import Origin, Suppression
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.values.model import Value, in_file_form
from temporal_plans.domain.values.refusal import Code, Reason, SpecError
from temporal_plans.loading.fleets.documents import (
    EnvironmentDocument,
    EventsDocument,
    ExpectationDocument,
    ProductDocument,
    StateDocument,
    SuppressionsDocument,
)
from temporal_plans.loading.fleets.files import FleetFile, load_documents
from temporal_plans.loading.fleets.snapshots import check_each
from temporal_plans.messages.fleets import (
    EntityFacts,
    EnvironmentApply,
    EnvironmentDeclaration,
    ProductApply,
    ProductDeclaration,
    ProductExport,
    ReportFacts,
    Suppress,
    Unsuppress,
)

_ORDER = (ProductDocument, EnvironmentDocument, StateDocument, SuppressionsDocument)
"""Products first: the first decision about an environment finds their releases."""


class Applied(NamedTuple):
    """What became of one document."""

    subject: str
    outcome: Outcome


def read_files(paths: Sequence[Path]) -> list[FleetFile]:
    """Return the documents of files that can be applied, in the order in which they are. Raises
    SpecError."""
    files = load_documents(paths)
    for file in files:
        if isinstance(file.value, ExpectationDocument | EventsDocument):
            fix = "use it with fleet decide or fleet simulate"
            reason = Reason(
                field="kind", problem="can't be applied", value=file.value.kind, fix=fix
            )
            raise SpecError([file.problem(reason)], source=file.source)
    check_each(files)
    return sorted(files, key=lambda file: [isinstance(file.value, kind) for kind in _ORDER][::-1])


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
        case _:
            pass


async def _suppress(
    client: PlansClient, environment: str, one: Suppression, by: str, reason: str
) -> Outcome:
    """Bring one suppression about: one of the same id is replaced when it differs."""
    if one.origin is not Origin.MANUAL:
        text = "is made by the environment itself"
        raise Refused.of(Code.INVALID, text, field="origin", value=str(one.origin))
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


def declaration(document: EnvironmentDocument) -> EnvironmentDeclaration:
    """Return a document of an environment as it is sent."""
    written = document.model_dump(mode="json", exclude={"kind"})
    return EnvironmentDeclaration.model_validate(written)


def product_fields(document: ProductDocument) -> dict[str, Any]:
    """Return what a document of a product says, as it is sent."""
    written = document.model_dump(mode="json", include={"name", "maintenance_window"})
    return {
        "product": ProductDeclaration.model_validate(written),
        "releases": document.releases,
        "recalls": document.recalls,
        "ramps": document.ramps,
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
    return _text("environment", declared)


def product_text(export: ProductExport) -> str:
    """Return a product as the YAML of its document."""
    own = in_file_form(export.product)
    parts = {
        name: [in_file_form(one, exclude_defaults=True) for one in getattr(export, name)]
        for name in ("releases", "recalls", "ramps")
    }
    return _yaml({"kind": "product", **own, **{name: one for name, one in parts.items() if one}})


def _text(kind: str, value: Value) -> str:
    return _yaml({"kind": kind, **in_file_form(value)})


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
        case _:
            return
    for line in _difference(subject, old, new):
        yield line


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
    ramps = export.ramps if document.ramps else ()
    return product_text(export.but(releases=releases, recalls=recalls, ramps=ramps))


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
    """Return the documents of ``environment/NAME`` and ``product/NAME``, or of all. Raises
    Refused."""
    if not subjects:
        products, environments = await client.products(), await client.environments()
        subjects = [
            *(f"product/{one}" for one in products),
            *(f"environment/{one}" for one in environments),
        ]
    return [await _exported(client, one) for one in subjects]


async def _exported(client: PlansClient, subject: str) -> str:
    kind, _, name = subject.partition("/")
    if kind == "product":
        return product_text(await client.product_document(name))
    return environment_text(await client.environment_document(name))
