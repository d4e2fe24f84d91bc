"""Leases of assets (behaviour 4.2, design 4)."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from properties import examples
from temporal_plans.domain.plans.leases import (
    Key,
    Lease,
    LeaseState,
    Settlement,
    drop_plan,
    other_holder,
    request,
)

DEPLOY, RECOVERY, CUSTOM = 0, 1, 3


def lease(
    plan: str, step: int, tasks: str = "a", *, pod: str = "web", index: int = 0, priority: int = 0
) -> Lease:
    """Phase ``svc/<plan>/p`` wants the tasks (a letter each) of a pod instance."""
    return Lease(
        plan=plan,
        phase=f"svc/{plan}/p",
        step=step,
        pod=pod,
        index=index,
        tasks=tuple(tasks),
        priority=priority,
    )


def want(state: LeaseState, *wants: Lease) -> Settlement:
    return request(state, wants, (), wants[0].phase, False)


def give(state: LeaseState, plan: str, *steps: int, ended: bool = False) -> Settlement:
    return request(state, (), steps, f"svc/{plan}/p", ended)


def keys(leases: Iterable[Lease]) -> list[tuple[str, int]]:
    return [(lease.plan, lease.step) for lease in leases]


EMPTY = LeaseState()
D0 = lease("deploy", 0)
R0 = lease("recovery", 0, priority=RECOVERY)
C0 = lease("custom", 0, priority=CUSTOM)


def test_the_first_gets_it_and_keeps_it_from_a_better_one() -> None:
    """Behaviour 4.2: who is already working keeps it, whatever the order of the plans."""
    held = want(EMPTY, C0)
    assert (held.grants, held.held) == ([C0], {})
    better = want(held.state, D0)
    assert (better.grants, better.held) == ([], {D0.key: C0.phase})
    assert (better.state.held, better.state.wanted) == ((C0,), (D0,))


def test_giving_back_grants_the_best_of_those_who_wait() -> None:
    state = want(want(want(EMPTY, C0).state, R0).state, D0).state
    freed = give(state, "custom", 0)
    assert (freed.grants, freed.state.wanted) == ([D0], (R0,))
    freed = give(freed.state, "deploy", ended=True)
    assert (freed.grants, freed.state.wanted) == ([R0], ())


def test_who_came_first_goes_first_among_equals() -> None:
    first, second = lease("seed", 0, priority=CUSTOM), lease("backup", 0, priority=CUSTOM)
    state = want(want(want(EMPTY, D0).state, first).state, second).state
    assert give(state, "deploy", 0).grants == [first]


@pytest.mark.parametrize(
    ("owner", "task", "holder"),
    [
        pytest.param("svc/custom/p", "a", "", id="the-phase"),
        pytest.param("svc/custom/p/s", "a", "", id="its-step"),
        pytest.param("svc/custom/p2/s", "a", "svc/custom/p", id="another-phase"),
        pytest.param("svc/deploy/p/s", "a", "svc/custom/p", id="another-plan"),
        pytest.param("svc/deploy/p/s", "b", "", id="another-task"),
    ],
)
def test_who_else_works_on_an_asset(owner: str, task: str, holder: str) -> None:
    assert other_holder(want(EMPTY, C0).state, owner, [("web", 0, task)]) == holder


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lease("custom", 0, "b"), id="another-task"),
        pytest.param(lease("custom", 0, index=1), id="another-instance"),
        pytest.param(lease("custom", 0, pod="db"), id="another-pod"),
        pytest.param(lease("custom", 0, ""), id="no-task"),
    ],
)
def test_disjoint_assets_are_granted_side_by_side(other: Lease) -> None:
    assert want(want(EMPTY, D0).state, other).grants == [other]
    assert not D0.conflicts(other)


def test_one_task_in_common_is_enough() -> None:
    both = lease("custom", 0, "ab")
    assert both.conflicts(D0)
    assert want(want(EMPTY, D0).state, both).held == {both.key: D0.phase}


def test_steps_of_one_phase_exclude_each_other_too() -> None:
    settled = want(EMPTY, lease("deploy", 0), lease("deploy", 1))
    assert (keys(settled.grants), settled.held) == (
        [("deploy", 0)],
        {("svc/deploy/p", 1): "svc/deploy/p"},
    )
    assert keys(give(settled.state, "deploy", 0).grants) == [("deploy", 1)]


def test_a_want_of_many_is_not_overtaken_by_a_worse_one_of_few() -> None:
    """deploy wants a and b while a is held: a custom plan does not get b before it."""
    both = lease("deploy", 1, "ab")
    few = lease("custom", 1, "b", priority=CUSTOM)
    state = want(want(EMPTY, C0).state, both).state
    blocked = want(state, few)
    assert (blocked.grants, blocked.held) == ([], {few.key: both.phase})
    assert give(blocked.state, "custom", 0).grants == [both]


def test_but_by_a_better_one() -> None:
    both, few = lease("custom", 1, "ab", priority=CUSTOM), lease("deploy", 1, "b")
    state = want(want(EMPTY, R0).state, both).state
    assert want(state, few).grants == [few]


def test_asking_again_changes_nothing_and_tells_again() -> None:
    state = want(want(EMPTY, D0).state, C0).state
    again = want(state, D0)
    assert (again.state, again.grants, again.held) == (state, [D0], {})
    again = want(state, C0)
    assert (again.state, again.grants, again.held) == (state, [], {C0.key: D0.phase})


def test_asking_again_does_not_lose_the_place() -> None:
    first, second = lease("seed", 0), lease("backup", 0)
    state = want(want(want(EMPTY, C0).state, first).state, second).state
    state = want(state, first).state
    assert keys(state.wanted) == [("seed", 0), ("backup", 0)]


def test_a_new_ticket_keeps_what_is_held_and_is_told() -> None:
    """The step gave back and asked again, and its phase's first word was lost."""
    state = want(want(EMPTY, D0).state, C0).state
    newer = D0.but(ticket=1)
    again = want(state, newer)
    assert (again.grants, again.held) == ([newer], {})
    assert again.state == LeaseState(held=(newer,), wanted=(C0,))


def test_a_new_ticket_keeps_the_place_among_those_who_wait() -> None:
    first, second = lease("seed", 0), lease("backup", 0)
    state = want(want(want(EMPTY, C0).state, first).state, second).state
    newer = first.but(ticket=3)
    again = want(state, newer)
    assert (again.grants, again.held) == ([], {newer.key: C0.phase})
    assert again.state.wanted == (newer, second)


def test_asking_for_other_tasks_gives_the_old_ones_back() -> None:
    state = want(want(EMPTY, D0).state, C0).state
    changed = want(state, lease("deploy", 0, "b"))
    assert sorted(keys(changed.grants)) == [("custom", 0), ("deploy", 0)]
    assert [tuple(held.tasks) for held in changed.state.held] == [("b",), ("a",)]


def test_giving_back_and_asking_in_one_request_waits_behind_the_others() -> None:
    state = want(want(EMPTY, D0).state, R0).state
    worse = D0.but(priority=CUSTOM)
    settled = request(state, [worse], [0], worse.phase, False)
    assert (settled.grants, settled.held) == ([R0], {worse.key: R0.phase})


def test_a_want_can_be_withdrawn() -> None:
    state = want(want(EMPTY, D0).state, C0).state
    assert give(state, "custom", 0).state == LeaseState(held=(D0,))
    assert give(state, "custom", ended=True).state == LeaseState(held=(D0,))


@pytest.mark.parametrize(
    "state", [EMPTY, LeaseState(held=(D0,), wanted=(C0,))], ids=["empty", "full"]
)
def test_giving_back_what_one_has_not_is_harmless(state: LeaseState) -> None:
    assert give(state, "nobody", 0, 7, ended=True) == Settlement(state, [], {})


def test_only_the_phase_that_says_so_gives_back() -> None:
    state = want(want(EMPTY, D0).state, lease("custom", 1, "b")).state
    assert keys(give(state, "custom", 0).state.held) == [("deploy", 0), ("custom", 1)]


def test_dropping_a_plan_gives_everything_of_it_back() -> None:
    other_phase = lease("deploy", 0, "b").but(phase="svc/deploy/q")
    state = want(want(EMPTY, D0).state, other_phase).state
    state = want(want(state, C0).state, lease("custom", 1, "b", priority=CUSTOM)).state
    state = want(state, lease("deploy", 5)).state
    dropped = drop_plan(state, "deploy")
    assert keys(dropped.grants) == [("custom", 0), ("custom", 1)]
    assert (keys(dropped.state.held), dropped.state.wanted) == (keys(dropped.grants), ())
    assert drop_plan(dropped.state, "deploy") == Settlement(dropped.state, [], {})


def test_the_book_is_carried_as_json() -> None:
    state = want(want(EMPTY, D0).state, C0).state
    assert LeaseState.model_validate_json(state.model_dump_json()) == state


# --- properties -----------------------------------------------------------------------------------

PLANS = {"deploy": 0, "recovery": 1, "decommission": 2, "seed": 3, "backup": 3}
leases = st.builds(
    lease,
    st.sampled_from(sorted(PLANS)),
    st.integers(0, 3),
    st.sets(st.sampled_from("abc"), min_size=1).map(lambda tasks: "".join(sorted(tasks))),
    pod=st.sampled_from(["web", "db"]),
    index=st.integers(0, 1),
).map(lambda made: made.but(priority=PLANS[made.plan]))
tickets = st.integers(0, 2)


class Book(RuleBasedStateMachine):
    """Any sequence of requests. ``model`` is who was told that he holds what."""

    def __init__(self) -> None:
        super().__init__()
        self.state = LeaseState()
        self.told: dict[Key, Lease] = {}

    def settle(self, settled: Settlement, gone: set[Key], asked: set[Key]) -> None:
        before = self.state
        for key in gone:
            self.told.pop(key, None)
        self.state = settled.state
        for granted in settled.grants:
            self.told[granted.key] = granted
        waiting = {want.key for want in self.state.wanted}
        assert set(settled.held) == waiting & asked
        kept = {held.key for held in before.held} - gone - asked
        assert kept <= {held.key for held in self.state.held}, "taken from who holds it"

    @rule(key=st.integers(0, 20), ticket=tickets)
    def ask_again(self, key: int, ticket: int) -> None:
        """The same lease with another ticket: whoever has it keeps it, under the new one."""
        known = [*self.state.held, *self.state.wanted]
        if not known:
            return
        again = known[key % len(known)].but(ticket=ticket)
        places = [lease.key for lease in self.state.wanted]
        settled = request(self.state, [again], (), again.phase, False)
        self.settle(settled, set(), {again.key})
        assert [lease.key for lease in self.state.wanted] == places
        assert again in (*self.state.held, *self.state.wanted)

    @rule(wants=st.lists(leases, max_size=4), steps=st.sets(st.integers(0, 3)), ended=st.booleans())
    def ask(self, wants: list[Lease], steps: set[int], ended: bool) -> None:
        phase = wants[0].phase if wants else "svc/deploy/p"
        wants = [want for want in wants if want.phase == phase]
        gone = {(phase, step) for step in (range(4) if ended else steps)}
        newest = {want.key: want for want in wants}
        changed = {key for key, want in newest.items() if not want.same(self.told.get(key, want))}
        settled = request(self.state, wants, steps, phase, ended)
        self.settle(settled, gone | changed, set(newest))

    @rule(plan=st.sampled_from(sorted(PLANS)))
    def drop(self, plan: str) -> None:
        gone = {key for key, held in self.told.items() if held.plan == plan}
        self.settle(drop_plan(self.state, plan), gone, set())

    @rule()
    def carry(self) -> None:
        self.state = LeaseState.model_validate_json(self.state.model_dump_json())

    @invariant()
    def nobody_shares(self) -> None:
        held = self.state.held
        assert not [(a, b) for a in held for b in held if a.conflicts(b)]

    @invariant()
    def who_was_told_is_who_holds(self) -> None:
        assert self.told == {held.key: held for held in self.state.held}

    @invariant()
    def nobody_waits_for_nothing_and_only_for_better_ones(self) -> None:
        waiting = self.state.wanted
        for place, mine in enumerate(waiting):
            better = [
                other
                for at, other in enumerate(waiting)
                if (other.priority, at) < (mine.priority, place)
            ]
            assert any(mine.conflicts(other) for other in (*self.state.held, *better))

    @invariant()
    def nobody_holds_and_waits(self) -> None:
        held = [lease.key for lease in (*self.state.held, *self.state.wanted)]
        assert len(held) == len(set(held))


Book.TestCase.settings = examples(150, stateful_step_count=25)
TestBook = Book.TestCase


@given(wants=st.lists(leases, max_size=12, unique_by=lambda made: made.key))
def test_everybody_has_his_turn(wants: list[Lease]) -> None:
    """Each who holds gives back in the end: nobody waits for ever."""
    state = LeaseState()
    for made in wants:
        state = want(state, made).state
    turns: list[Lease] = list(state.held)
    for turn in turns:  # grows as leases are granted
        settled = request(state, (), [turn.step], turn.phase, False)
        state = settled.state
        turns += settled.grants
    assert state == LeaseState()
    assert sorted(made.key for made in turns) == sorted(made.key for made in wants)
