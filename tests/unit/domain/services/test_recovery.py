"""Which pods failed, and how they are brought back (behaviour 6.2 to 6.6)."""

from collections.abc import Mapping
from datetime import datetime

import pytest

from builders.clock import NOW, at, seconds
from builders.plans import phase_doing, plan_spec
from builders.services import pod, service, task
from builders.tasks import by_name, record
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.services.goal_override import GoalOverride
from temporal_plans.domain.services.launchable import launchable_tasks
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.delay import RestartDelay
from temporal_plans.domain.services.recovery.failed import (
    FailedPod,
    down_times,
    failed_pods,
    next_change,
)
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState

FAILED, RUNNING, LOST = TaskState.FAILED, TaskState.RUNNING, TaskState.LOST

SPEC = service(
    pod("hello", 2, task("server"), task("log", essential=False), task("seed", Goal.ONCE)),
    pod("extra", 1, task("n1", essential=False), task("n2", essential=False)),
)
NEVER = RecoveryPolicy()
TWENTY = RecoveryPolicy(permanent_failure_timeout=seconds(1200))


def found(
    *records: TaskRecord,
    specs: Mapping[str, ServiceSpec] | None = None,
    launchable: frozenset[str] | None = None,
    overrides: Mapping[str, GoalOverride] | None = None,
    delays: Mapping[str, RestartDelay] | None = None,
    policy: RecoveryPolicy = NEVER,
    down_since: Mapping[str, datetime] | None = None,
    pending_configs: Mapping[tuple[str, int], str] | None = None,
    now: datetime = NOW,
) -> tuple[FailedPod, ...]:
    return failed_pods(
        by_name(*records),
        specs or {"c1": SPEC},
        launchable=launchable,
        overrides=overrides or {},
        delays=delays or {},
        policy=policy,
        down_since=down_since or {},
        pending_configs=pending_configs or {},
        now=now,
    )


def brought_back(*records: TaskRecord, **more: object) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.name, one.tasks) for one in found(*records, **more)]  # type: ignore[arg-type]


def delay(until: float, length: float = 5) -> RestartDelay:
    return RestartDelay(delay=seconds(length), until=at(until), failures=1, since=NOW)


# --- which tasks (behaviour 6.2) -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "running", "once"),
    [
        (TaskState.FAILED, True, False),
        (TaskState.ERROR, True, False),
        (TaskState.KILLED, True, False),
        (TaskState.LOST, True, False),
        (TaskState.GONE, True, False),
        (TaskState.DROPPED, True, False),
        (TaskState.FINISHED, True, False),
        (TaskState.GONE_BY_OPERATOR, True, False),
        (TaskState.UNREACHABLE, False, False),
        (TaskState.STAGING, False, False),
        (TaskState.RUNNING, False, False),
        (TaskState.KILLING, False, False),
        (None, False, False),
    ],
    ids=str,
)
def test_states_and_goals(state: TaskState | None, running: bool, once: bool) -> None:
    assert bool(found(record("hello", 0, "server", state))) is running
    assert bool(found(record("hello", 0, "seed", state, goal=Goal.ONCE))) is once


def test_the_goal_is_that_of_the_tasks_own_configuration() -> None:
    was_once = service(pod("hello", 1, task("server", Goal.ONCE)))
    specs = {"c0": was_once, "c1": SPEC}
    assert not found(record("hello", 0, "server", FAILED, config="c0"), specs=specs)
    assert found(record("hello", 0, "server", FAILED, config="c1"), specs=specs)


def test_a_configuration_that_is_gone_leaves_the_goal_on_record_and_the_target() -> None:
    gone = found(record("hello", 0, "server", FAILED, config="c0"))
    assert [(one.tasks, one.config_id) for one in gone] == [(("server",), "")]
    assert not found(record("hello", 0, "seed", FAILED, goal=Goal.ONCE, config="c0"))


def test_only_what_some_plan_launches() -> None:
    failed = record("hello", 0, "server", FAILED)
    assert found(failed, launchable=frozenset({"hello-0-server"}))
    assert not found(failed, launchable=frozenset({"hello-1-server"}))


def test_what_every_plan_had_dropped_is_for_a_plan_to_launch_again() -> None:
    off = record("hello", 0, "log", TaskState.KILLED).but(retired=True)
    assert not found(off)
    failed = record("hello", 0, "server", FAILED)
    assert [pod.tasks for pod in found(failed, off)] == [("server",)]


def test_what_is_being_taken_away_stays_down_and_what_is_paused_does_not() -> None:
    failed = record("hello", 0, "server", FAILED)
    assert not found(failed, overrides={"hello-0-server": GoalOverride.DECOMMISSIONED})
    assert found(failed, overrides={"hello-0-server": GoalOverride.PAUSED})


def test_which_tasks_plans_launch() -> None:
    works = (
        PodWork(pod="hello", index=0, tasks=("server",)),
        PodWork(pod="extra", index=0, tasks=()),  # could not be built
    )
    plan = plan_spec(phase_doing("p", *works))
    records = by_name(
        record("hello", 0, "server"), record("hello", 0, "log"), record("extra", 0, "n1")
    )
    assert launchable_tasks([plan], records) == {"hello-0-server", "extra-0-n1"}


# --- which go along (behaviour 6.3) --------------------------------------------------------------


def hello(server: TaskState | None = RUNNING, log: TaskState | None = RUNNING) -> list[TaskRecord]:
    return [
        record("hello", 0, "server", server),
        record("hello", 0, "log", log),
        record("hello", 0, "seed", TaskState.FINISHED, goal=Goal.ONCE),
    ]


def extra(n1: TaskState | None = RUNNING, n2: TaskState | None = RUNNING) -> list[TaskRecord]:
    return [record("extra", 0, "n1", n1), record("extra", 0, "n2", n2)]


LOG, SERVER, N1, N2 = "hello-0-log", "hello-0-server", "extra-0-n1", "extra-0-n2"


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param(hello(server=FAILED), ("server", "log"), id="essential: both"),
        pytest.param(hello(log=FAILED), ("log",), id="non-essential: only it"),
        pytest.param(hello(FAILED, FAILED), ("server", "log"), id="both failed: both"),
        pytest.param(extra(n1=FAILED), ("n1",), id="none is essential: only it"),
        pytest.param(extra(FAILED, FAILED), ("n1", "n2"), id="none is essential, both failed"),
        pytest.param(hello(FAILED, None), ("server",), id="a sibling that was never launched"),
        pytest.param(
            hello(FAILED, TaskState.UNREACHABLE), ("server", "log"), id="an unreachable sibling"
        ),
    ],
)
def test_siblings(records: list[TaskRecord], expected: tuple[str, ...]) -> None:
    assert [tasks for _, tasks in brought_back(*records)] == [expected]


def test_siblings_in_no_plan_stay_down() -> None:
    records = hello(FAILED, TaskState.KILLED)
    assert brought_back(*records, launchable=frozenset({SERVER})) == [("hello-0", ("server",))]


@pytest.mark.parametrize(
    ("records", "delays", "expected"),
    [
        pytest.param(hello(FAILED), {SERVER: 9}, [("server", "log"), 9], id="essential"),
        pytest.param(hello(FAILED), {LOG: 9}, [("server", "log"), 9], id="a sibling of it"),
        pytest.param(
            hello(FAILED, FAILED), {SERVER: 9, LOG: 30}, [("server", "log"), 30], id="the longest"
        ),
        pytest.param(hello(FAILED), {SERVER: -1}, [("server", "log"), None], id="over"),
        pytest.param(extra(FAILED, FAILED), {N1: 9}, [("n2",), None], id="the other need not"),
        pytest.param(extra(FAILED, FAILED), {N1: 9, N2: 5}, [("n2",), 5], id="the first due"),
        pytest.param(extra(FAILED, FAILED), {N1: 5, N2: 5}, [("n1", "n2"), 5], id="both due"),
    ],
)
def test_back_off(
    records: list[TaskRecord], delays: dict[str, float], expected: tuple[tuple[str, ...], float]
) -> None:
    (one,) = found(*records, delays={name: delay(until) for name, until in delays.items()})
    tasks, until = expected
    assert (one.tasks, one.delayed_until) == (tasks, None if until is None else at(until))


def test_delays_so_far_come_along() -> None:
    (one,) = found(*hello(FAILED), delays={SERVER: delay(-9, 8), "hello-1-server": delay(9)})
    assert one.delays == {SERVER: seconds(8)}


def test_pods_are_independent_and_in_order() -> None:
    records = [record("hello", index, "server", FAILED) for index in (1, 10, 2, 0)]
    assert [one.index for one in found(*records, record("extra", 0, "n1", LOST))] == [
        0,
        0,
        1,
        2,
        10,
    ]


# --- on other resources (behaviour 6.4, 6.5) -----------------------------------------------------


@pytest.mark.parametrize("mark", ["label", "agent"])
def test_what_somebody_gave_up_is_replaced_with_all_that_runs(mark: str) -> None:
    label = {"permanently_failed": True} if mark == "label" else {}
    state = TaskState.GONE_BY_OPERATOR if mark == "agent" else RUNNING
    given_up = record("hello", 0, "log", state, **label)  # type: ignore[arg-type]
    (one,) = found(record("hello", 0, "server"), given_up)
    assert (one.tasks, one.permanent, one.ordered) == (("server", "log"), True, True)


def test_what_recovery_does_not_launch_never_has_a_pod_replaced() -> None:
    """Its mark would stay, and the pod be replaced for ever."""
    seed = record("hello", 0, "seed", TaskState.GONE_BY_OPERATOR, goal=Goal.ONCE)
    marked = seed.but(permanently_failed=True)
    for one in (seed, marked):
        assert not found(record("hello", 0, "server"), one)
        (failed,) = found(record("hello", 0, "server", FAILED), one)
        assert not failed.permanent


@pytest.mark.parametrize(
    ("policy", "now", "permanent"),
    [
        pytest.param(NEVER, 10**6, False, id="never by itself"),
        pytest.param(TWENTY, 1199, False, id="not yet"),
        pytest.param(TWENTY, 1200, True, id="long enough"),
    ],
)
def test_the_time_after_which_it_is_replaced(
    policy: RecoveryPolicy, now: float, permanent: bool
) -> None:
    records = hello(server=LOST)
    (one,) = found(*records, policy=policy, down_since={records[0].task_id: NOW}, now=at(now))
    assert (one.permanent, one.ordered) == (permanent, False)
    (by_status,) = found(*records, policy=policy, now=at(now))
    assert by_status.permanent is permanent


def test_permanent_wins_for_the_pod() -> None:
    records = extra(FAILED, FAILED)
    since = {records[0].task_id: at(-2000), records[1].task_id: at(-1)}
    (one,) = found(*records, policy=TWENTY, down_since=since)
    assert (one.tasks, one.permanent) == (("n1", "n2"), True)


def test_unreachable_is_down_but_no_failure() -> None:
    records = by_name(*hello(TaskState.UNREACHABLE, LOST))
    since = down_times(records, {}, NOW)
    assert set(since) == {records[SERVER].task_id, records[LOG].task_id,
                          records["hello-0-seed"].task_id}  # fmt: skip
    (one,) = found(*records.values(), policy=TWENTY, down_since=since, now=at(5000))
    assert one.failed == ("log",)


def test_down_times_stay_and_end_with_the_launch() -> None:
    first = down_times(by_name(record("hello", 0, "server", FAILED)), {}, NOW)
    again = down_times(by_name(record("hello", 0, "server", FAILED)), first, at(9))
    assert again == first == {"svc__hello-0-server__1": NOW}
    assert down_times(by_name(record("hello", 0, "server", launch=2)), again, at(9)) == {}


# --- with which configuration (behaviour 6.6) ----------------------------------------------------


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        pytest.param(("c1", "c1"), "c1", id="the one on record, not the target"),
        pytest.param(("c1", "c2"), "c2", id="of two the newer"),
        pytest.param(("c2", "c1"), "c2", id="of two the newer, the other way"),
        pytest.param(("c1", "c3"), "c1", id="the newer has no such task"),
        pytest.param(("c0", "c0"), "", id="none is known: the target"),
    ],
)
def test_configurations(configs: tuple[str, str], expected: str) -> None:
    specs = {"c1": SPEC, "c2": SPEC, "c3": service(pod("hello", 1, task("log"))), "c4": SPEC}
    server, log = configs
    (one,) = found(
        record("hello", 0, "server", FAILED, config=server),
        record("hello", 0, "log", config=log),
        specs=specs,
    )
    assert (one.config_id, set(one.tasks)) == (expected, {"server", "log"})


PROMISES = [
    pytest.param("c2", "c2", id="newer: a deployment relies on it"),
    pytest.param("c0", "c1", id="older"),
    pytest.param("c3", "c1", id="it has no such task"),
    pytest.param("gone", "c1", id="unknown"),
]


@pytest.mark.parametrize(("promised", "expected"), PROMISES)
def test_what_a_recovery_under_way_promised_is_kept(promised: str, expected: str) -> None:
    """A launch of the recovery before it may come on record in between, with what that one had."""
    specs = {"c0": SPEC, "c1": SPEC, "c2": SPEC, "c3": service(pod("hello", 1, task("log")))}
    (one,) = found(
        record("hello", 0, "server", TaskState.KILLED),
        specs=specs,
        pending_configs={("hello", 0): promised, ("hello", 1): "c2"},
    )
    assert one.config_id == expected


def test_the_work_says_what_is_to_be_done() -> None:
    (one,) = found(*hello(FAILED))
    assert one.work() == PodWork(
        pod="hello", index=0, tasks=("server", "log"), recovery="transient", config_id="c1"
    )
    assert one.but(permanent=True).work("log") == PodWork(
        pod="hello", index=0, tasks=("log",), recovery="permanent", config_id="c1"
    )


# --- in words, and when to look again ------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param(
            [record("hello", 0, "server", FAILED, exit_code=1)],
            "hello-0-server FAILED: exit code 1",
            id="an exit code",
        ),
        pytest.param(
            [record("hello", 0, "server", LOST, message="agent a1 was given up", exit_code=1)],
            "hello-0-server LOST: agent a1 was given up",
            id="a message",
        ),
        pytest.param(extra(FAILED, LOST), "extra-0-n1 FAILED; extra-0-n2 LOST", id="two"),
        pytest.param(
            [record("hello", 0, "server", permanently_failed=True)],
            "hello-0-server is to be replaced",
            id="by order",
        ),
    ],
)
def test_why(records: list[TaskRecord], expected: str) -> None:
    (one,) = found(*records)
    assert one.why == expected


def test_why_is_bounded_and_says_when_it_was_the_timeout() -> None:
    names = [f"n{i}" for i in range(9)]
    spec = service(pod("many", 1, *(task(name) for name in names)))
    records = [record("many", 0, name, FAILED, message="x" * 9999) for name in names]
    (one,) = found(*records, specs={"c1": spec}, policy=TWENTY, now=at(1200))
    assert one.why.endswith("; and 6 more; replaced after 1200 s down")
    assert len(one.why) < 1000


def change(*records: TaskRecord, **more: object) -> datetime | None:
    arguments: dict[str, object] = {
        "launchable": None,
        "overrides": {},
        "delays": {},
        "policy": TWENTY,
        "down_since": {},
        "now": NOW,
        **more,
    }
    return next_change(by_name(*records), {"c1": SPEC}, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("records", "more", "expected"),
    [
        pytest.param(hello(), {}, None, id="nothing failed"),
        pytest.param(hello(FAILED), {"policy": NEVER}, None, id="never by itself"),
        pytest.param(hello(FAILED), {}, 1200, id="the timeout"),
        pytest.param(hello(FAILED), {"delays": {SERVER: delay(9)}}, 9, id="the back-off"),
        pytest.param(hello(), {"delays": {SERVER: delay(9)}}, None, id="the back-off of nobody"),
        pytest.param(hello(FAILED), {"now": at(1200)}, None, id="permanent already"),
        pytest.param(
            [record("hello", 0, "server", FAILED, permanently_failed=True)], {}, None, id="ordered"
        ),
        pytest.param(
            [*hello(FAILED), record("hello", 1, "server", FAILED)],
            {"down_since": {"svc__hello-1-server__1": at(-100)}},
            1100,
            id="the first of two",
        ),
    ],
)
def test_when_to_look_again(
    records: list[TaskRecord], more: dict[str, object], expected: float | None
) -> None:
    assert change(*records, **more) == (None if expected is None else at(expected))
