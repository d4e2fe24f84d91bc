"""What holds whatever happens: any plans, any sequence of events, commands and restarts.

``Engine`` is the engine without Temporal: it begins what the boards say may begin, under leases,
reports what became of it, carries out commands, and is restarted from what is carried. What its
steps may do is judged by ``may_begin``, which knows the strategies from behaviour 2 and nothing
of their code.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from hypothesis import HealthCheck, currently_in_test_context, event, given
from hypothesis import strategies as st

from builders.boards import carry_out
from builders.clock import NOW
from properties import examples
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.board import PhaseBoard, PlanBoard, PlanState
from temporal_plans.domain.plans.commands import Command, CommandRefused, Outcome, Verb, decide
from temporal_plans.domain.plans.leases import Key, Lease, LeaseState, request
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies import CANARIES
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.transitions import (
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
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus

Place = tuple[int, int, int]
"""Plan, phase, step."""
LAUNCHED = (Status.STARTING, Status.STARTED)
"""Work is under way, and is followed whether or not the strategy still permits it."""

# --- arbitrary plans ------------------------------------------------------------------------------

STRATEGIES = [
    *(StrategySpec(name=name) for name in ("serial", "parallel", "dependency", "random") * 2),
    *(StrategySpec(name="max-parallel", limit=limit) for limit in (None, 2)),
    *(StrategySpec(name="waves", waves=waves) for waves in ((), (1, 2), ("50%",), (1, "40%"))),
    *(StrategySpec(name=name, proceeds=i) for name in sorted(CANARIES) for i in (1, 2)),
    StrategySpec(name="parallel-canary", proceeds=3),
    StrategySpec(name="max-parallel-canary", proceeds=3, limit=2),
]
WORKS: list[Work] = [
    *(
        PodWork(pod=pod, index=index, tasks=tasks)
        for pod, index in (("web", 0), ("web", 1), ("db", 0))
        for tasks in (("a",), ("b",), ("a", "b"))
    ),
    *[SleepWork(duration=timedelta(seconds=1))] * 4,
    *[ApprovalWork()] * 2,
]


@st.composite
def edges(draw: st.DrawFn, before: Sequence[str], strategy: StrategySpec) -> tuple[str, ...]:
    """Names among those before, for a strategy that follows them."""
    if not before or not strategy.name.startswith(("dependency", "max-parallel")):
        return ()
    chosen = draw(st.integers(0, 2 ** len(before) - 1))
    return tuple(name for i, name in enumerate(before) if chosen >> i & 1)


@st.composite
def phases(draw: st.DrawFn, *, name: str, depends_on: tuple[str, ...]) -> PhaseSpec:
    strategy = draw(st.sampled_from(STRATEGIES))
    names = [f"step-{i}" for i in range(draw(st.integers(0, 5)))]
    return PhaseSpec(
        name=name,
        strategy=strategy,
        depends_on=depends_on,
        steps=tuple(
            StepSpec(
                name=step,
                work=draw(st.sampled_from(WORKS)),
                depends_on=draw(edges(names[:i], strategy)),
                errors=("faulty",) if draw(st.integers(0, 9)) == 9 else (),
            )
            for i, step in enumerate(names)
        ),
    )


@st.composite
def plans(draw: st.DrawFn, *, name: str) -> PlanSpec:
    strategy = draw(st.sampled_from(STRATEGIES))
    names = [f"phase-{i}" for i in range(draw(st.integers(2, 4)))]
    made = [
        draw(phases(name=phase, depends_on=draw(edges(names[:i], strategy))))
        for i, phase in enumerate(names)
    ]
    return PlanSpec(name=name, strategy=strategy, phases=tuple(made))


# --- what behaviour 2 lets begin ------------------------------------------------------------------


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
    """Whether the order lets the child begin (behaviour 2, written down a second time)."""
    mine = children[index]
    others = [child for i, child in enumerate(children) if i != index]
    order = spec.name.removesuffix("-canary").replace("canary", "serial")
    if any(child.gated for child in children) and not (mine.canary and not mine.gated):
        return False
    if any(child.gated for child in children) and order != "max-parallel":
        return True
    if order == "parallel":
        return True
    if order == "serial":
        return all(child.complete for child in children[:index])
    if order == "dependency":
        return all(child.complete for child in children if child.name in mine.depends_on)
    if order == "max-parallel":
        left = {child.name for child in children if not child.complete}
        at_work = [o for o in others if o.begun and left.isdisjoint(o.depends_on)]
        in_turn = left.isdisjoint(mine.depends_on)
        return in_turn and (mine.begun or len(at_work) < (spec.limit or 1))
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
        self.give_back_idle()

    def give_back_idle(self) -> None:
        for place in self.places(lambda state: True):
            self.give_back(place)

    def give_back(self, place: Place) -> None:
        """Release the lease of a step that is neither at work nor about to be, as a phase does."""
        key = self.key(place)
        known = any(lease.key == key for lease in (*self.leases.held, *self.leases.wanted))
        if known and not self.needs_lease(place):
            self.leases = request(self.leases, (), [place[2]], key[0], False).state

    def needs_lease(self, place: Place) -> bool:
        plan, phase, step = place
        state, board = self.state(place), self.boards[plan]
        if not state.begun:
            return False
        if state.status in LAUNCHED or state.delayed_until is not None:
            return True  # followed, or due soon; a step that is only PREPARED needs permission
        return phase in board.candidates() and step in board.phases[phase].candidates()

    def holds_lease(self, place: Place) -> bool:
        return any(lease.key == self.key(place) for lease in self.leases.held)

    def key(self, place: Place) -> Key:
        return self.phase_id(place), place[2]

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
        assert not any([board.interrupted, inner.interrupted, inner.gate, state.interrupted])
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
        if not self.holds_lease(place):
            return  # nothing of the step is at work that could hear it: its phase asks for it again
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
            count(verb, refused.outcome)
            return
        assert board.state == before, "deciding changed something"
        count(verb, decision.outcome)
        carry_out(board, decision)
        if not decision.outcome.changed:
            assert board.state == before
        self.give_back_idle()

    def carry(self) -> None:
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


def count(verb: Verb, outcome: Outcome) -> None:
    if currently_in_test_context():
        event(f"{verb}: {http_code(outcome)}")


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

KINDS = ["begin"] * 6 + ["end"] * 3 + ["report"] * 3 + ["command"] * 3 + ["old", "due", "carry"]
SAID = [*Verb, Verb.CONTINUE, Verb.CONTINUE, Verb.CONTINUE, Verb.CONTINUE]
Event = tuple[str, int, int]
"""What, and two numbers that say where and how."""


def history(seed: int, length: int) -> list[Event]:
    """Drawn from a seed of hypothesis rather than by it: many times faster, evenly spread, and a
    failure is cut down to the shortest beginning that shows it."""
    chance = Random(seed)
    return [
        (chance.choice(KINDS), chance.randrange(256), chance.randrange(256)) for _ in range(length)
    ]


def happen(engine: Engine, what: Event) -> bool:
    """Let an event happen; whether it is one that may begin complete steps again."""
    kind, where, how = what
    match kind:
        case "begin":
            if found := engine.workable():
                engine.begin(found[where % len(found)], fits=how % 4 != 0)
        case "end":
            if found := engine.places(lambda state: state.status is Status.STARTING):
                end(engine, found[where % len(found)], ("well", "well", "badly", "later")[how % 4])
        case "report":  # about one of the newest launches
            if engine.launches:
                launch = engine.launches[-1 - where % min(4, len(engine.launches))]
                engine.report(*launch, FATES[how % len(FATES)])
        case "old":
            if engine.launches:
                launch = engine.launches[where % len(engine.launches)]
                engine.report(*launch, FATES[how % len(FATES)])
        case "due":
            if found := engine.places(lambda state: state.status is Status.DELAYED):
                place = found[where % len(found)]
                engine.set(place, due(engine.state(place)))
        case "command":
            verb, plan = SAID[where % len(SAID)], where // len(SAID) % 2
            engine.tell(plan, verb, *address(engine.specs[plan], how))
            return verb in REDO
        case _:
            engine.carry()
    return False


def address(spec: PlanSpec, how: int) -> tuple[str, str]:
    """The whole plan, a phase, a step, or something that there is not."""
    everything = [("", ""), ("", ""), ("phase-9", ""), ("", "step-0")]
    for phase in spec.phases:
        everything += [(phase.name, ""), *((phase.name, step.name) for step in phase.steps)]
    return everything[how % len(everything)]


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
            holds = engine.holds_lease(place)
            assert holds or engine.state(place).status not in LAUNCHED, f"{place} has no lease"
            for task in work.tasks if holds else ():  # PREPARED without one only waits for it
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
histories = st.builds(history, seed=st.integers(0, 2**20), length=st.integers(20, 80))
EXAMPLES = examples(120, suppress_health_check=[HealthCheck.too_slow])


@EXAMPLES
@given(specs=two_plans, history=histories, backoff=st.booleans())
def test_whatever_happens(specs: list[PlanSpec], history: list[Event], backoff: bool) -> None:
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
    engine.carry()


@EXAMPLES
@given(specs=two_plans, history=histories)
def test_a_finished_plan_is_reachable_by_continues_and_by_forcing_what_is_in_error(
    specs: list[PlanSpec], history: list[Event]
) -> None:
    engine = Engine(specs)
    for what in history:
        happen(engine, what)
    finish(engine)


def test_a_prepared_step_returns_its_lease_when_its_phase_loses_permission() -> None:
    """The gate of a later phase is opened first, and a step of it waits for an offer when the gate
    of the phase that it depends on is opened, whose step needs the same task of the same pod."""
    pod = StepSpec(name="step-0", work=PodWork(pod="web", index=0, tasks=("a",)))
    first = PhaseSpec(name="phase-0", steps=(pod,))
    later = PhaseSpec(name="phase-1", steps=(pod,), depends_on=("phase-0",))
    canary = StrategySpec(name="dependency-canary", proceeds=2)
    engine = Engine([PlanSpec(name="deploy", strategy=canary, phases=(first, later))])
    engine.tell(0, Verb.CONTINUE, "phase-1")
    assert engine.begin((0, 1, 0), fits=False)
    assert engine.holds_lease((0, 1, 0))
    engine.tell(0, Verb.CONTINUE, "phase-0")
    assert (engine.workable(), engine.leases) == ([(0, 0, 0)], LeaseState())
    finish(engine)


def test_a_step_that_waits_for_its_pod_hears_nothing_of_its_former_launch() -> None:
    """Its task was gone with its agent while its phase was interrupted, and is back when another
    step has the pod: the service keeps such a task's status, and no workflow of the step runs."""
    steps = tuple(
        StepSpec(name=name, work=PodWork(pod="web", index=0, tasks=("a",))) for name in ("b", "a")
    )
    phase = PhaseSpec(name="phase", strategy=StrategySpec(name="parallel"), steps=steps)
    engine = Engine([PlanSpec(name="deploy", phases=(phase,))])
    assert engine.begin((0, 0, 1))
    [(_, launch)] = engine.launches
    engine.tell(0, Verb.INTERRUPT, "phase")
    engine.report((0, 0, 1), launch, TaskState.GONE_BY_OPERATOR)
    engine.tell(0, Verb.CONTINUE, "phase")
    assert engine.begin((0, 0, 0))
    engine.report((0, 0, 1), launch, TaskState.RUNNING)
    check(engine)
    assert engine.state((0, 0, 1)).status is Status.PENDING


def finish(engine: Engine) -> None:
    for _ in range(200):
        if engine.complete:
            return
        proceed(engine)
        check(engine)
    raise AssertionError([readings(board) for board in engine.boards])


def proceed(engine: Engine) -> None:
    """Everything that runs ends well, whatever may begin begins, and the operator says continue to
    whatever waits and forces what is in error."""
    for place in engine.places(lambda state: state.delayed_until is not None):
        engine.set(place, due(engine.state(place)))
    for place in engine.places(lambda state: state.status in LAUNCHED):
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
    specs: list[PlanSpec], history: list[Event]
) -> None:
    engine = Engine(specs)
    for what in history:
        happen(engine, what)
    for i in range(len(specs)):
        engine.tell(i, Verb.FORCE_COMPLETE)
    assert engine.complete
    check(engine)
    assert engine.leases == LeaseState()
