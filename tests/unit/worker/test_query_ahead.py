"""Which queries get their run evicted (worker.sdk.query_ahead)."""

from collections.abc import Sequence

import pytest

from temporal_plans.worker.sdk.query_ahead import AHEAD_OF_TASKS, QueryAhead
from unit.worker.sdk_kit import Scripted, activation, run_of

NEW, REPLAYED = False, True


@pytest.mark.parametrize(
    ("replayed", "activations", "evicted"),
    [
        pytest.param(NEW, ["fire_timer 1", "query 1"], True, id="events-without-a-task"),
        pytest.param(NEW, ["fire_timer 1", "query 1", "query 1"], True, id="asked-twice"),
        pytest.param(NEW, ["fire_timer 2", "query 2"], False, id="a-task-and-a-query"),
        pytest.param(NEW, ["fire_timer 1", "query_workflow 1"], False, id="a-query-in-a-task"),
        pytest.param(NEW, ["query 1"], False, id="nothing-new"),
        pytest.param(NEW, ["local 1", "query 1"], False, id="a-local-activity"),
        pytest.param(NEW, ["do_update 1", "query 1"], False, id="an-update"),
        pytest.param(NEW, ["fire_timer 1", "fire_timer 2", "query 2"], False, id="a-task-since"),
        pytest.param(REPLAYED, ["query 1"], False, id="replayed-nothing-new"),
        pytest.param(REPLAYED, ["replay 2", "query 2"], False, id="replayed-to-its-last-task"),
        pytest.param(REPLAYED, ["signal_workflow 2", "query 2"], True, id="replayed-joined"),
        pytest.param(
            REPLAYED, ["replay 2", "fire_timer 2", "query 2"], True, id="replayed-without-a-task"
        ),
        pytest.param(
            REPLAYED,
            ["signal_workflow 2", "signal_workflow 3", "query 3"],
            False,
            id="a-task-later",
        ),
        pytest.param(REPLAYED, ["do_update 2", "query 2"], False, id="replayed-by-an-update"),
    ],
)
def test_after_a_query_with_more_than_the_tasks_brought_the_history_is_replayed(
    replayed: bool, activations: Sequence[str], evicted: bool
) -> None:
    inner, asked = Scripted(), list[str]()
    run = QueryAhead(inner, run_of(evict=asked.append))
    run.activate(activation("initialize_workflow", replaying=replayed))
    for one in activations:
        job, at = one.split()
        old = job == "replay"
        act = activation("fire_timer" if old else job, at=int(at), replaying=old)
        assert run.activate(act).HasField("successful")
    assert set(asked) == ({"run"} if evicted else set())
    before = len(inner.activations)
    completion = run.activate(activation("signal_workflow", at=9))
    assert completion.HasField("failed") is evicted
    assert len(inner.activations) == before + (not evicted)
    if evicted:
        assert completion.failed.failure.message == AHEAD_OF_TASKS
        assert run.activate(activation("remove_from_cache", at=3)).HasField("successful")


def test_it_is_for_the_engines_own() -> None:
    assert QueryAhead.applies_to(run_of(is_ours=True))
    assert not QueryAhead.applies_to(run_of(is_ours=False))
