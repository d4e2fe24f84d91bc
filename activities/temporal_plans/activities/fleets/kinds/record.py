"""What an entity kind says: the steps that carry out a change of an entity."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.plans.plan import ParameterSpec, PhaseSpec
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.messages.fleets.payloads import ReleasePayload
from temporal_plans.messages.fleets.plans import ChangeOrder

PREPARE, CHANGE, VERIFY, REPORT = "prepare", "change", "verify", "report"
"""The phases of a plan of an entity, in order. The last one is the same for all kinds."""


@dataclass(frozen=True, slots=True)
class EntityChange:
    """A change of an entity: the order, and the files of the release that it leads to
    (``target``) and of the one that is installed (``current``); no files where there is none."""

    order: ChangeOrder
    target: ReleasePayload
    current: ReleasePayload

    @property
    def values(self) -> dict[str, str]:
        """Its values as texts: those of the environment's configuration, those of the entity's on
        top, and ENVIRONMENT, ENTITY, VERSION, FROM_VERSION and INTENT."""
        order = self.order
        return {
            **as_texts(order.environment_config),
            **as_texts(order.config),
            "ENVIRONMENT": order.environment,
            "ENTITY": order.entity,
            "VERSION": order.to.version or "",
            "FROM_VERSION": order.before.version or "",
            "INTENT": str(order.intent),
        }


SERIAL = StrategySpec()


@dataclass(frozen=True, slots=True)
class KindPlan:
    """The phases of a kind for a change. Those named ``prepare``, ``verify`` and ``report`` have
    these places; any other is in the place of ``change``. ``strategy`` orders the phases.
    ``health`` is that of the entity once they are complete; None: its kind can't tell."""

    phases: tuple[PhaseSpec, ...]
    strategy: StrategySpec = SERIAL
    parameters: tuple[ParameterSpec, ...] | None = None
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    health: Health | None = None


def _no_faults(files: Mapping[str, str]) -> Iterable[Reason]:
    return ()


@dataclass(frozen=True, slots=True)
class EntityKind:
    """A kind of entity.

    ``plan`` returns the steps of a change, and raises SpecError where the release has none for it.
    ``files`` are the names of the files by which a release belongs to the kind, and ``faults``
    yields what is wrong with the files of such a release, with the name of a file as the field.
    """

    name: str
    plan: Callable[[EntityChange], KindPlan]
    files: frozenset[str] = frozenset()
    faults: Callable[[Mapping[str, str]], Iterable[Reason]] = _no_faults


def as_texts(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a configuration as texts: JSON for what is neither text, number nor
    boolean."""
    return {key: _text(value) for key, value in config.items()}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return json_text(value)


def json_text(value: object) -> str:
    """Return a value as compact JSON with sorted keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
