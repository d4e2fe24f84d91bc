"""What every cluster backend promises (``activities/pools/backend.py``), with nothing of its kind.

A new backend joins by a line in ``conftest.BACKENDS``.
"""

import asyncio
from uuid import uuid4

import pytest

from conformance.cluster import Cluster
from pauses import until
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.services.requirements import requirement_for
from temporal_plans.domain.services.spec import PodSpec, ResourceSet, TaskSpec, VolumeSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.names import task_id, task_instance_name
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.domain.values.refusal import RefusedError
from temporal_plans.messages.pools import (
    Holdings,
    OwnersReport,
    ReleaseInput,
    ReleaseResult,
    ReserveInput,
    ReserveResult,
)
from temporal_plans.messages.tasks import KillInput, LaunchInput

RUNS = "sleep 1000"
OWNER, OTHER = "service/shop", "service/mill"


def pod(*commands: str, cpus: float = 1, volume: bool = False, image: str | None = None) -> PodSpec:
    """A pod with a task for each command (``t0``, ``t1`` ...), all in one resource set."""
    volumes = (VolumeSpec(path="data", size=10),) if volume else ()
    return PodSpec(
        type="web",
        count=1,
        image=image,
        tasks=tuple(
            TaskSpec(name=f"t{number}", goal=Goal.RUNNING, cmd=cmd, resource_set="main")
            for number, cmd in enumerate(commands or (RUNS,))
        ),
        resource_sets=(ResourceSet(id="main", cpus=cpus, memory=10, volumes=volumes),),
    )


async def asked(
    cluster: Cluster,
    spec: PodSpec,
    index: int = 0,
    *,
    owner: str = OWNER,
    notify: str = "",
    replaces: str = "",
) -> ReserveResult:
    """The answer to a pod's requirement, asked for by the listener or ``notify``."""
    requirement = requirement_for(
        spec,
        index,
        owner=owner,
        notify=notify or cluster.listener,
        permanent=bool(replaces),
        replaces=replaces,
        launches=("main",),
    )
    return await cluster.backend.reserve(ReserveInput(pool=cluster.pool, requirement=requirement))


async def reserved(
    cluster: Cluster,
    spec: PodSpec | None = None,
    index: int = 0,
    *,
    owner: str = OWNER,
    notify: str = "",
    replaces: str = "",
) -> Reservation:
    answer = await asked(
        cluster, spec or pod(), index, owner=owner, notify=notify, replaces=replaces
    )
    assert answer.reservation is not None, answer.refusals
    return answer.reservation


async def released(cluster: Cluster, held: Reservation, *, by_id: bool = True) -> ReleaseResult:
    """The answer once it is destroyed."""
    request = ReleaseInput(pool=cluster.pool, key=held.key, reservation=held.id if by_id else "")
    return await until(lambda: cluster.backend.release(request), lambda answer: answer.destroyed)


def order(cluster: Cluster, held: Reservation, spec: PodSpec | None = None) -> LaunchInput:
    """The launch of all tasks of a pod, under new ids."""
    spec = spec or pod()
    names = {task.name: task_instance_name(spec.type, held.index, task.name) for task in spec.tasks}
    return LaunchInput(
        service="shop",
        report_to=cluster.listener,
        inline=spec,
        pod=spec.type,
        index=held.index,
        reservation=held,
        tasks=tuple(
            TaskLaunch(task_id=task_id("shop", instance, uuid4().hex), task=name)
            for name, instance in names.items()
        ),
    )


async def launched(cluster: Cluster, launch: LaunchInput) -> TaskStatus:
    """The first status of its only task."""
    [status] = (await cluster.backend.launch(launch)).statuses
    return status


async def killed(cluster: Cluster, launch: LaunchInput) -> TaskStatus:
    """The last status of its only task."""
    ids = tuple(task.task_id for task in launch.tasks)
    answer = await cluster.backend.kill(launch.reservation.queue, KillInput(task_ids=ids))
    [status] = answer.statuses
    return status


async def heard(cluster: Cluster, launch: LaunchInput, state: TaskState) -> list[TaskStatus]:
    """All that was reported of a launch's only task, once it is in that state."""
    [task] = launch.tasks

    async def reports() -> list[TaskStatus]:
        return [one for one in await cluster.reports() if one.task_id == task.task_id]

    return await until(reports, lambda found: found and found[-1].state is state)


# --- reserve --------------------------------------------------------------------------------------


async def test_asking_twice_by_one_key_reserves_once(cluster: Cluster) -> None:
    await cluster.add("a")
    first = await reserved(cluster)
    assert await reserved(cluster) == first
    assert (await reserved(cluster, index=1)).id != first.id
    assert (await reserved(cluster, owner=OTHER)).id != first.id


async def test_a_reservation_names_its_machine_and_that_ones_task_queue(cluster: Cluster) -> None:
    a, b = await cluster.add("a", cpus=1), await cluster.add("b", cpus=1)
    first, second = await reserved(cluster), await reserved(cluster, index=1)
    assert {first.agent, second.agent} == {a, b}
    assert first.queue != second.queue
    assert "" not in (first.queue, second.queue)


async def test_what_fits_nowhere_says_why_for_each_machine(cluster: Cluster) -> None:
    a, b = await cluster.add("a", cpus=1), await cluster.add("b", cpus=2)
    answer = await asked(cluster, pod(cpus=3))
    assert answer.reservation is None
    assert [refusal.subject for refusal in answer.refusals] == [a, b]
    for refusal, free in zip(answer.refusals, (1, 2), strict=True):
        assert f"3 cpus, {free} of {free} are free" in str(refusal)


async def test_what_waits_is_told_when_it_fits(cluster: Cluster) -> None:
    a = await cluster.add("a", cpus=1)
    held = await reserved(cluster)
    assert (await asked(cluster, pod(), 1)).reservation is None
    assert not await cluster.offers()
    await released(cluster, held)
    [key] = await until(cluster.offers)
    successor = await reserved(cluster, index=1)
    assert (successor.key, successor.agent) == (key, a)


async def test_what_no_machine_could_ever_give_is_refused(cluster: Cluster) -> None:
    await cluster.add("a")
    with pytest.raises(RefusedError, match=r"cpus: must be a number of 0 or more \(found -1"):
        await asked(cluster, pod(cpus=-1))


async def test_a_reservation_is_resized_in_place(cluster: Cluster) -> None:
    await cluster.add("a", cpus=4)
    held = await reserved(cluster, pod(cpus=1))
    for cpus in (3, 2):
        resized = await reserved(cluster, pod(cpus=cpus))
        assert resized.id == held.id
        assert [one.value for one in resized.resources if one.kind == "cpus"] == [cpus]
    assert (await asked(cluster, pod(cpus=5))).reservation is None
    assert (await reserved(cluster, pod(cpus=2), 1)).agent == held.agent


async def test_a_pod_moves_once_however_often_it_is_asked(cluster: Cluster) -> None:
    await cluster.add("a")
    spec = pod(volume=True)
    held = await reserved(cluster, spec)
    launch = order(cluster, held, spec)
    await launched(cluster, launch)
    b = await cluster.add("b")
    moved = await reserved(cluster, spec, replaces=held.id)
    assert (moved.agent, moved.key) == (b, held.key)
    assert moved.id != held.id
    assert await reserved(cluster, spec, replaces=held.id) == moved
    assert await reserved(cluster, spec) == moved
    await heard(cluster, launch, TaskState.KILLED)
    assert not await until(lambda: _volumes(cluster, held), lambda there: not there)


async def _volumes(cluster: Cluster, held: Reservation) -> bool:
    return cluster.has_volumes(held)


# --- release --------------------------------------------------------------------------------------


async def test_releasing_twice_is_no_error(cluster: Cluster) -> None:
    await cluster.add("a")
    held = await reserved(cluster)
    first = await cluster.backend.release(ReleaseInput(pool=cluster.pool, key=held.key))
    assert first.reservation == held
    for by_id in (True, False):
        again = await released(cluster, held, by_id=by_id)
        assert (again.reservation, again.agent) == (None, "")


async def test_releasing_another_reservations_id_touches_nothing(cluster: Cluster) -> None:
    await cluster.add("a")
    former = await reserved(cluster)
    await released(cluster, former)
    held = await reserved(cluster)
    launch = order(cluster, held)
    await launched(cluster, launch)
    assert (await released(cluster, former)).reservation is None
    assert await reserved(cluster) == held
    assert (await heard(cluster, launch, TaskState.RUNNING))[-1].state is TaskState.RUNNING
    assert cluster.starts(launch.tasks[0].task_id) == 1


async def test_releasing_a_reservation_by_its_id_leaves_who_waits_for_another(
    cluster: Cluster,
) -> None:
    await cluster.add("a", cpus=1)
    former = await reserved(cluster)
    await released(cluster, former)
    beside = await reserved(cluster, index=1)
    assert (await asked(cluster, pod())).reservation is None
    await released(cluster, former)
    await released(cluster, beside)
    assert await until(cluster.offers) == (former.key,)


async def test_a_key_that_is_released_waits_no_longer(cluster: Cluster) -> None:
    await cluster.add("a", cpus=1)
    held = await reserved(cluster)
    assert (await asked(cluster, pod(), 1)).reservation is None
    assert (await asked(cluster, pod(), 2)).reservation is None
    waiting = held.but(index=1)
    await released(cluster, waiting, by_id=False)
    await released(cluster, held)
    assert await until(cluster.offers) == (held.but(index=2).key,)


async def test_release_ends_the_tasks_and_deletes_the_volumes(cluster: Cluster) -> None:
    await cluster.add("a", cpus=1)
    spec = pod(volume=True)
    held = await reserved(cluster, spec)
    launch = order(cluster, held, spec)
    await launched(cluster, launch)
    assert cluster.has_volumes(held)
    await released(cluster, held)
    assert not cluster.has_volumes(held)
    await heard(cluster, launch, TaskState.KILLED)
    assert (await reserved(cluster, spec, 1)).agent == held.agent, "the room is free again"


async def test_nothing_is_launched_on_a_reservation_that_was_released(cluster: Cluster) -> None:
    await cluster.add("a")
    spec = pod(volume=True)
    held = await reserved(cluster, spec)
    await released(cluster, held)
    launch = order(cluster, held, spec)
    assert (await launched(cluster, launch)).state is TaskState.ERROR
    assert cluster.starts(launch.tasks[0].task_id) == 0
    assert not cluster.has_volumes(held)


# --- reconcile ------------------------------------------------------------------------------------


async def test_reconcile_gives_back_what_nobody_holds_and_nothing_else(brief: Cluster) -> None:
    await brief.add("a", cpus=6)
    spec = pod(volume=True)
    ownerless = await reserved(brief, spec, owner="service/gone")
    dropped = await reserved(brief, spec, 0, notify=OWNER)
    given_up = await reserved(brief, spec, 1, notify="step/gone")
    held = await reserved(brief, spec, 2, notify=OWNER)
    under_way = await reserved(brief, spec, 3, notify="step/launches")
    silent = await reserved(brief, spec, owner=OTHER, notify=OTHER)
    kept = [(one, order(brief, one, spec)) for one in (held, under_way, silent)]
    given_back = [(one, order(brief, one, spec)) for one in (ownerless, dropped, given_up)]
    for _, launch in (*kept, *given_back):
        await launched(brief, launch)
    holdings = {OWNER: Holdings(keys=(held.key,))}
    report = OwnersReport(gone=("service/gone", "step/gone"), holdings=holdings)
    await brief.outlive_grace()
    answer = await brief.backend.reconcile(brief.pool, report)
    assert sorted(answer.keys) == sorted(one.key for one, _ in given_back)
    for one, launch in given_back:
        await released(brief, one)
        assert not brief.has_volumes(one)
        await heard(brief, launch, TaskState.KILLED)
    for one, launch in kept:
        assert brief.has_volumes(one)
        await heard(brief, launch, TaskState.RUNNING)
    assert (await brief.backend.reconcile(brief.pool, report)).keys == ()
    assert [await reserved(brief, spec, 2), await reserved(brief, spec, 3)] == [held, under_way]
    assert await reserved(brief, spec, owner=OTHER, notify=OTHER) == silent


async def test_reconcile_leaves_alone_what_was_asked_for_just_now(brief: Cluster) -> None:
    """The report may be older than that, and the owner be there again."""
    await brief.add("a")
    held = await reserved(brief, notify=OWNER)
    await brief.outlive_grace()
    assert await reserved(brief, notify=OWNER) == held
    report = OwnersReport(gone=(OWNER,))
    assert (await brief.backend.reconcile(brief.pool, report)).keys == ()
    await brief.outlive_grace()
    assert (await brief.backend.reconcile(brief.pool, report)).keys == (held.key,)


async def test_reconcile_touches_nothing_younger_than_the_grace_period(brief: Cluster) -> None:
    """Also when it waited for longer than that."""
    await brief.add("a", cpus=1)
    before = await reserved(brief, owner=OTHER)
    assert (await asked(brief, pod())).reservation is None
    await brief.outlive_grace()
    await released(brief, before)
    [key] = await until(brief.offers)
    report = OwnersReport(gone=(OWNER,))
    assert (await brief.backend.reconcile(brief.pool, report)).keys == ()
    assert (await reserved(brief)).key == key


async def test_reconcile_takes_nothing_from_those_that_it_says_nothing_of(brief: Cluster) -> None:
    await brief.add("a")
    held = await reserved(brief, notify=OWNER)
    await brief.outlive_grace()
    assert (await brief.backend.reconcile(brief.pool, OwnersReport())).keys == ()
    assert await reserved(brief, notify=OWNER) == held


# --- launch ---------------------------------------------------------------------------------------


async def test_every_task_of_a_launch_has_a_first_status(cluster: Cluster) -> None:
    await cluster.add("a")
    spec = pod(RUNS, RUNS)
    held = await reserved(cluster, spec)
    launch = order(cluster, held, spec)
    statuses = (await cluster.backend.launch(launch)).statuses
    assert [status.task_id for status in statuses] == [task.task_id for task in launch.tasks]
    assert [status.name for status in statuses] == ["web-0-t0", "web-0-t1"]
    assert {status.state for status in statuses} == {TaskState.RUNNING}
    assert {(status.agent, status.queue) for status in statuses} == {(held.agent, held.queue)}


async def test_a_task_is_started_once_however_often_it_is_launched(cluster: Cluster) -> None:
    a = await cluster.add("a")
    launch = order(cluster, await reserved(cluster))
    [task] = launch.tasks
    at_once = await asyncio.gather(*(launched(cluster, launch) for _ in range(4)))
    later = await launched(cluster, launch)
    await cluster.restart(a)
    after_a_restart = await launched(cluster, launch)
    for status in (*at_once, later, after_a_restart):
        assert (status.task_id, status.state, status.sequence) == (task.task_id, "RUNNING", 1)
    assert cluster.starts(task.task_id) == 1


@pytest.mark.parametrize("restarts", [False, True], ids=["the same process", "the next process"])
async def test_a_task_that_has_ended_is_not_started_again(cluster: Cluster, restarts: bool) -> None:
    a = await cluster.add("a")
    spec = pod("exit 0")
    launch = order(cluster, await reserved(cluster, spec), spec)
    await launched(cluster, launch)
    await heard(cluster, launch, TaskState.FINISHED)
    if restarts:
        await cluster.restart(a)
    assert (await launched(cluster, launch)).state is TaskState.FINISHED
    assert cluster.starts(launch.tasks[0].task_id) == 1


async def test_a_task_that_cannot_start_says_error(cluster: Cluster) -> None:
    await cluster.add("a")
    spec = pod(image="debian")
    launch = order(cluster, await reserved(cluster, spec), spec)
    assert (await launched(cluster, launch)).state is TaskState.ERROR
    [reported] = await heard(cluster, launch, TaskState.ERROR)
    assert reported.task_id == launch.tasks[0].task_id
    assert cluster.starts(reported.task_id) == 0


@pytest.mark.parametrize(("code", "state"), [(0, TaskState.FINISHED), (3, TaskState.FAILED)])
async def test_statuses_arrive_in_order_with_rising_sequences(
    cluster: Cluster, code: int, state: TaskState
) -> None:
    await cluster.add("a")
    spec = pod(f"exit {code}")
    held = await reserved(cluster, spec)
    launch = order(cluster, held, spec)
    await launched(cluster, launch)
    reports = await heard(cluster, launch, state)
    sequences = [status.sequence for status in reports]
    assert sequences == sorted(sequences), "a repetition is fine, going back is not"
    by_sequence = {status.sequence: status for status in reports}
    assert [one.state for one in by_sequence.values()] == [TaskState.RUNNING, state]
    assert reports[-1].exit_code == code
    assert {(one.agent, one.queue) for one in reports} == {(held.agent, held.queue)}


# --- kill -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [False, True], ids=["the same process", "the next process"])
async def test_a_task_that_lives_is_killed(cluster: Cluster, restarts: bool) -> None:
    a = await cluster.add("a")
    held = await reserved(cluster)
    launch, beside = order(cluster, held), order(cluster, await reserved(cluster, index=1))
    first = await launched(cluster, launch)
    await launched(cluster, beside)
    if restarts:
        await cluster.restart(a)
    last = await killed(cluster, launch)
    assert last.state is TaskState.KILLED
    assert last.sequence > first.sequence
    assert (last.agent, last.queue) == (held.agent, held.queue)
    reported = (await heard(cluster, launch, TaskState.KILLED))[-1]
    assert (reported.sequence, reported.at) == (last.sequence, last.at)
    assert (await launched(cluster, beside)).state is TaskState.RUNNING, "others are left alone"


async def test_killing_what_has_ended_is_no_error_and_changes_nothing(cluster: Cluster) -> None:
    await cluster.add("a")
    spec = pod("exit 0")
    launch = order(cluster, await reserved(cluster, spec), spec)
    await launched(cluster, launch)
    ended = (await heard(cluster, launch, TaskState.FINISHED))[-1]
    for _ in range(2):
        last = await killed(cluster, launch)
        assert (last.state, last.sequence) == (TaskState.FINISHED, ended.sequence)


@pytest.mark.parametrize("restarts", [False, True], ids=["the same process", "the next process"])
async def test_what_is_killed_before_its_launch_never_starts(
    cluster: Cluster, restarts: bool
) -> None:
    a = await cluster.add("a")
    held = await reserved(cluster)
    launch = order(cluster, held)
    [task] = launch.tasks
    unknown = await killed(cluster, launch)
    assert (unknown.task_id, unknown.state) == (task.task_id, TaskState.KILLED)
    assert (unknown.agent, unknown.queue) == (held.agent, held.queue)
    if restarts:
        await cluster.restart(a)
    assert (await launched(cluster, launch)).state is TaskState.KILLED
    assert cluster.starts(task.task_id) == 0


async def test_several_tasks_are_killed_in_one_order(cluster: Cluster) -> None:
    await cluster.add("a")
    spec = pod(RUNS, "exit 0")
    held = await reserved(cluster, spec)
    launch = order(cluster, held, spec)
    await cluster.backend.launch(launch)
    running, ends = (task.task_id for task in launch.tasks)
    await until(
        cluster.reports,
        lambda found: any((one.task_id, one.state) == (ends, TaskState.FINISHED) for one in found),
    )
    ids = (ends, "shop__web-0-t9__unknown", running)
    answer = await cluster.backend.kill(held.queue, KillInput(task_ids=ids))
    assert [status.task_id for status in answer.statuses] == list(ids)
    assert [status.state for status in answer.statuses] == ["FINISHED", "KILLED", "KILLED"]
