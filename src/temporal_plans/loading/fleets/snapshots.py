"""Makes snapshots of documents: one for each environment.

Weekly schedules are expanded here, from some weeks before a time (for ramps under way) to some
after it.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, TypeVar

from temporal_plans.domain.fleets.commands import version_problem
from temporal_plans.domain.fleets.entities import (
    ConfigBlock,
    Entity,
    EntityOptions,
    EntitySettings,
    EntityState,
)
from temporal_plans.domain.fleets.environment import (
    Environment,
    EnvironmentFacts,
    EnvironmentOptions,
    EnvironmentSettings,
    Snapshot,
)
from temporal_plans.domain.fleets.plans import EntityConfig
from temporal_plans.domain.fleets.products import Admission, Product, Ramp
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.events import channel_refusal
from temporal_plans.domain.fleets.promotion.pipelines import Pipeline, pipeline_problems
from temporal_plans.domain.fleets.promotion.ramps import rollout_problems
from temporal_plans.domain.fleets.promotion.reports import EntityReport, reports_of
from temporal_plans.domain.fleets.promotion.soak import WEEKDAYS_BEFORE
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Dependency, Incompatibility, Release
from temporal_plans.domain.fleets.suppressions import Suppression, WindowOverride
from temporal_plans.domain.fleets.versions import in_range, parse_version
from temporal_plans.domain.fleets.windows import ALL_TIME_NAME, Window
from temporal_plans.domain.values.model import Value, file_key
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.fleets.documents import (
    ChannelDocument,
    ConfigBlockDocument,
    EntityDocument,
    EntityStateDocument,
    EnvironmentDocument,
    PipelineDocument,
    ProductDocument,
    StateDocument,
    SuppressionsDocument,
)
from temporal_plans.loading.fleets.files import FleetFile
from temporal_plans.loading.fleets.schedules import WeeklySchedule
from temporal_plans.messages.fleets.declarations import CONFIG_LIMIT, DURATION_LIMIT, DURATIONS

WINDOWS_BEFORE = timedelta(days=31)
WINDOWS_AFTER = timedelta(days=60)
"""How far schedules are expanded before and after a time."""

_D = TypeVar("_D", bound=Value)


@dataclass(frozen=True, slots=True)
class _Span:
    start: datetime
    end: datetime


def snapshots(
    files: Iterable[FleetFile], now: datetime, *, ahead: timedelta = timedelta()
) -> tuple[Snapshot, ...]:
    """Return a snapshot of each environment, by name. ``ahead``: how far beyond 60 days after
    ``now`` schedules are expanded. Raises SpecError for documents that contradict each other."""
    files = tuple(files)
    _check(files)
    span = _Span(now - WINDOWS_BEFORE, now + WINDOWS_AFTER + ahead)
    products = tuple(
        sorted((_product(one, span) for one in _of(files, ProductDocument)), key=lambda p: p.id)
    )
    environments = sorted(_of(files, EnvironmentDocument), key=lambda one: one.name)
    return tuple(
        Snapshot(environment=_environment(one, files, span), products=products)
        for one in environments
    )


def _of(files: Iterable[FleetFile], kind: type[_D]) -> list[_D]:
    return [file.value for file in files if isinstance(file.value, kind)]


def revision(content: Mapping[str, Any]) -> str:
    """Return a text that changes with a configuration."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def product_states(
    files: Iterable[FleetFile], now: datetime, *, ahead: timedelta = timedelta()
) -> tuple[ProductState, ...]:
    """Return the state of each product, by name, with what the documents report of its entities.
    Raises SpecError for documents that contradict each other."""
    files = tuple(files)
    reports: dict[str, list[EntityReport]] = {}
    products: tuple[Product, ...] = ()
    for snapshot in snapshots(files, now, ahead=ahead):
        products = snapshot.products
        for product, report in reports_of(snapshot.environment):
            reports.setdefault(product, []).append(report)
    if not products:
        span = _Span(now - WINDOWS_BEFORE, now + WINDOWS_AFTER + ahead)
        products = tuple(_product(one, span) for one in _of(files, ProductDocument))
    channels = tuple(
        Channel(**{name: getattr(one, name) for name in Channel.model_fields})
        for one in _of(files, ChannelDocument)
    )
    pipelines = {
        one.product: Pipeline(**{name: getattr(one, name) for name in Pipeline.model_fields})
        for one in _of(files, PipelineDocument)
    }
    runs = {one.name: one.promotions for one in _of(files, ProductDocument)}
    return tuple(
        ProductState(
            product=one,
            channels=channels,
            pipeline=pipelines.get(one.id),
            runs=runs[one.id],
            reports=tuple(reports.get(one.id, ())),
        )
        for one in sorted(products, key=lambda product: product.id)
    )


def _product(document: ProductDocument, span: _Span) -> Product:
    schedule = document.maintenance_window
    return Product(
        id=document.name,
        window=schedule.window(span.start, span.end) if schedule else None,
        weekdays=_weekdays(schedule, span),
        releases=document.releases,
        recalls=document.recalls,
        ramps=document.ramps,
        admissions=document.admissions,
        rollouts=document.rollouts,
    )


def _weekdays(schedule: WeeklySchedule | None, span: _Span) -> Window:
    """Return Monday to Friday in the time zone of a product's window, without it in UTC."""
    weekdays = WeeklySchedule(
        time_zone_name=schedule.time_zone_name if schedule else "UTC",
        time_intervals=("MONDAY/00:00-SATURDAY/00:00",),
    )
    return weekdays.window(span.start - WEEKDAYS_BEFORE, span.end)


def _environment(
    document: EnvironmentDocument, files: Sequence[FleetFile], span: _Span
) -> Environment:
    states = [one for one in _of(files, StateDocument) if one.environment == document.name]
    stops = [one for one in _of(files, SuppressionsDocument) if one.environment == document.name]
    settings = _environment_settings(document, span)
    reported = {name: state for one in states for name, state in one.entities.items()}
    names = sorted({*document.entities, *reported})
    facts = {name: getattr(one, name) for one in states for name in EnvironmentFacts.model_fields}
    return Environment(
        name=document.name,
        settings=settings,
        facts=EnvironmentFacts(**facts),
        entities=tuple(
            _entity(name, document.entities.get(name), reported.get(name)) for name in names
        ),
        suppressions=tuple(stop for one in stops for stop in one.suppressions),
        overrides=tuple(stop for one in stops for stop in one.overrides),
    )


def _environment_settings(document: EnvironmentDocument, span: _Span) -> EnvironmentSettings:
    given = document.settings
    shared = {name: getattr(given, name) for name in EnvironmentOptions.model_fields}
    return EnvironmentSettings(
        **shared,
        windows={
            name: schedule.window(span.start, span.end)
            for name, schedule in given.maintenance_windows.items()
        },
        downtime_window=given.downtime_window,
        no_downtime_window=given.no_downtime_window,
        config_revision=None if document.config is None else revision(document.config),
    )


@dataclass(frozen=True, slots=True)
class DeclaredSettings:
    """The settings of an environment and its entities; windows are known up to ``until``."""

    settings: EnvironmentSettings
    entities: Mapping[str, EntitySettings]
    until: datetime


def declared_settings(document: EnvironmentDocument, now: datetime) -> DeclaredSettings:
    """Return what a document of an environment says, without regard to which products there are.
    Raises SpecError for one that contradicts itself."""
    if problems := list(_environment_problems(document, None)):
        raise SpecError(problems, source=document.name)
    span = _Span(now - WINDOWS_BEFORE, now + WINDOWS_AFTER)
    entities = {name: _settings(one) for name, one in document.entities.items()}
    return DeclaredSettings(_environment_settings(document, span), entities, span.end)


def product_window(schedule: WeeklySchedule, now: datetime) -> Window:
    """Return the intervals of a product's window around a time."""
    return schedule.window(now - WINDOWS_BEFORE, now + WINDOWS_AFTER)


def product_weekdays(schedule: WeeklySchedule | None, now: datetime) -> Window:
    """Return the weekdays of a product around a time: Monday to Friday in the time zone of its
    window, without it in UTC."""
    return _weekdays(schedule, _Span(now - WINDOWS_BEFORE, now + WINDOWS_AFTER))


def _entity(
    name: str, document: EntityDocument | None, state: EntityStateDocument | None
) -> Entity:
    return Entity(
        name=name,
        settings=_settings(document) if document else None,
        state=_state(state) if state else EntityState(),
    )


def _settings(document: EntityDocument) -> EntitySettings:
    shared = {name: getattr(document, name) for name in EntityOptions.model_fields}
    config = {key: _block(block) for key, block in document.config.items()}
    return EntitySettings(**shared, config=config)


def _block(document: ConfigBlockDocument) -> ConfigBlock:
    return ConfigBlock(revision=revision(document.overrides), restart=document.restart)


def _state(document: EntityStateDocument) -> EntityState:
    shared = {name: getattr(document, name) for name in EntityState.model_fields}
    config = document.config
    if document.config_overrides is not None:
        config = config.but(revision=revision(document.config_overrides))
    if document.environment_config is not None:
        config = config.but(environment_revision=revision(document.environment_config))
    return EntityState(**shared).but(config=EntityConfig(**config.model_dump()))


# --- documents that contradict each other ---------------------------------------------------------


def _check(files: Sequence[FleetFile]) -> None:
    """Raise SpecError with the problems of the first file that has any."""
    environments = {one.name: one for one in _of(files, EnvironmentDocument)}
    products = {one.name: one for one in _of(files, ProductDocument)}
    seen: set[tuple[str, str]] = set()
    for file in files:
        problems = [*_duplicates(file, seen)]
        match file.value:
            case EnvironmentDocument():
                problems += _environment_problems(file.value, products)
            case ProductDocument():
                problems += _product_problems(file.value)
            case ChannelDocument():
                problems += _channel_problems(file.value)
            case PipelineDocument():
                problems += _unknown("product", file.value.product, products)
                problems += pipeline_problems(file.value)
            case StateDocument() | SuppressionsDocument():
                problems += _unknown("environment", file.value.environment, environments)
                if isinstance(file.value, StateDocument):
                    problems += _state_problems(file.value)
                else:
                    problems += _suppression_problems(file.value)
                    problems += _unknown_entities(file.value, files)
            case _:
                pass
        if problems:
            raise SpecError([file.problem(one) for one in problems], source=file.source)


def check_each(files: Iterable[FleetFile]) -> None:
    """Raise SpecError with the problems of the first document that contradicts itself, whatever
    other documents there are: a server has the others."""
    for file in files:
        problems: Iterable[Reason] = ()
        match file.value:
            case EnvironmentDocument():
                problems = _environment_problems(file.value, None)
            case ProductDocument():
                problems = _product_problems(file.value)
            case StateDocument():
                problems = _state_problems(file.value)
            case SuppressionsDocument():
                problems = _suppression_problems(file.value)
            case ChannelDocument():
                problems = _channel_problems(file.value)
            case PipelineDocument():
                problems = pipeline_problems(file.value)
            case _:
                pass
        if found := [file.problem(one) for one in problems]:
            raise SpecError(found, source=file.source)


def _channel_problems(document: ChannelDocument) -> Iterator[Reason]:
    refusal = channel_refusal(Channel(name=document.name, labels=document.labels))
    yield from refusal.reasons if refusal else ()


def _duplicates(file: FleetFile, seen: set[tuple[str, str]]) -> Iterator[Reason]:
    match file.value:
        case EnvironmentDocument() | ProductDocument() | ChannelDocument():
            name, field = file.value.name, "name"
        case PipelineDocument():
            name, field = file.value.product, "product"
        case StateDocument():
            name, field = file.value.environment, "environment"
        case SuppressionsDocument():
            yield from _stops_of_other_documents(file.value, seen)
            return
        case _:
            return
    kind = file.value.kind
    if (kind, name) in seen:
        yield Reason(
            field=field,
            problem=f"there is another {kind} document of it",
            value=name,
            fix="remove one of them",
        )
    seen.add((kind, name))


def _stops_of_other_documents(
    document: SuppressionsDocument, seen: set[tuple[str, str]]
) -> Iterator[Reason]:
    for field, names in (
        ("suppressions", [one.id for one in document.suppressions]),
        ("overrides", [one.id for one in document.overrides]),
    ):
        ids = [(f"{field} of {document.environment}", name) for name in names]
        for index, one in enumerate(ids):
            if one in seen:
                text, fix = "is there already in another document", "use another id"
                yield Reason(field=f"{field}.{index}.id", problem=text, value=one[1], fix=fix)
        seen.update(ids)


def _environment_problems(
    document: EnvironmentDocument, products: Mapping[str, object] | None
) -> Iterator[Reason]:
    windows = {ALL_TIME_NAME, *document.settings.maintenance_windows}
    if ALL_TIME_NAME in document.settings.maintenance_windows:
        yield Reason(
            field=f"settings.maintenance-windows.{ALL_TIME_NAME}",
            problem="is the name of the window that is always open",
            fix="use another name",
        )
    yield from document.settings.approvals.problems("settings.approvals")
    yield from _sizes(document)
    for name in ("downtime-window", "no-downtime-window"):
        window = getattr(document.settings, name.replace("-", "_"))
        yield from _unknown(f"settings.{name}", window, windows)
    for key, entity in document.entities.items():
        if products is not None:
            yield from _unknown(f"entities.{key}.product", entity.product, products)
        for name in ("downtime-window", "no-downtime-window"):
            window = getattr(entity, name.replace("-", "_"))
            if window is not None:
                yield from _unknown(f"entities.{key}.{name}", window, windows)


def _sizes(document: EnvironmentDocument) -> Iterator[Reason]:
    """Yield what is too much for the messages that carry the document."""
    for name in DURATIONS:
        if not timedelta() < getattr(document.settings, name) <= DURATION_LIMIT:
            text = f"must be more than 0, and at most {DURATION_LIMIT.days} days"
            value = str(getattr(document.settings, name))
            yield Reason(
                field=f"settings.{file_key(EnvironmentOptions, name)}", problem=text, value=value
            )
    configs = {"config": document.config or {}}
    for name, entity in document.entities.items():
        for key, block in entity.config.items():
            configs[f"entities.{name}.config.{key}.overrides"] = block.overrides
    for field, config in configs.items():
        size = len(json.dumps(config, default=str))
        if size > CONFIG_LIMIT:
            text = f"has more than {CONFIG_LIMIT} characters as JSON"
            fix = "keep large files elsewhere, and name them"
            yield Reason(field=field, problem=text, value=size, fix=fix)


def _state_problems(document: StateDocument) -> Iterator[Reason]:
    for name, entity in document.entities.items():
        command = entity.command
        if command is not None and (problem := version_problem(command)) is not None:
            yield problem.but(field=f"entities.{name}.command.{problem.field}")


def _unknown(field: str, name: str, known: Iterable[str]) -> Iterator[Reason]:
    names = list(known)
    if name not in names:
        noun = field.rpartition(".")[2]
        yield Reason(
            field=field,
            problem=f"there is no {noun.replace('-', ' ')} of this name",
            value=name,
            fix=suggestion(name, names) or f"add a document for the {noun}",
        )


def release_problems(release: Release, product: str, path: str) -> Iterator[Reason]:
    """Yield what is wrong with a release of a product; ``path`` is its path."""
    version = parse_version(release.version)
    if version is None or not version.orderable:
        yield Reason(
            field=f"{path}version",
            problem="has no order among versions, and can't be released",
            value=release.version,
            fix="use 1.2.3, 1.2.3-rc1 or a snapshot of those",
        )
    for number, one in enumerate(release.dependencies):
        if one.product == product:
            field = f"{path}dependencies.{number}.product"
            yield Reason(
                field=field, problem="is the product itself", value=one.product, fix="remove it"
            )
        yield from _empty_range(f"{path}dependencies.{number}.", one)
    for number, other in enumerate(release.incompatibilities):
        yield from _empty_range(f"{path}incompatibilities.{number}.", other)


def _empty_range(path: str, given: Dependency | Incompatibility) -> Iterator[Reason]:
    """Yield when no version can be in a range."""
    if given.minimum_version and not in_range(given.minimum_version, None, given.maximum_version):
        yield Reason(
            field=f"{path}minimum-version",
            problem=f"is newer than maximum-version, {given.maximum_version}",
            value=given.minimum_version,
            fix="give a range that has versions",
        )


def _product_problems(document: ProductDocument) -> Iterator[Reason]:
    versions: set[str] = set()
    for index, release in enumerate(document.releases):
        field = f"releases.{index}.version"
        yield from release_problems(release, document.name, f"releases.{index}.")
        if release.version in versions:
            yield Reason(
                field=field, problem="is there already", value=release.version, fix="remove one"
            )
        versions.add(release.version)
    yield from _repeated("recalls", [one.id for one in document.recalls])
    for index, recall in enumerate(document.recalls):
        yield from recall_problems(recall, f"recalls.{index}.")
    paced: set[tuple[str, str]] = set()
    for index, ramp in enumerate(document.ramps):
        if ramp.duration <= timedelta():
            yield Reason(field=f"ramps.{index}.duration", problem="must be more than 0")
        yield from _of_a_release(f"ramps.{index}", ramp, versions, paced)
    yield from rollout_problems(document.rollouts)
    admitted: set[tuple[str, str]] = set()
    for index, admission in enumerate(document.admissions):
        yield from _of_a_release(f"admissions.{index}", admission, versions, admitted)


def _of_a_release(
    path: str, entry: Ramp | Admission, versions: Iterable[str], seen: set[tuple[str, str]]
) -> Iterator[Reason]:
    """Yield why an entry about a release on a channel can't be used; add it to those seen."""
    known = list(versions)
    if entry.version not in known:
        yield Reason(
            field=f"{path}.version",
            problem="is not among the releases",
            value=entry.version,
            fix=suggestion(entry.version, known),
        )
    place = (entry.version, entry.channel)
    if place in seen:
        text = f"there is another entry for this version on {entry.channel}"
        yield Reason(field=f"{path}.version", problem=text, value=entry.version, fix="remove one")
    seen.add(place)


def recall_problems(recall: Recall, path: str) -> Iterator[Reason]:
    """Yield what is wrong with a recall; ``path`` is its path."""
    if recall.single and recall.end is not None:
        text = "a recall of a single version has no end"
        yield Reason(field=f"{path}end", problem=text, fix="remove end or single")
    end = parse_version(recall.end) if recall.end else None
    start = parse_version(recall.start)
    if end is not None and start is not None and (end.key or ()) <= (start.key or ()):
        yield Reason(field=f"{path}end", problem="is not newer than start", value=recall.end)


def _suppression_problems(document: SuppressionsDocument) -> Iterator[Reason]:
    for name, entries in (
        ("suppressions", document.suppressions),
        ("overrides", document.overrides),
    ):
        items: tuple[Suppression | WindowOverride, ...] = entries
        yield from _repeated(name, [one.id for one in items])
        for index, one in enumerate(items):
            if one.end is not None and one.end <= one.start:
                field = f"{name}.{index}.end"
                yield Reason(field=field, problem="must be after start", value=one.end.isoformat())


def _unknown_entities(
    document: SuppressionsDocument, files: Sequence[FleetFile]
) -> Iterator[Reason]:
    """Yield the entities that neither the environment nor its state has."""
    name = document.environment
    declared = (one.entities for one in _of(files, EnvironmentDocument) if one.name == name)
    reported = (one.entities for one in _of(files, StateDocument) if one.environment == name)
    known = {*chain(*declared), *chain(*reported)}
    stops: tuple[tuple[str, tuple[Suppression | WindowOverride, ...]], ...] = (
        ("suppressions", document.suppressions),
        ("overrides", document.overrides),
    )
    for field, entries in stops:
        for index, one in enumerate(entries):
            if one.entity is not None:
                yield from _unknown(f"{field}.{index}.entity", one.entity, known)


def _repeated(field: str, ids: Sequence[str]) -> Iterator[Reason]:
    for index, one in enumerate(ids):
        if one in ids[:index]:
            yield Reason(
                field=f"{field}.{index}.id",
                problem="is there already",
                value=one,
                fix="use another id",
            )
