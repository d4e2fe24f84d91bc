"""Strategies as functions of their children (behaviour 2.2 to 2.5), and what the engine makes of
what they return (behaviour 1.3, 2.1)."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.plans import phase_spec, step_spec
from builders.step_states import STATES
from temporal_plans.domain.plans import selection
from temporal_plans.domain.plans.board import PhaseBoard
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies import BUILT_IN, CANARIES, NAMES
from temporal_plans.domain.plans.strategies.record import Element
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.strategies.waves import wave_sizes
from temporal_plans.domain.plans.transitions import (
    restarted,
)


def board(
    letters: str, strategy: StrategySpec, depends: Sequence[tuple[str, ...]] = (), seed: int = 0
) -> PhaseBoard:
    """A phase with steps a, b, c, … in those states."""
    states = letters.split()
    steps = tuple(
        step_spec(chr(ord("a") + i), depends_on=depends[i] if depends else ())
        for i in range(len(states))
    )
    made = PhaseBoard(phase_spec("p", *steps, strategy=strategy), seed=seed)
    for i, letter in enumerate(states):
        made.set(i, STATES[letter])
    return made


def chosen(made: PhaseBoard) -> str:
    return "".join(chr(ord("a") + i) for i in made.candidates())


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        pytest.param("", "", id="nobody"),
        pytest.param("P P P", "a", id="the-first"),
        pytest.param("C P P", "b", id="then-the-next"),
        pytest.param("P C P", "a", id="middle-complete"),
        pytest.param("C C P", "c", id="middle-complete-then-the-last"),
        pytest.param("C C C", "", id="all-complete"),
        pytest.param("SG P P", "a", id="a-running-one-stays-candidate"),
        pytest.param("D P P", "a", id="a-delayed-one-blocks-the-rest"),
        pytest.param("E P P", "", id="an-error-blocks-the-rest"),
        pytest.param("W P P", "", id="a-waiting-one-blocks-the-rest"),
        pytest.param("C P SG", "b", id="restarted-in-the-middle-goes-first"),
    ],
)
def test_serial(letters: str, expected: str) -> None:
    assert chosen(board(letters, StrategySpec(name="serial"))) == expected


def test_serial_looks_at_the_order_anew_each_time() -> None:
    """The mend of design 8: a step that was complete from the start waits for its turn when it is
    restarted, and those behind it wait for it."""
    made = board("C P P", StrategySpec(name="serial"))
    assert chosen(made) == "b"
    made.set(0, restarted(made.steps[0]))
    assert chosen(made) == "a"


def test_interrupt_and_proceed() -> None:
    made = board("P P", StrategySpec(name="serial"))
    made.set_interrupted(True)
    assert (chosen(made), made.status) == ("", Status.WAITING)
    made.set_interrupted(False)
    assert (chosen(made), made.status) == ("a", Status.PENDING)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_an_interrupt_stops_every_strategy_and_changes_no_step(name: str) -> None:
    made = board("C SG P", StrategySpec(name=name))
    before = list(made.steps)
    made.set_interrupted(True)
    assert (chosen(made), made.status, made.steps) == ("", Status.WAITING, before)


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        pytest.param("P P P", "abc", id="all"),
        pytest.param("C P P", "bc", id="all-that-are-left"),
        pytest.param("SG D P", "abc", id="running-and-delayed-stay"),
        pytest.param("E W P", "c", id="not-in-error-not-waiting"),
        pytest.param("C C", "", id="all-complete"),
        pytest.param("", "", id="nobody"),
    ],
)
def test_parallel(letters: str, expected: str) -> None:
    assert chosen(board(letters, StrategySpec(name="parallel"))) == expected


DIAMOND = ((), ("a",), ("a",), ("b", "c"))


@pytest.mark.parametrize(
    ("letters", "depends", "expected"),
    [
        pytest.param("P P P P", DIAMOND, "a", id="the-root"),
        pytest.param("C P P P", DIAMOND, "bc", id="both-branches"),
        pytest.param("C C P P", DIAMOND, "c", id="one-branch-is-not-enough"),
        pytest.param("C C C P", DIAMOND, "d", id="the-end"),
        pytest.param("P P", (("b",), ()), "b", id="whatever-the-order-of-the-list"),
        pytest.param("P C P", ((), ("a",), ("b",)), "ac", id="edges-are-not-followed-further"),
        pytest.param("E P P", ((), ("a",), ()), "c", id="an-error-holds-what-needs-it"),
        pytest.param("P P", (("b",), ("a",)), "", id="a-ring-never-moves"),
        pytest.param("P", (("nobody",),), "", id="an-unknown-name-never-moves"),
    ],
)
def test_dependency(letters: str, depends: Sequence[tuple[str, ...]], expected: str) -> None:
    assert chosen(board(letters, StrategySpec(name="dependency"), depends)) == expected


def test_a_name_that_two_share_is_complete_when_both_are() -> None:
    def look(first: Status, second: Status) -> list[int]:
        children = [
            Element(0, "same", first, first is Status.PENDING),
            Element(1, "same", second, second is Status.PENDING),
            Element(2, "after", Status.PENDING, True, depends_on=("same",)),
        ]
        picked = BUILT_IN["dependency"](children, StrategySpec(name="dependency"), 0)
        return [element.index for element in picked]

    assert look(Status.COMPLETE, Status.PENDING) == [1]
    assert look(Status.COMPLETE, Status.COMPLETE) == [2]


@pytest.mark.parametrize(
    ("letters", "limit", "expected"),
    [
        pytest.param("P P P P", 2, "ab", id="two-at-once"),
        pytest.param("C P P P", 2, "bc", id="the-next-two"),
        pytest.param("P P P", None, "a", id="one-without-a-limit"),
        pytest.param("P P", 5, "ab", id="a-limit-above-all"),
        pytest.param("P SG P", 2, "ab", id="one-place-is-taken"),
        pytest.param("P SG P", 1, "b", id="who-has-begun-goes-on-first"),
        pytest.param("P PR P", 1, "b", id="prepared-is-begun"),
        pytest.param("D P P", 1, "a", id="a-crash-loop-keeps-its-place"),
        pytest.param("R P P", 1, "a", id="and-when-it-is-tried-again"),
        pytest.param("E P P", 1, "", id="an-error-keeps-its-place"),
        pytest.param("E P P", 2, "b", id="and-leaves-the-others"),
        pytest.param("SG SG SG", 2, "ab", id="never-more-than-the-limit"),
        pytest.param("C C", 2, "", id="all-complete"),
    ],
)
def test_max_parallel(letters: str, limit: int | None, expected: str) -> None:
    assert chosen(board(letters, StrategySpec(name="max-parallel", limit=limit))) == expected


@pytest.mark.parametrize(
    ("letters", "limit", "expected"),
    [
        pytest.param("P P P P", 3, "ac", id="first-steps-only"),
        pytest.param("C P P P", 1, "b", id="goes-on-before-another-begins"),
        pytest.param("C P P P", 2, "bc", id="beside-another"),
        pytest.param("C SG C P", 2, "bd", id="each-on-its-own"),
        pytest.param("P R P P", 1, "a", id="makes-room-for-what-was-restarted"),
    ],
)
def test_max_parallel_keeps_dependencies(letters: str, limit: int, expected: str) -> None:
    """b after a, d after c."""
    strategy = StrategySpec(name="max-parallel", limit=limit)
    assert chosen(board(letters, strategy, ((), ("a",), (), ("c",)))) == expected


@pytest.mark.parametrize(
    ("letters", "waves", "expected"),
    [
        pytest.param("P P P P", (1, 2), "a", id="the-first-wave"),
        pytest.param("C P P P", (1, 2), "bc", id="the-second"),
        pytest.param("C C P P", (1, 2), "c", id="is-finished-first"),
        pytest.param("C C C P", (1, 2), "d", id="the-last-size-repeats"),
        pytest.param("C E P P", (1, 2), "c", id="an-error-lets-its-wave-go-on"),
        pytest.param("C E C P", (1, 2), "", id="but-no-further"),
        pytest.param("P C C C", (1, 2), "a", id="restarted-in-the-first-wave"),
        pytest.param("P P P P", (), "a", id="no-sizes-are-waves-of-one"),
        pytest.param("P P P P", ("50%",), "ab", id="a-share"),
        pytest.param("C C C C", (1,), "", id="all-complete"),
    ],
)
def test_waves(letters: str, waves: tuple[int | str, ...], expected: str) -> None:
    assert chosen(board(letters, StrategySpec(name="waves", waves=waves))) == expected


@pytest.mark.parametrize(
    ("sizes", "total", "expected"),
    [
        pytest.param((1, 2), 7, [1, 2, 2, 2], id="repeat-the-last"),
        pytest.param((1, "25%", "100%"), 10, [1, 3, 6], id="shares-are-of-all-and-rounded-up"),
        pytest.param(("33%",), 3, [1, 1, 1], id="a-third"),
        pytest.param(("0%",), 2, [1, 1], id="never-nobody"),
        pytest.param((5,), 3, [3], id="never-more-than-there-are"),
        pytest.param((), 2, [1, 1], id="default"),
        pytest.param((3,), 0, [], id="nobody"),
        pytest.param(("abc", "inf%", "nan%", -1, 2), 6, [1, 1, 1, 1, 2], id="nonsense-is-one"),
    ],
)
def test_the_sizes_of_waves(sizes: tuple[int | str, ...], total: int, expected: list[int]) -> None:
    assert wave_sizes(sizes, total) == expected


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        pytest.param("", "", id="no-steps"),
        pytest.param("C", "", id="one-complete"),
        pytest.param("P", "a", id="one-pending"),
        pytest.param("C C C", "", id="all-complete"),
        pytest.param("P SG P", "b", id="who-has-begun-goes-on"),
        pytest.param("P D P", "b", id="and-keeps-its-turn-while-delayed"),
        pytest.param("C P E", "b", id="an-error-has-lost-its-turn"),
    ],
)
def test_random(letters: str, expected: str) -> None:
    assert chosen(board(letters, StrategySpec(name="random"))) == expected


def test_random_takes_one_of_all_pending_by_its_seed() -> None:
    firsts = {
        seed: chosen(board("P P P P", StrategySpec(name="random"), seed=seed)) for seed in range(50)
    }
    assert set(firsts.values()) == set("abcd")
    for seed, first in firsts.items():
        assert chosen(board("P P P P", StrategySpec(name="random"), seed=seed)) == first


def test_random_goes_through_all_one_at_a_time() -> None:
    made = board("P P P P P", StrategySpec(name="random"), seed=7)
    order = ""
    while (name := chosen(made)) != "":
        assert len(name) == 1
        order += name
        made.set(ord(name) - ord("a"), STATES["C"])
    assert sorted(order) == list("abcde")
    assert made.status is Status.COMPLETE


# --- what all of them promise ---------------------------------------------------------------------


@given(
    name=st.sampled_from(sorted(NAMES)),
    letters=st.lists(st.sampled_from(sorted(STATES)), max_size=8),
    limit=st.integers(1, 3),
    seed=st.integers(0, 9),
)
def test_candidates_are_eligible_and_told_once(
    name: str, letters: list[str], limit: int, seed: int
) -> None:
    spec = StrategySpec(name=name, limit=limit, waves=(1, "40%"))
    made = board(" ".join(letters), spec, seed=seed)
    found = made.candidates()
    assert len(found) == len(set(found))
    assert all(letters[i] not in ("C", "E", "W") for i in found)
    assert found == made.candidates()
    if name == "max-parallel":
        assert len(found) <= limit


def test_what_a_users_strategy_returns_is_looked_over() -> None:
    """Ineligible children, repeats and strangers are dropped; its order is kept."""
    stranger = Element(99, "stranger", Status.PENDING, True)

    def odd(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
        return [elements[2], stranger, elements[0], elements[2], elements[1]]

    spec = phase_spec("p", *"abc", strategy="odd")
    made = PhaseBoard(spec, strategies={"odd": odd})
    made.set(0, STATES["C"])
    assert made.candidates() == [2, 1]


def test_an_unknown_strategy_is_told_and_never_mistaken_for_one_that_picks_nobody() -> None:
    made = board("P P", StrategySpec(name="zigzag"))
    with pytest.raises(selection.UnknownStrategy, match="no strategy 'zigzag'; it knows: "):
        made.candidates()
    assert made.status is Status.PENDING


def test_names() -> None:
    assert set(CANARIES.values()) <= set(BUILT_IN)
    assert selection.label(StrategySpec(name="canary")) == "serial-canary"
    assert selection.label(StrategySpec(name="parallel-canary")) == "parallel-canary"
    assert not selection.is_canary(StrategySpec(name="serial"))
