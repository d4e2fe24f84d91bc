"""The normal form of plan files."""

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.command import CommandWork
from temporal_plans.domain.kinds.custom import CustomWork
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.plans.plan import ParameterSpec, PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.plan_file import normalise
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.strategy_check import find_cycle
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.plans import load_plan_text
from unit.loading.plan_files import ELEMENTS

# --- normalise -----------------------------------------------------------------------------------

_KEYS = (
    "name phases steps parameters strategy depends-on work kind activity sleep approval command"
    " env default cmd"
)
_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(_KEYS.split()), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(_json)
def test_normalising_never_fails_and_happens_once(document: object) -> None:
    before = json.dumps(document)
    normal = normalise(document)
    assert json.dumps(document) == before, "the argument was changed"
    assert normalise(normal) == normal


@given(_json)
def test_a_plan_is_made_or_refused(document: object) -> None:
    refused = False
    try:
        plan = PlanSpec.model_validate(document)
        assert PlanSpec.model_validate(plan.model_dump(mode="json")) == plan
    except ValidationError:
        refused = True
    loads = True
    try:
        load_plan_text(json.dumps(document))
    except SpecError:
        loads = False
    assert not (refused and loads)


_works: st.SearchStrategy[Work] = st.one_of(
    st.builds(ActivityWork, type=ELEMENTS, input=st.none() | st.integers()),
    st.builds(CommandWork, cmd=ELEMENTS, env=st.dictionaries(ELEMENTS, st.text())),
    st.builds(ApprovalWork, message=st.text()),
    st.builds(CustomWork, type=ELEMENTS),
)
_plans = st.builds(
    PlanSpec,
    name=ELEMENTS,
    parameters=st.none() | st.lists(st.builds(ParameterSpec, name=ELEMENTS)).map(tuple),
    strategy=st.builds(StrategySpec, name=st.sampled_from(["serial", "parallel", "dependency"])),
    phases=st.lists(
        st.builds(
            PhaseSpec,
            name=ELEMENTS,
            steps=st.lists(st.builds(StepSpec, name=ELEMENTS, work=_works), max_size=3).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
)


@given(_plans)
def test_a_normal_plan_comes_back_equal(plan: PlanSpec) -> None:
    for by_alias in (False, True):
        document = plan.model_dump(mode="json", by_alias=by_alias)
        assert normalise(document) == document
        assert PlanSpec.model_validate(document) == plan


@given(st.dictionaries(ELEMENTS, st.lists(ELEMENTS).map(tuple)))
def test_a_cycle_is_found_exactly_when_there_is_one(edges: dict[str, tuple[str, ...]]) -> None:
    cycle = find_cycle(edges)
    if cycle:
        assert cycle[0] == cycle[-1]
        assert all(to in edges[start] for start, to in pairwise(cycle))
        return
    left = {name: {n for n in wanted if n in edges} for name, wanted in edges.items()}
    while left:
        free = {name for name, wanted in left.items() if not wanted & left.keys()}
        assert free, "no cycle was found, but no order either"
        left = {name: wanted for name, wanted in left.items() if name not in free}
