"""Plan files: all forms, every refusal, parameters."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.command import CommandWork
from temporal_plans.domain.kinds.custom import CustomWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.kinds.temporal import RetrySpec
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.kinds.workflow import WorkflowWork
from temporal_plans.domain.plans.plan import PlanSpec, StepSpec
from temporal_plans.domain.plans.plan_check import problems as plan_problems
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.plans import load_plan, load_plan_text
from unit.loading.plan_files import KINDS, load, step

REFUSED_BY_THE_SERVER = [
    ("activity", "task-queue: ''", "task-queue", "empty"),
    ("activity", f"task-queue: {'x' * 201}", "task-queue", "200"),
    ("activity", "task-queue: /_sys/x", "task-queue", "/_sys/"),
    ("workflow", "task-queue: /_sys/x", "task-queue", "/_sys/"),
    ("activity", "task-queue: temporal-sys-per-ns-tq", "task-queue", "temporal-sys-"),
    ("workflow", "id: ''", "id", "empty"),
    ("workflow", f"id: {'x' * 501}", "id", "500"),
    ("workflow", f"id: {'中' * 400}", "id", "1200 bytes"),
    ("workflow", "timeout: 3651d", "timeout", "10 years"),
    ("workflow", "timeout: -1", "timeout", "more than zero"),
    ("activity", "timeout: 3651d", "timeout", "10 years"),
    ("activity", "heartbeat-timeout: 3651d", "heartbeat-timeout", "10 years"),
    ("activity", "schedule-to-close-timeout: 0", "schedule-to-close-timeout", "more than zero"),
    ("activity", "retry: {maximum-attempts: 2147483648}", "retry.maximum-attempts", "2147483647"),
    ("activity", "retry: {backoff-coefficient: 0.5}", "retry.backoff-coefficient", "1 or more"),
    ("activity", "retry: {initial-interval: 0}", "retry.initial-interval", "more than zero"),
    ("activity", "retry: {maximum-interval: 0}", "retry.maximum-interval", "more than zero"),
    ("activity", "retry: {maximum-interval: 3651d}", "retry.maximum-interval", "10 years"),
]
"""Kind, setting, path and words of what no worker could carry out."""


@pytest.mark.parametrize(
    ("text", "work"),
    [
        pytest.param("{activity: freeze}", ActivityWork(type="freeze"), id="activity"),
        pytest.param(
            "{activity: {type: dump, task-queue: db, input: {a: 1}, timeout: 5m,"
            " heartbeat-timeout: 30, retry: {maximum-attempts: 3}}}",
            ActivityWork(
                type="dump",
                task_queue="db",
                input={"a": 1},
                timeout=timedelta(minutes=5),
                heartbeat_timeout=timedelta(seconds=30),
                retry=RetrySpec(maximum_attempts=3),
            ),
            id="activity-settings",
        ),
        pytest.param(
            "{activity: {type: dump, task_queue: db, inputs: [1, x]}}",
            ActivityWork(type="dump", task_queue="db", inputs=(1, "x")),
            id="snake-case-keys",
        ),
        pytest.param("{workflow: X}", WorkflowWork(type="X"), id="workflow"),
        pytest.param(
            "{workflow: {type: X, id: y, input: [1]}}",
            WorkflowWork(type="X", id="y", input=[1]),
            id="workflow-settings",
        ),
        pytest.param('{command: "test -f x"}', CommandWork(cmd="test -f x"), id="command"),
        pytest.param(
            "{command: {cmd: x, cpus: 0.5, memory: 8, env: {A: 1, B: true, C: c, D: 1.5}}}",
            CommandWork(
                cmd="x", cpus=0.5, memory=8, env={"A": "1", "B": "true", "C": "c", "D": "1.5"}
            ),
            id="command-settings",
        ),
        pytest.param("{approval: Look!}", ApprovalWork(message="Look!"), id="approval"),
        pytest.param("{approval: true}", ApprovalWork(), id="approval-true"),
        pytest.param("{approval: }", ApprovalWork(), id="approval-null"),
        pytest.param("{approval: {message: x}}", ApprovalWork(message="x"), id="approval-settings"),
        pytest.param("{sleep: 90s}", SleepWork(duration=timedelta(seconds=90)), id="sleep"),
        pytest.param("{sleep: 1.5}", SleepWork(duration=timedelta(seconds=1.5)), id="sleep-number"),
        pytest.param(
            "{sleep: {duration: 1h30m}}", SleepWork(duration=timedelta(minutes=90)), id="sleep-long"
        ),
        pytest.param("{custom: my-kind}", CustomWork(type="my-kind"), id="custom"),
        pytest.param(
            "{custom: {type: my-kind, input: {x: [true, null]}}}",
            CustomWork(type="my-kind", input={"x": [True, None]}),
            id="custom-settings",
        ),
        pytest.param(
            "{work: {kind: sleep, duration: 3}}",
            SleepWork(duration=timedelta(seconds=3)),
            id="normal-form",
        ),
    ],
)
def test_work(text: str, work: Work) -> None:
    (found,) = load(step(text)).phases[0].steps
    assert found == StepSpec(name="s", work=work)


def test_lists_and_mappings_are_the_same_plan() -> None:
    mapping = load(
        "name: plan\nparameters: {A: {required: true}, B: 2, C: }\n"
        "phases: {p: {steps: {s: {sleep: 1}, t: {approval: true}}}, q: {depends-on: [p]}}"
    )
    sequence = load(
        "name: plan\nparameters: [{name: A, required: true}, {name: B, default: '2'}, {name: C}]\n"
        "phases: [{name: p, steps: [{name: s, sleep: 1}, {name: t, approval: true}]},"
        " {name: q, depends-on: [p]}]"
    )
    assert mapping == sequence
    assert [phase.name for phase in mapping.phases] == ["p", "q"]


def test_the_workflows_input_is_the_file_as_json() -> None:
    document = {"name": "plan", "phases": {"p": {"steps": {"s": {"activity": "a"}}}}}
    assert PlanSpec.model_validate_json(json.dumps(document)) == load(json.dumps(document))


@pytest.mark.parametrize(
    ("strategy", "becomes"),
    [
        ("parallel", "dependency"),
        ("parallel-canary", "dependency-canary"),
        ("{name: parallel}", "dependency"),
        ("dependency", "dependency"),
        ("serial", "serial"),
    ],
)
def test_dependencies_are_kept(strategy: str, becomes: str) -> None:
    plan = load(
        f"name: plan\nphases:\n  p:\n    strategy: {strategy}\n    steps:\n"
        "      s: {sleep: 1}\n      t: {sleep: 1, depends-on: [s]}"
    )
    assert plan.phases[0].strategy.name == becomes


@pytest.mark.parametrize("key", ["on-error", "on_error"])
def test_errors_and_repetition(key: str) -> None:
    text = step("{sleep: 1}")
    plan = load(f"{text}\n{key}: stop\nreentrant: false\n")
    assert (plan.on_error, plan.reentrant) == ("stop", False)
    plain = load(text)
    assert (plain.on_error, plain.reentrant) == ("continue", True)
    for line, field in ((f"{key}: halt", key), ("reentrant: maybe", "reentrant")):
        with pytest.raises(SpecError) as refused:
            load(f"{text}\n{line}\n")
        assert [reason.field for reason in refused.value.reasons] == [field]


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(step("{sleep: 1}"))
    (tmp_path / "a.json").write_text('{"name": "plan",\n\t"phases": []}')
    assert load_plan(tmp_path / "a.yml").name == "plan"
    with pytest.raises(SpecError, match=r"a\.json: phases: the plan has no phases"):
        load_plan(tmp_path / "a.json")
    with pytest.raises(SpecError, match=r"b\.yml: No such file"):
        load_plan(tmp_path / "b.yml")


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        pytest.param("phases: {p: }", "name", "is missing", id="no-name"),
        pytest.param("name: p", "phases", "no phases", id="no-phases"),
        pytest.param("- a", "", "must be a mapping", id="no-mapping"),
        pytest.param("name: a/b\nphases: {p: }", "name", "'/'", id="name-slash"),
        pytest.param('name: " "\nphases: {p: }', "name", "empty", id="name-blank"),
        pytest.param('name: "a\\tb"\nphases: {p: }', "name", "control", id="name-control"),
        pytest.param(f"name: {'x' * 201}\nphases: {{p: }}", "name", "201", id="name-long"),
        pytest.param("name: p\nphases: {p: }\ncolour: x", "colour", "unknown key", id="key"),
        pytest.param("name: p\nphases: {p: 3}", "phases.p", "must be a mapping", id="phase-form"),
        pytest.param(
            "name: p\nphases: {p: {steps: {s: 3}}}", "phases.p.steps.s", "mapping", id="s"
        ),
        pytest.param(
            "name: p\nphases: [{name: a}, {name: a}]", "phases.a", "same name", id="phase-twice"
        ),
        pytest.param("name: p\nphases: {a/b: }", "phases.a/b", "'/'", id="phase-name"),
        pytest.param(
            "name: p\nphases: {p: }\nstrategy: serail",
            "strategy",
            "unknown strategy",
            id="strategy",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nstrategy: max-parallel", "strategy.limit", "needs", id="limit"
        ),
        pytest.param(
            "name: p\nphases: {p: }\nstrategy: {name: max-parallel, limit: 0}",
            "strategy.limit",
            "1 or more",
            id="limit-zero",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nstrategy: {name: serial, limit: 2}",
            "strategy.limit",
            "does not take",
            id="limit-ignored",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nstrategy: {name: serial, proceeds: 3}",
            "strategy.proceeds",
            "does not take",
            id="proceeds-ignored",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nstrategy: {name: serial, options: {a: 1}}",
            "strategy.options",
            "does not take",
            id="options-ignored",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nstrategy: {name: serial, waves: [1]}",
            "strategy.waves",
            "does not take",
            id="waves-ignored",
        ),
        pytest.param(
            'name: p\nphases: {p: }\nstrategy: {name: waves, waves: [1, "0%"]}',
            "strategy.waves.1",
            "above 0%",
            id="wave-zero",
        ),
        pytest.param(
            'name: p\nphases: {p: }\nstrategy: {name: waves, waves: ["3"]}',
            "strategy.waves.0",
            "a count",
            id="wave-text",
        ),
        pytest.param(
            "name: p\nphases: {p: {depends-on: [q]}}",
            "phases.p.depends-on",
            "names no element of the same parent",
            id="depends-on-unknown",
        ),
        pytest.param(
            "name: p\nstrategy: dependency\nphases: {p: {depends-on: [p]}}",
            "phases.p.depends-on",
            "on itself",
            id="depends-on-itself",
        ),
        pytest.param(
            "name: p\nstrategy: dependency\n"
            "phases: {a: {depends-on: [b]}, b: {depends-on: [c]}, c: {depends-on: [a]}}",
            "phases.a.depends-on",
            "a -> b -> c -> a",
            id="depends-on-circle",
        ),
        pytest.param(
            "name: p\nphases: {a: {depends-on: [b]}, b: }",
            "phases.a.depends-on",
            "serial does not keep this",
            id="depends-on-later",
        ),
        pytest.param(
            "name: p\nstrategy: {name: waves, waves: [2]}\nphases: {a: , b: {depends-on: [a]}}",
            "phases.b.depends-on",
            "waves does not keep this",
            id="depends-on-unheeded",
        ),
        pytest.param(step("{}"), "phases.p.steps.s", "has no work", id="no-work"),
        pytest.param(
            step("{approval: x, sleep: 1}"),
            "phases.p.steps.s",
            "more than one kind",
            id="two-works",
        ),
        pytest.param(
            step("{work: {kind: nap}}"), "phases.p.steps.s.work", "must be one of", id="kind"
        ),
        pytest.param(
            step("{activity: {}}"), "phases.p.steps.s.activity.type", "is missing", id="no-type"
        ),
        pytest.param(
            step("{activity: {type: x, time-out: 3}}"),
            "phases.p.steps.s.activity.time-out",
            "unknown key",
            id="activity-key",
        ),
        pytest.param(
            step("{activity: {type: x, timeout: soon}}"),
            "phases.p.steps.s.activity.timeout",
            "must be a duration",
            id="duration",
        ),
        pytest.param(
            step("{activity: {type: x, timeout: 0}}"),
            "phases.p.steps.s.activity.timeout",
            "more than zero",
            id="duration-zero",
        ),
        pytest.param(
            step("{sleep: 99999999999999999999s}"),
            "phases.p.steps.s.sleep.duration",
            "is too long",
            id="duration-huge",
        ),
        *(
            pytest.param(
                step(f"{{{kind}: {{type: x, {setting}}}}}"),
                f"phases.p.steps.s.{kind}.{key}",
                message,
                id=f"{kind}-{key}-{message.split()[-1]}",
            )
            for kind, setting, key, message in REFUSED_BY_THE_SERVER
        ),
        pytest.param(
            step(f"{{activity: {'x' * 201}}}"),
            "phases.p.steps.s.activity.type",
            "200",
            id="activity-type-long",
        ),
        pytest.param(
            step("{workflow: ''}"), "phases.p.steps.s.workflow.type", "empty", id="workflow-type"
        ),
        pytest.param(
            step("{sleep: 3651d}"),
            "phases.p.steps.s.sleep.duration",
            "10 years",
            id="sleep-too-long",
        ),
        pytest.param(
            step("{command: {cmd: x, timeout: 3651d}}"),
            "phases.p.steps.s.command.timeout",
            "10 years",
            id="command-too-long",
        ),
        pytest.param(
            step("{work: {kind: pod, pod: web, index: 0, tasks: []}}"),
            "phases.p.steps.s.pod.tasks",
            "must not be empty",
            id="pod-without-tasks",
        ),
        pytest.param(
            step("{activity: {type: x, input: 1, inputs: [1]}}"),
            "phases.p.steps.s.activity.inputs",
            "input and inputs",
            id="two-inputs",
        ),
        pytest.param(
            step("{sleep: -1}"), "phases.p.steps.s.sleep.duration", "negative", id="sleep-negative"
        ),
        pytest.param(
            step("{command: ' '}"), "phases.p.steps.s.command.cmd", "empty", id="command-empty"
        ),
        pytest.param(
            step("{command: {cmd: x, placement: 'hostname:X'}}"),
            "phases.p.steps.s.command.placement",
            "unknown",
            id="command-placement",
        ),
        pytest.param(
            step("{custom: my-kid}"), "phases.p.steps.s.custom.type", "unknown kind", id="custom"
        ),
        pytest.param(
            step("{sleep: 1}", "s: {sleep: 1}"),
            "phases.p.steps.s",
            "duplicate key",
            id="step-twice",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nparameters: [{name: A}, {name: A}]",
            "parameters.A",
            "declared twice",
            id="parameter-twice",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nparameters: {9A: }",
            "parameters.9A.name",
            "must match",
            id="parameter-name",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nparameters: {A: {required: true, default: x}}",
            "parameters.A.default",
            "never used",
            id="parameter-required-default",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nparameters: {A: {pattern: '['}}",
            "parameters.A.pattern",
            "not a regular expression",
            id="parameter-pattern",
        ),
        pytest.param(
            "name: p\nphases: {p: }\nparameters: {A: {pattern: '[a-z]', default: xy}}",
            "parameters.A.default",
            "own pattern",
            id="parameter-default",
        ),
    ],
)
def test_refuses(text: str, path: str, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        load(text)
    found = [(problem.field, problem.problem) for problem in raised.value.reasons]
    assert [problem[0] for problem in found] == [path], found
    assert message in found[0][1]


def test_all_problems_are_reported_together_with_lines() -> None:
    text = step(
        "{activity: {timeout: soon}}",
        "t: {sleep: -1, depends-on: [x]}",
        "u: {command: {cmd: x, cpus: 0}}",
    )
    with pytest.raises(SpecError) as raised:
        load_plan_text(f"strategy: serail\n{text}", source="b.yml", strategies=NAMES)
    assert [(problem.line, problem.field) for problem in raised.value.reasons] == [
        (1, "strategy"),
        (6, "phases.p.steps.s.activity.type"),
        (6, "phases.p.steps.s.activity.timeout"),
        (7, "phases.p.steps.t.depends-on"),
        (7, "phases.p.steps.t.sleep.duration"),
        (8, "phases.p.steps.u.command.cpus"),
    ]
    assert str(raised.value).startswith("b.yml:1: strategy: unknown strategy")
    assert "did you mean serial?" in str(raised.value)


def test_unknown_strategies_and_kinds_are_left_to_the_worker() -> None:
    plan = load_plan_text(
        "name: p\nstrategy: {name: mine, options: {a: 1}}\nphases: {p: {steps: {s: {custom: x}}}}"
    )
    assert plan.strategy == StrategySpec(name="mine", options={"a": 1})
    assert len(plan_problems(plan, NAMES, KINDS)) == 2
