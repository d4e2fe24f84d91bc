"""A start of a plan that became impossible after its validator had accepted it."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from temporal_plans.domain.owners.admission import RULES
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.owners import StartPlan
from temporal_plans.workflows.owners import owner
from temporal_plans.workflows.owners.owner import Owner


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"uninstalling": True}, Code.UNINSTALLING), ({"startable": {}}, Code.BY_ITSELF)],
)
def test_the_refusal_is_that_of_the_rule(
    changes: dict[str, Any], code: Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "workflow", SimpleNamespace(now=lambda: None))
    facts: dict[str, Any] = {
        "title": "service s",
        "uninstalling": False,
        "startable": {},
        "admission_rules": RULES,
        "plans": SimpleNamespace(records={"backup": None}),
        **changes,
    }
    service = type("Service", (Owner,), facts)
    start = owner.Owner._start_again  # pyright: ignore[reportPrivateUsage]
    outcome = start(cast(Owner, object.__new__(service)), StartPlan(plan="backup"))
    assert isinstance(outcome, Outcome)
    assert outcome.refusal is not None
    assert outcome.refusal.code == code
