"""What holds whatever happens: any plans, any sequence of events, commands and restarts.

``Engine`` is the engine without Temporal: it begins what the boards say may begin, under leases,
reports what became of it, carries out commands, and is restarted from what is carried. What its
steps may do is judged by ``may_begin``, which knows the strategies from the reference and nothing
of their code.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.board import PhaseBoard, PlanBoard, PlanState
from temporal_plans.domain.commands import (
    Command,
    CommandRefused,
    Verb,
    apply_order,
    apply_plan,
    decide,
)
from temporal_plans.domain.leases import Lease, LeaseState, request
from temporal_plans.domain.plan import (
    ApprovalWork,
    PhaseSpec,
    PlanSpec,
    PodWork,
    SleepWork,
    StepSpec,
    StrategySpec,
)
from temporal_plans.domain.service import Goal
from temporal_plans.domain.status import Status
from temporal_plans.domain.strategies import NAMES
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.domain.transitions import (
    StepState,
    TaskProgress,
    awaiting,
    begun,
    completed,
    delayed,
    due,
    failed,
    launched,
    prepared,
    reported,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Place = tuple[int, int, int]
"""Plan, phase, step."""

# --- arbitrary plans ------------------------------------------------------------------------------

strategies = st.builds(
    StrategySpec,
    name=st.sampled_from(sorted(NAMES)),
    limit=st.integers(1, 2),
    waves=st.sampled_from([(), (1,), (1, 2), ("50%",), (1, "40%")]),
    proceeds=st.integers(1, 3),
)
works = st.one_of(
    st.builds(
        PodWork,
        pod=st.sampled_from(["web", "db"]),
        index=st.integers(0, 1),
        tasks=st.sampled_from([("a",), ("b",), ("a", "b")]),
    ),
    st.just(SleepWork(duration=timedelta(seconds=1))),
    st.just(ApprovalWork()),
)


@st.composite
def steps(draw: st.DrawFn) -> tuple[StepSpec, ...]:
    made: list[StepSpec] = []
    for i in range(draw(st.integers(0, 5))):
        before = draw(st.sets(st.sampled_from(made).map(lambda s: s.name))) if made else set()
        faulty = draw(st.integers(0, 9)) == 9
        made.append(
            StepSpec(
                name=f"step-{i}",
                work=draw(works),
                depends_on=tuple(sorted(before)),
                errors=("faulty",) if faulty else (),
            )
        )
    return tuple(made)


@st.composite
def plans(draw: st.DrawFn, *, name: str) -> PlanSpec:
    made: list[PhaseSpec] = []
    for i in range(draw(st.integers(2, 4))):
        before = draw(st.sets(st.sampled_from(made).map(lambda p: p.name))) if made else set()
        made.append(
            PhaseSpec(
                name=f"phase-{i}",
                strategy=draw(strategies),
                depends_on=tuple(sorted(before)),
                steps=draw(steps()),
            )
        )
    return PlanSpec(name=name, strategy=draw(strategies), phases=tuple(made))


# --- what the reference lets begin ----------------------------------------------------------------


@dataclass(frozen=True)
class Child:
    """A step of a phase or a phase of a plan, as far as an order is concerned.

    ``begun``: worked on and not complete. ``gated``: a canary that still waits for its continue.
    """

    name: str
    complete: bool
    begun: bool
    broken: bool
    gated: bool
    canary: bool
    depends_on: tuple[str, ...]


def may_begin(spec: StrategySpec, children: Sequence[Child], index: int) -> bool:
    """Whether the order lets the child begin (reference 2, written down a second time)."""
    mine = children[index]
    others = [child for i, child in enumerate(children) if i != index]
    if any(child.gated for child in children):
        return mine.canary and not mine.gated
    order = spec.name.removesuffix("-canary").replace("canary", "serial")
    if order == "parallel":
        return True
    if order == "serial":
        return all(child.complete for child in children[:index])
    if order == "dependency":
        return all(child.complete for child in children if child.name in mine.depends_on)
    if order == "max-parallel":
        return mine.begun or sum(child.begun for child in others) < (spec.limit or 1)
    if order == "random":
        return mine.begun or not any(child.begun and not child.broken for child in others)
    assert order == "waves"
    starts, wave = [0], 0
    while starts[-1] <= index:
        size = spec.waves[min(wave, len(spec.waves) - 1)] if spec.waves else 1
        if isinstance(size, str):
            size = max(1, -(-len(children) * int(size[:-1]) // 100))
        starts.append(starts[-1] + size)
        wave += 1
    return all(child.complete for child in children[: starts[-2]])


def step_children(board: PhaseBoard) -> list[Child]:
    return [
        Child(
            name=spec.name,
            complete=state.status is Status.COMPLETE,
            begun=state.status is not Status.COMPLETE and (state.attempt > 0 or state.prepared),
            broken=state.status is Status.ERROR,
            gated=(
                i in board.canary
                and state.interrupted
                and state.attempt == 0
                and state.status is Status.PENDING
            ),
            canary=i in board.canary,
            depends_on=spec.depends_on,
        )
        for i, (spec, state) in enumerate(zip(board.spec.steps, board.steps, strict=True))
    ]


def phase_children(board: PlanBoard) -> list[Child]:
    children: list[Child] = []
    for i, phase in enumerate(board.phases):
        inner = step_children(phase)
        complete = all(child.complete for child in inner)
        children.append(
            Child(
                name=phase.spec.name,
                complete=complete,
                begun=not complete and any(s.attempt > 0 or s.prepared for s in phase.steps),
                broken=any(child.broken for child in inner),
                gated=phase.gate and not complete,
                canary=i in board.canary,
                depends_on=phase.spec.depends_on,
            )
        )
    return children


# --- the engine without Temporal ------------------------------------------------------------------


@dataclass
class Engine:
    """Two plans of one service on their boards."""

    specs: list[PlanSpec]
    boards: list[PlanBoard] = field(init=False)
    leases: LeaseState = field(default_factory=LeaseState)
    backoff: Backoff = field(default_factory=Backoff)
    launches: list[tuple[Place, str]] = field(default_factory=list[tuple[Place, str]])
    clock: int = 0

    def __post_init__(self) -> None:
        self.boards = [PlanBoard(spec, seed=7) for spec in self.specs]

    # --- looking ---

    def state(self, place: Place) -> StepState:
        plan, phase, step = place
        return self.boards[plan].phases[phase].steps[step]

    def spec(self, place: Place) -> StepSpec:
        plan, phase, step = place
        return self.specs[plan].phases[phase].steps[step]

    def places(self, keep: Callable[[StepState], bool]) -> list[Place]:
        return [
            (i, k, n)
            for i, board in enumerate(self.boards)
            for k, phase in enumerate(board.phases)
            for n, state in enumerate(phase.steps)
            if keep(state)
        ]

    def workable(self) -> list[Place]:
        """What may be begun or tried again now, assets aside."""
        return [
            (i, k, n)
            for i, board in enumerate(self.boards)
            for k in board.candidates()
            for n in board.phases[k].candidates()
            if board.phases[k].steps[n].status in (Status.PENDING, Status.PREPARED)
        ]

    @property
    def complete(self) -> bool:
        return all(board.status is Status.COMPLETE for board in self.boards)

    # --- changing ---

    def set(self, place: Place, state: StepState) -> None:
        plan, phase, step = place
        self.boards[plan].phases[phase].set(step, state)
        self.give_back(place)

    def give_back(self, place: Place) -> None:
        """A lease is held while its step is worked on."""
        if not self.state(place).begun:
            key = self.phase_id(place)
            self.leases = request(self.leases, (), [place[2]], key, False).state

    def phase_id(self, place: Place) -> str:
        return f"svc/{self.specs[place[0]].name}/{place[1]}"

    def leased(self, place: Place) -> bool:
        work = self.spec(place).work
        if not isinstance(work, PodWork):
            return True
        want = Lease(
            plan=self.specs[place[0]].name,
            phase=self.phase_id(place),
            step=place[2],
            pod=work.pod,
            index=work.index,
            tasks=work.tasks,
            priority=place[0],
        )
        settled = request(self.leases, [want], (), want.phase, False)
        self.leases = settled.state
        return any(granted.key == want.key for granted in settled.grants)

    def begin(self, place: Place, *, fits: bool = True) -> bool:
        """Work on a step that the boards say may be worked on; False while its asset is held."""
        plan, phase, step = place
        board = self.boards[plan]
        state, inner = self.state(place), board.phases[phase]
        assert not (board.interrupted or inner.interrupted or inner.gate or state.interrupted)
        assert state.status is not Status.ERROR
        assert may_begin(self.specs[plan].strategy, phase_children(board), phase)
        assert may_begin(inner.spec.strategy, step_children(inner), step)
        if not self.leased(place):
            return False
        match self.spec(place).work:
            case PodWork() if not fits:
                state = prepared(state, "no offer fits")
            case PodWork(tasks=tasks):
                launch = {
                    f"{name}-{len(self.launches)}": TaskProgress(
                        name=name, goal=Goal.RUNNING if name == "a" else Goal.ONCE
                    )
                    for name in tasks
                }
                self.launches += [(place, task_id) for task_id in launch]
                state = launched(state, launch, NOW)
            case ApprovalWork():
                state = awaiting(state, "ask the owner", NOW)
            case _:
                state = begun(state, NOW)
        self.set(place, state)
        return True

    def report(self, place: Place, task_id: str, what: TaskState) -> None:
        self.clock += 1
        known = self.state(place)
        name = task_id.split("-")[0]
        report = TaskStatus(task_id=task_id, name=name, state=what, sequence=self.clock, at=NOW)
        state = reported(known, report, self.backoff, NOW)
        if task_id not in known.tasks:
            assert state == known, "a report about another launch changed something"
        if known.complete:
            assert state == known, "a report changed a complete step"
        self.set(place, state)

    def tell(self, plan: int, verb: Verb, phase: str = "", step: str = "") -> None:
        board = self.boards[plan]
        before = board.state
        try:
            decision = decide(board, board.spec.name, verb, Command(phase=phase, step=step))
        except CommandRefused as refused:
            event(f"{verb}: {refused.outcome.code}")
            return
        assert board.state == before, "deciding changed something"
        event(f"{verb}: {decision.outcome.code}")
        apply_plan(board, decision)
        for order in decision.orders:
            apply_order(board.phases[order.phase], order, NOW)
        if not decision.outcome.changed:
            assert board.state == before
        for place in self.places(lambda state: True):
            self.give_back(place)

    def restart(self) -> None:
        """Every process is gone; everything is made anew from what is carried."""
        for i, (spec, board) in enumerate(zip(self.specs, self.boards, strict=True)):
            text = board.state.model_dump_json()
            again = PlanBoard(
                PlanSpec.model_validate_json(spec.model_dump_json()),
                PlanState.model_validate_json(text),
                seed=7,
            )
            assert readings(again) == readings(board)
            assert again.state == board.state
            self.boards[i] = again
        self.leases = LeaseState.model_validate_json(self.leases.model_dump_json())


def readings(board: PlanBoard) -> object:
    """Everything that is read off a board."""
    return (
        board.spec,
        board.status,
        board.candidates(),
        board.is_interrupted,
        board.closed_gate,
        board.errors,
        board.waits(),
        [
            (p.status, p.candidates(), p.is_interrupted, p.closed_gate, p.begun, p.steps, p.canary)
            for p in board.phases
        ],
    )


# --- arbitrary histories --------------------------------------------------------------------------

FATES = [
    TaskState.RUNNING,
    TaskState.FINISHED,
    TaskState.FAILED,
    TaskState.STARTING,
    TaskState.LOST,
    TaskState.GONE_BY_OPERATOR,
    TaskState.UNKNOWN,
]
REDO = {Verb.RESTART, Verb.START, Verb.STOP}

events = st.one_of(
    st.tuples(st.just("begin"), st.integers(0, 9), st.booleans()),
    st.tuples(st.just("begin"), st.integers(0, 9), st.just(True)),
    st.tuples(st.just("report"), st.integers(0, 3), st.sampled_from(FATES)),
    st.tuples(st.just("old"), st.integers(0, 99), st.sampled_from(FATES)),
    st.tuples(st.just("end"), st.integers(0, 9), st.sampled_from(["well", "badly", "later"])),
    st.tuples(st.just("due"), st.integers(0, 9), st.none()),
    st.tuples(
        st.just("command"),
        st.sampled_from([*Verb, Verb.CONTINUE, Verb.CONTINUE, Verb.CONTINUE]),
        st.tuples(st.integers(0, 1), st.integers(-1, 4), st.integers(-2, 4)),
    ),
    st.tuples(st.just("restart"), st.none(), st.none()),
)


def happen(engine: Engine, what: tuple[object, ...]) -> bool:
    """Let an event happen; whether it is one that may begin complete steps again."""
    match what:
        case ("begin", int(which), bool(fits)):
            if found := engine.workable():
                engine.begin(found[which % len(found)], fits=fits)
        case ("report", int(which), TaskState() as fate):  # among the newest launches
            if engine.launches:
                engine.report(*engine.launches[-1 - which % len(engine.launches)], fate)
        case ("old", int(which), TaskState() as fate):
            if engine.launches:
                engine.report(*engine.launches[which % len(engine.launches)], fate)
        case ("end", int(which), str(how)):
            if found := engine.places(lambda state: state.status is Status.STARTING):
                end(engine, found[which % len(found)], how)
        case ("due", int(which), None):
            if found := engine.places(lambda state: state.status is Status.DELAYED):
                place = found[which % len(found)]
                engine.set(place, due(engine.state(place)))
        case ("command", Verb() as verb, (int(plan), int(phase), int(step))):
            names = (f"phase-{phase}" if phase >= 0 else "", f"step-{step}" if step >= 0 else "")
            engine.tell(plan, verb, *names)
            return verb in REDO
        case ("restart", None, None):
            engine.restart()
        case _:
            raise AssertionError(what)
    return False


def end(engine: Engine, place: Place, how: str) -> None:
    """An activity, a workflow or a sleep is over; or a launch that failed for good."""
    state = engine.state(place)
    if how == "badly":
        engine.set(place, failed(state, "gone wrong"))
    elif not state.tasks:
        well = how == "well"
        after = completed(state, NOW, {"rows": 3}) if well else delayed(state, "", Backoff(), NOW)
        engine.set(place, after)


def check(engine: Engine) -> None:
    """What holds at every moment."""
    working: dict[tuple[str, int, str], Place] = {}
    for place in engine.places(lambda state: state.begun and state.status.running):
        work = engine.spec(place).work
        if isinstance(work, PodWork):
            for task in work.tasks:
                other = working.setdefault((work.pod, work.index, task), place)
                assert other == place, f"{other} and {place} work on one asset"
    for board in engine.boards:
        assert isinstance(board.status, Status)
        assert len(set(board.candidates())) == len(board.candidates())
        if board.interrupted:
            assert board.candidates() == []
        for phase in board.phases:
            assert phase.interrupted <= (phase.candidates() == [])
            assert (phase.status is Status.COMPLETE) == all(step.complete for step in phase.steps)
        complete = all(phase.status is Status.COMPLETE for phase in board.phases)
        assert (board.status is Status.COMPLETE) == complete
        broken = any(step.status is Status.ERROR for phase in board.phases for step in phase.steps)
        assert (board.status is Status.ERROR) == broken == bool(board.errors)


two_plans = st.tuples(plans(name="deploy"), plans(name="seed")).map(list)
histories = st.lists(events, max_size=40)
EXAMPLES = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@EXAMPLES
@given(specs=two_plans, history=histories, backoff=st.booleans())
def test_whatever_happens(
    specs: list[PlanSpec], history: list[tuple[object, ...]], backoff: bool
) -> None:
    """No step begins before what its strategy puts before it is complete (``Engine.begin``), no
    asset is worked on by two, a complete step becomes incomplete by a restart only, reports about
    old launches change nothing (``Engine.report``), and everything survives being carried."""
    engine = Engine(specs, backoff=Backoff(enabled=backoff))
    for what in history:
        before = set(engine.places(lambda state: state.complete))
        again = happen(engine, what)
        check(engine)
        after = set(engine.places(lambda state: state.complete))
        assert again or before <= after
    event(f"complete steps: {len(engine.places(lambda state: state.complete)) // 4 * 4}+")
    engine.restart()


@EXAMPLES
@given(specs=two_plans, history=histories)
def test_a_finished_plan_is_reachable_by_continues_and_by_forcing_what_is_in_error(
    specs: list[PlanSpec], history: list[tuple[object, ...]]
) -> None:
    engine = Engine(specs)
    for what in history:
        happen(engine, what)
    rounds = 0
    while not engine.complete:
        rounds += 1
        assert rounds < 200, [readings(board) for board in engine.boards]
        proceed(engine)
        check(engine)


def proceed(engine: Engine) -> None:
    """Everything that runs ends well, whatever may begin begins, and the operator says continue to
    whatever waits and forces what is in error."""
    for place in engine.places(lambda state: state.status is Status.DELAYED):
        engine.set(place, due(engine.state(place)))
    for place in engine.places(lambda state: state.status in (Status.STARTING, Status.STARTED)):
        for task_id, task in engine.state(place).tasks.items():
            good = TaskState.RUNNING if task.goal is Goal.RUNNING else TaskState.FINISHED
            engine.report(place, task_id, good)
        end(engine, place, "well")
    for place in engine.workable():
        if place in engine.workable():  # still, after the ones before it
            engine.begin(place)
    for i, board in enumerate(engine.boards):
        if board.interrupted or board.closed_gate is not None:
            engine.tell(i, Verb.CONTINUE)
        for phase in board.phases:
            engine.tell(i, Verb.CONTINUE, phase.spec.name)
            for spec, state in zip(phase.spec.steps, phase.steps, strict=True):
                if state.status is Status.ERROR:
                    engine.tell(i, Verb.FORCE_COMPLETE, phase.spec.name, spec.name)


@EXAMPLES
@given(specs=two_plans, history=histories)
def test_force_complete_of_the_plan_completes_it_at_once(
    specs: list[PlanSpec], history: list[tuple[object, ...]]
) -> None:
    engine = Engine(specs)
    for what in history:
        happen(engine, what)
    for i in range(len(specs)):
        engine.tell(i, Verb.FORCE_COMPLETE)
    assert engine.complete
    check(engine)
    assert engine.leases == LeaseState()
