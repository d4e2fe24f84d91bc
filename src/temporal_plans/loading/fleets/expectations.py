"""Compares decisions with what documents expect."""

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from temporal_plans.domain.fleets.decisions import Decision, VerdictState
from temporal_plans.domain.fleets.promotion.decisions import ProductDecision, PromotionDecision
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.loading.fleets.documents import ExpectationDocument, ExpectedDecision


def unmet(expected: ExpectationDocument, decisions: Iterable[Decision]) -> Iterator[Reason]:
    """Yield what is not as expected."""
    by_name = {one.entity: one for one in decisions}
    for name, one in expected.decisions.items():
        found = by_name.get(name)
        if found is None:
            yield Reason(
                field=f"decisions.{name}",
                problem="there is no such entity",
                fix=suggestion(name, by_name),
            )
        else:
            yield from _differences(f"decisions.{name}", one, found)


def unmet_promotions(
    expected: ExpectationDocument, products: Iterable[ProductDecision]
) -> Iterator[Reason]:
    """Yield what is not as expected of promotions."""
    products = tuple(products)
    by_name: dict[str, PromotionDecision] = {}
    for product in products:
        for one in product.promotions:
            by_name.setdefault(f"{product.product}/{one.version}/{one.target}", one)
    for name, wanted in expected.promotions.items():
        found = by_name.get(name)
        if found is None:
            problem = "no stage has such a release to promote"
            fix = suggestion(name, by_name)
            yield Reason(field=f"promotions.{name}", problem=problem, fix=fix)
        else:
            yield from _compared(f"promotions.{name}", wanted, _promotion_facts(found))
    if expected.tests is not None:
        tests = tuple(
            sorted(f"{one.environment}/{one.entity}" for p in products for one in p.tests)
        )
        if tests != tuple(sorted(expected.tests)):
            problem = f"expected {_text(expected.tests)}"
            yield Reason(field="tests", problem=problem, value=_text(tests))


def _promotion_facts(found: PromotionDecision) -> Mapping[str, object]:
    return {
        "outcome": found.outcome,
        "code": found.code,
        "failed": {
            one.id: one.code for one in found.conditions if one.state is VerdictState.FAILED
        },
        "healthy": found.canaries.healthy if found.canaries else None,
        "unhealthy": found.canaries.unhealthy if found.canaries else None,
        "next_evaluation_at": found.next_evaluation_at,
    }


def _differences(path: str, wanted: ExpectedDecision, found: Decision) -> Iterator[Reason]:
    return _compared(path, wanted, _facts(found))


def _compared(path: str, wanted: Value, actual: Mapping[str, object]) -> Iterator[Reason]:
    for name in type(wanted).model_fields:
        expected = getattr(wanted, name)
        if expected is not None and expected != actual[name]:
            yield Reason(
                field=f"{path}.{name.replace('_', '-')}",
                problem=f"expected {_text(expected)}",
                value=_text(actual[name]),
            )


def _facts(found: Decision) -> Mapping[str, object]:
    plan = found.plan
    return {
        "outcome": found.outcome,
        "code": found.code,
        "intent": plan.intent if plan else None,
        "to": plan.to if plan else None,
        "config_key": plan.config_key if plan else None,
        "downtime": plan.downtime if plan else None,
        "secrets": plan.secrets if plan else None,
        "skipped": plan.skipped if plan else None,
        "failed": {
            one.id: one.code for one in found.constraints if one.state is VerdictState.FAILED
        },
        "rejected": {one.version: one.code for one in found.rejected_targets},
        "waiting": found.waiting.plan.intent if found.waiting else None,
        "notes": tuple(one.code for one in found.notes),
        "discarded": found.discarded.reason if found.discarded else None,
        "cancel": found.cancel,
        "next_evaluation_at": found.next_evaluation_at,
    }


def _text(value: object) -> str:
    if isinstance(value, dict):
        return (
            ", ".join(f"{key}: {entry}" for key, entry in cast(dict[str, object], value).items())
            or "none"
        )
    if isinstance(value, tuple):
        return ", ".join(map(str, cast(tuple[object, ...], value))) or "none"
    return "none" if value is None else str(value)
