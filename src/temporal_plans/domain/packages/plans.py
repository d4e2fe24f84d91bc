"""Plans of packages: phases, steps, and the names of the tasks of each step."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, Protocol, TypeVar

from pydantic import AliasChoices, BeforeValidator, Field, PlainSerializer, WithJsonSchema

from temporal_plans.domain.packages.value import (
    ENTRIES_LIMIT,
    Flag,
    PackageValue,
    Text,
    as_text,
)
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.model import Duration
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Refusal, RefusedError

DEPLOY, UPDATE, UPGRADE, CLEANUP = "deploy", "update", "upgrade", "cleanup"
"""The plans with a meaning; a package must have the first."""

SERIAL, PARALLEL = "serial", "parallel"


def _from_text(value: object) -> object:
    text = as_text(value)
    return ({"name": text} if text else None) if isinstance(text, str) else text


def _to_text(spec: StrategySpec | None) -> object:
    if spec is None:
        return ""
    return spec.name if spec == StrategySpec(name=spec.name) else spec.model_dump(mode="json")


PackageStrategy = Annotated[
    StrategySpec | None,
    BeforeValidator(_from_text),
    PlainSerializer(_to_text),
    WithJsonSchema({"type": ["string", "object"]}),
]
"""A strategy as plans have it: its name, or a mapping of its name and settings. None where none is
written; as JSON an empty text."""

ANY_PLAN = "*"
"""In ``conflictsWith``: every plan."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Entry = TypeVar("_Entry", bound=_Named)


def _question(value: object) -> object:
    return "" if value is True else as_text(value)


DependsOn = Annotated[
    tuple[Text, ...],
    Field(
        max_length=ENTRIES_LIMIT,
        validation_alias=AliasChoices("dependsOn", "depends-on"),
        description="Siblings that must be complete first. Under `parallel` its parent gets the"
        " strategy `dependency`.",
    ),
]


class PackageStep(PackageValue):
    """A step: tasks that are executed together, or a wait."""

    name: Text = Field(description="Its name.")
    tasks: tuple[Text, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="The names of its tasks."
    )
    approval: Annotated[
        str | None,
        BeforeValidator(_question),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"const": True}]}),
    ] = Field(
        default=None,
        description="A question, or `true`: in place of tasks, the step waits until a person"
        " continues it.",
    )
    sleep: Duration | None = Field(
        default=None, description="In place of tasks, the step waits for this long."
    )
    depends_on: DependsOn = ()

    @property
    def waits(self) -> bool:
        """Whether it is to do something else than tasks."""
        return self.approval is not None or self.sleep is not None

    @property
    def is_ambiguous(self) -> bool:
        """Whether it is to do several things."""
        return sum([bool(self.tasks), self.approval is not None, self.sleep is not None]) > 1


class PackagePhase(PackageValue):
    """A phase of a plan."""

    name: Text = Field(description="Its name.")
    strategy: PackageStrategy = Field(
        default=None,
        description="`serial` or `parallel`, or another strategy of plans: its name, or a mapping"
        " with `name` and its settings.",
    )
    steps: tuple[PackageStep, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="Its steps."
    )
    depends_on: DependsOn = ()

    def step(self, name: str) -> PackageStep:
        """Return the step of this name. Raises RefusedError with names that resemble it."""
        return found(self.steps, name, "step")


def _without_any(value: object) -> object:
    return None if value in (ANY_PLAN, [ANY_PLAN]) else value


class PackagePlan(PackageValue):
    """A plan. The keys of its behaviour (``reentrant`` and below) may be written with hyphens."""

    strategy: PackageStrategy = Field(
        default=None,
        description="`serial` or `parallel`, or another strategy of plans: its name, or a mapping"
        " with `name` and its settings.",
    )
    phases: tuple[PackagePhase, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="Its phases."
    )
    reentrant: Flag = Field(
        default=True,
        description="Whether the plan may be restarted or stopped once a step of it has begun."
        " When false, both are refused unless they are forced.",
    )
    conflicts_with: Annotated[tuple[Text, ...] | None, BeforeValidator(_without_any)] = Field(
        default=None,
        max_length=ENTRIES_LIMIT,
        validation_alias=AliasChoices("conflictsWith", "conflicts-with"),
        description="The plans that must not run beside it. When absent, or `*`: all others."
        " Two plans run at the same time only if neither conflicts with the other.",
    )
    on_error: Literal["continue", "stop"] = Field(
        default="stop",
        validation_alias=AliasChoices("onError", "on-error"),
        description="What a step in ERROR means for the others. `stop`: nothing more begins."
        " `continue`: they go on.",
    )

    def conflicts(self, other: str) -> bool:
        """Return whether it says that another plan must not run beside it."""
        return self.conflicts_with is None or other in self.conflicts_with

    def phase(self, name: str) -> PackagePhase:
        """Return the phase of this name. Raises RefusedError with names that resemble it."""
        return found(self.phases, name, "phase")

    def steps(self) -> Iterator[tuple[PackagePhase, PackageStep]]:
        """Yield all steps, each with its phase."""
        for phase in self.phases:
            for step in phase.steps:
                yield phase, step


def exclude_each_other(plans: Mapping[str, PackagePlan], one: str, other: str) -> bool:
    """Return whether two plans must not run at the same time, as at least one of them says.

    A plan excludes itself, ``cleanup`` excludes all, and so does a plan that is not in ``plans``:
    nothing is known of it.
    """
    if one == other or CLEANUP in (one, other) or not {one, other} <= plans.keys():
        return True
    return plans[one].conflicts(other) or plans[other].conflicts(one)


def found(entries: Iterable[_Entry], name: str, noun: str) -> _Entry:
    """Return the entry of this name. Raises RefusedError with the names that resemble it."""
    known = list(entries)
    for entry in known:
        if entry.name == name:
            return entry
    raise unknown(noun, name, [entry.name for entry in known])


def unknown(noun: str, name: str, known: Iterable[str]) -> RefusedError:
    """Return the refusal of a name that is unknown."""
    return RefusedError(
        Refusal.of(Code.NOT_FOUND, f"no {noun} {name!r}", field=noun, fix=suggestion(name, known))
    )
