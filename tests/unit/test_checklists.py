"""How many files an extension touches: each checklist of CONTRIBUTING is carried out on a copy of
the sources, and what it makes is used.

A ``Change`` is new files and additions to others, each below a line that is there. When a checklist
needs a further file, a test here fails, for what it made does not work.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from repository import ROOT

SOURCE_ROOTS = ("src", "workflows", "activities", "worker")
DOMAIN = "src/temporal_plans/domain"
ACTIVITIES = "activities/temporal_plans/activities"


@dataclass(frozen=True)
class Change:
    """``new`` is text by path; ``added`` are pairs of a line and what comes below it, by path."""

    new: Mapping[str, str]
    added: Mapping[str, tuple[tuple[str, str], ...]] = field(
        default_factory=dict[str, tuple[tuple[str, str], ...]]
    )

    @property
    def files(self) -> set[str]:
        return {*self.new, *self.added}


STRATEGY = Change(
    new={
        f"{DOMAIN}/plans/strategies/last_first.py": '''
"""One at a time, from the end."""

from temporal_plans.domain.plans.strategies.record import StrategyRecord, serial_seconds


def last_first(elements, spec, seed):
    """The last incomplete child."""
    return [element for element in elements if element.eligible][-1:]


LAST_FIRST = StrategyRecord(
    name="last-first",
    select=last_first,
    estimate=serial_seconds,
    gated=("last-first-canary",),
    in_services=frozenset({"last-first"}),
)
'''
    },
    added={
        f"{DOMAIN}/plans/strategies/__init__.py": (
            (
                "from temporal_plans.domain.plans.strategies.waves import WAVES",
                "from temporal_plans.domain.plans.strategies.last_first import LAST_FIRST",
            ),
            ("    WAVES,", "    LAST_FIRST,"),
        )
    },
)

STRATEGY_WORKS = """
from temporal_plans.domain.owners.rollout import Rollout, rolled_out
from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.plan_check import problems
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.domain.services.generation import generate
from temporal_plans.loading.plans import load_plan_text
from temporal_plans.loading.services.service import load_service_text

STEPS = "steps: {x: {sleep: 1}, y: {sleep: 1}}"
plan = load_plan_text("{name: p, phases: {a: {strategy: last-first, %s}}}" % STEPS)
assert problems(plan, NAMES) == ()
assert PlanBoard(plan).phases[0].candidates() == [1]
gated = load_plan_text("{name: p, phases: {a: {strategy: last-first-canary, %s}}}" % STEPS)
assert PlanBoard(gated).phases[0].closed_gate == 0
[wrong] = problems(plan.but(strategy=plan.phases[0].strategy.but(limit=3)), NAMES)
assert wrong.field == "strategy.limit", wrong
service = load_service_text(
    "name: s\\n"
    "pods: {p: {count: 2, tasks: {t: {goal: RUNNING, cmd: x, cpus: 1, memory: 32}}}}\\n"
    "plans: {deploy: {phases: {a: {pod: p, strategy: last-first}}}}\\n",
    {}, templates=lambda name: "",
)
[deploy] = generate(service)
assert rolled_out(deploy, Rollout(canary=1)).phases[0].strategy.name == "last-first-canary"
"""

KIND = Change(
    new={
        f"{DOMAIN}/kinds/say_text.py": '''
"""The step kind ``say-text``."""

from typing import ClassVar, Literal

from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.values.refusal import Reason


class EchoWork(Work):
    """Say something."""

    kind: Literal["say-text"] = "say-text"
    text: str

    bare: ClassVar[str | None] = "text"

    def faults(self, path):
        if not self.text:
            yield Reason(field=f"{path}.text", problem="is empty")
''',
        "workflows/temporal_plans/workflows/plans/kinds/say_text.py": '''
"""A step that says something."""


async def run(step):
    """Says it."""
    step.begin()
    step.say(step.work.text)
''',
    },
    added={
        f"{DOMAIN}/kinds/__init__.py": (
            (
                "from temporal_plans.domain.kinds.workflow import WorkflowWork",
                "from temporal_plans.domain.kinds.say_text import EchoWork",
            ),
            ("    DeregisterWork,", "    EchoWork,"),
        )
    },
)

KIND_WORKS = """
from temporal_plans import build
from temporal_plans.domain.plans.plan_check import problems
from temporal_plans.loading.plans import load_plan_text
from temporal_plans.loading.schema import json_schema
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.workflows.plans.registry import Registry, runners_of

plan = load_plan_text("{name: p, phases: {a: {steps: {x: {say-text: hello}}}}}")
work = plan.phases[0].steps[0].work
assert (work.kind, work.text) == ("say-text", "hello")
assert problems(plan) == ()
silent = plan.phases[0].steps[0].but(work=work.but(text=""))
[fault] = problems(plan.but(phases=(plan.phases[0].but(steps=(silent,)),)))
assert fault.field == "phases.a.steps.x.say-text.text", fault
assert "say-text" in json_schema("plan")["$defs"]["StepSpec"]["properties"]
assert Registry(runners=runners_of("plans")).runner_of(work).__name__ == "run"
built = build.plan("p", build.phase("a", build.work("say-text", text="hello")))
assert built.phases[0].steps[0].work == work
PlansPlugin()
"""

COMMANDS = "src/temporal_plans/cli/commands/operating.py"
VERBS = "workflows/temporal_plans/workflows/plans/plan_verbs.py"
COMMAND = Change(
    new={},
    added={
        f"{DOMAIN}/plans/commands.py": (
            ('    FORCE_COMPLETE = "force_complete"', '    APPLAUD = "applaud"'),
            (
                "    match verb:",
                "        case Verb.APPLAUD:\n"
                '            text = "the plan is applauded"\n'
                "            return Decision(outcome=Outcome(result=Result.DONE, message=text))",
            ),
        ),
        VERBS: (
            (
                "        self.check(Verb.FORCE_COMPLETE, command)",
                """
    @workflow.signal(name="applaud", description=f"Applaud. {_TARGET}")
    async def applaud_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.APPLAUD, command, "signal")

    @workflow.update(name="applaud", description=f"Applaud. {_TARGET}")
    async def applaud_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.APPLAUD, command, "update")

    @applaud_update.validator
    def _check_applaud(self, command: Command = Command()) -> None:
        self.check(Verb.APPLAUD, command)
""",
            ),
        ),
        COMMANDS: (
            (
                '    "force_complete": "forced to complete",',
                '    "applaud": "applauded",',
            ),
            (
                "def add_to(app: typer.Typer) -> None:",
                '    offer(app, applaud, "applaud", "temporal-plan applaud deploy")',
            ),
            (
                '    """Force a step, a phase or a whole plan to COMPLETE."""\n'
                "    from temporal_plans.domain.plans.commands import Command, Verb\n"
                "\n"
                "    command = Command(phase=phase, step=step, reason=reason, by=_author(by))\n"
                "    _execute(flags, service, plan, Verb.FORCE_COMPLETE, command, json=json)",
                '''

def applaud(flags: ConnectionFlags, plan: PlanArgument) -> None:
    """Applaud a plan."""
    from temporal_plans.domain.plans.commands import Command, Verb

    _execute(flags, None, plan, Verb.APPLAUD, Command())
''',
            ),
        ),
    },
)

COMMAND_WORKS = """
from temporalio import workflow
from temporal_plans.api.dialect import http_code, message
from temporal_plans.cli.commands.operating import done_text
from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.commands import Command, Verb, decide
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.workflows.plans.plan import Plan

outcome = decide(PlanBoard(PlanSpec(name="p")), "p", Verb.APPLAUD, Command()).outcome
assert outcome.message == "the plan is applauded"
assert http_code(outcome) == 200
assert message("p", Verb.APPLAUD, Command(), outcome) == "Received cmd: applaud"
definition = workflow._Definition.from_class(Plan)
assert "applaud" in definition.signals and definition.updates["applaud"].validator
assert done_text("p", Verb.APPLAUD, Command()) == '"p" plan has been applauded.'

import sys
from temporal_plans.cli.main import main
sys.argv = ["temporal-plan", "applaud", "--help"]
main()
"""

FIELD = Change(
    new={},
    added={
        "src/temporal_plans/loading/services/sections/tasks.py": (
            (
                '        default=(), description="Certificates for the task. Refused by agents."\n'
                "    )",
                '    nice: int = Field(default=0, description="How far the task steps back.")',
            ),
        ),
        f"{DOMAIN}/services/spec.py": (
            (
                "    transport_encryption: tuple[TransportEncryption, ...] = ()",
                "    nice: int = 0",
            ),
        ),
        "src/temporal_plans/loading/services/convert.py": (
            ("        ipc_mode=task.ipc_mode,", "        nice=task.nice,"),
        ),
    },
)
"""What is done with it is a fourth file."""

FIELD_WORKS = """
from temporal_plans.domain.services.comparison import differs
from temporal_plans.loading.schema import json_schema
from temporal_plans.loading.services.service import load_service_text

def load(nice):
    task = "{goal: RUNNING, cmd: x, cpus: 1, memory: 32, nice: %s}" % nice
    text = "name: s\\npods: {p: {count: 1, tasks: {t: %s}}}\\n" % task
    return load_service_text(text, {}, templates=lambda name: "").pods[0]

assert load(5).tasks[0].nice == 5
assert "nice" in json_schema("service")["$defs"]["TaskFile"]["properties"]
assert differs(load(1), load(2))
assert not differs(load(1), load(1))
"""


TASK_KIND = Change(
    new={
        f"{DOMAIN}/packages/tasks/label.py": '''
"""The task kind ``Label``."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from temporal_plans.domain.packages.tasks.task import PackageTask
from temporal_plans.domain.packages.value import Text
from temporal_plans.domain.values.refusal import Reason


class LabelTask(PackageTask):
    """Give an object a label."""

    kind: Literal["Label"] = "Label"
    object_name: Text = Field(default="", description="The object.")

    def faults(self) -> Iterator[Reason]:
        if not self.object_name:
            yield Reason(field="objectName", problem="is missing")
''',
        f"{ACTIVITIES}/packages/tasks/label.py": '''
"""The task kind ``Label``."""

from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.tasks.execution import DONE, TaskExecution, TaskState
from temporal_plans.domain.packages.tasks.label import LabelTask


async def label(task: LabelTask, context: StepContext) -> TaskExecution:
    """Give an object a label."""

    async def begin() -> None: ...

    async def look() -> TaskState:
        return DONE

    return TaskExecution(begin=begin, look=look)
''',
    },
    added={
        f"{DOMAIN}/packages/tasks/__init__.py": (
            (
                "from temporal_plans.domain.packages.tasks.dummy import DummyTask",
                "from temporal_plans.domain.packages.tasks.label import LabelTask",
            ),
            ("    DummyTask,", "    LabelTask,"),
        ),
        f"{ACTIVITIES}/packages/tasks/__init__.py": (
            (
                "from temporal_plans.activities.packages.tasks.execution import TaskKind",
                "from temporal_plans.activities.packages.tasks.label import label",
            ),
            ('    "Dummy": dummy,', '    "Label": label,'),
        ),
    },
)

TASK_KIND_WORKS = """
from temporal_plans.loading.packages.reader import read_files
from temporal_plans.loading.packages.verification import verify
from temporal_plans.loading.schema import json_schema

def load(spec):
    tasks = "[{name: t, kind: Label, spec: {%s}}]" % spec
    steps = "[{name: s, tasks: [t]}]"
    plans = "{deploy: {phases: [{name: p, steps: %s}]}}" % steps
    operator = "name: x\\noperatorVersion: '1'\\nkubernetesVersion: '1'\\n"
    operator += f"tasks: {tasks}\\nplans: {plans}"
    return read_files({"operator.yaml": operator.encode(), "params.yaml": b""}, "x")

assert load("objectName: web").package.task("t").object_name == "web"
assert verify(load("objectName: web"), rendering=False).valid
[error] = verify(load(""), rendering=False).errors
assert error.field == "tasks.t.spec.objectName", error
[warning] = verify(load("objectName: a, objectNam: b"), rendering=False).warnings
assert "did you mean objectName?" in warning.fix
spec = json_schema("package")["$defs"]["LabelTask"]["properties"]["spec"]
assert list(spec["properties"]) == ["objectName"]

import asyncio
from temporal_plans.activities.packages.tasks import TASK_KINDS
execution = asyncio.run(TASK_KINDS["Label"](load("objectName: web").package.task("t"), None))
assert asyncio.run(execution.look()).done
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("sources")
    for root in SOURCE_ROOTS:
        shutil.copytree(ROOT / root, copy / root, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.parametrize(
    ("change", "script", "files"),
    [
        pytest.param(STRATEGY, STRATEGY_WORKS, 2, id="strategy"),
        pytest.param(KIND, KIND_WORKS, 3, id="step-kind"),
        pytest.param(COMMAND, COMMAND_WORKS, 3, id="command"),
        pytest.param(FIELD, FIELD_WORKS, 3, id="svc.yml-field"),
        pytest.param(TASK_KIND, TASK_KIND_WORKS, 4, id="task-kind"),
    ],
)
def test_an_extension_touches_so_many_files(
    sources: Path, tmp_path: Path, change: Change, script: str, files: int
) -> None:
    assert len(change.files) == files
    copy = tmp_path / "copy"
    shutil.copytree(sources, copy)
    for path, text in change.new.items():
        (copy / path).write_text(text)
    for path, additions in change.added.items():
        text = (copy / path).read_text()
        for below, addition in additions:
            assert text.count(f"{below}\n") == 1, f"{path}: {below}"
            text = text.replace(f"{below}\n", f"{below}\n{addition}\n")
        (copy / path).write_text(text)
    roots = os.pathsep.join(str(copy / root) for root in SOURCE_ROOTS)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={**os.environ, "PYTHONPATH": roots, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
