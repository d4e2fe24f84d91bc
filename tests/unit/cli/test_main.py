"""The command line as its users meet it: arguments, texts, exit codes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from temporal_plans.cli.inputs.flags import ConnectionFlags
from temporal_plans.cli.main import run
from temporal_plans.client.errors import Refused
from temporal_plans.client.temporal import connection as connecting
from temporal_plans.client.temporal.connection import Connection, ServerUnreachableError
from temporal_plans.domain.plans.commands import Command, Outcome, Result
from temporal_plans.domain.values.refusal import Code
from unit.cli.kit import Run
from unit.fake_gateway import Call, FakeGateway

COMMANDS = [
    *("dev", "demo", "worker", "agent", "spoke", "validate", "schema", "run"),
    *("deploy", "diff", "rollback", "uninstall", "configs"),
    *("list", "show", "explain", "log", "history", "agents", "logs", "audit", "pods", "tasks"),
    *("start", "stop", "continue", "interrupt", "restart", "force-complete"),
    *("objects", "remove-agent", "config", "pod", "schedule", "fleet", "package"),
]
NOUNS = {
    "config": ["list", "show", "diff"],
    "pod": ["restart", "replace", "pause", "resume"],
    "fleet": ["decide", "simulate"],
    "package": ["verify", "render", "params", "plans", "tasks", "create", "pack"],
    "schedule": ["create", "list", "show", "pause", "unpause", "trigger", "delete"],
}
"""The commands that have commands of their own."""

# --- help ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(run: Run, command: str) -> None:
    help_text = run(command, "--help")
    assert help_text.code == 0
    assert "Examples:" in help_text.out
    assert f"temporal-plan {command}" in help_text.out
    assert "Connection" not in help_text.out


@pytest.mark.parametrize(
    ("noun", "command"), [(noun, command) for noun in NOUNS for command in NOUNS[noun]]
)
def test_every_command_of_a_noun_has_help_with_examples(run: Run, noun: str, command: str) -> None:
    help_text = run(noun, command, "--help")
    assert help_text.code == 0
    assert f"temporal-plan {noun} {command}" in help_text.out
    assert command in run(noun, "--help").out


def test_help_lists_the_commands_and_not_their_aliases(run: Run) -> None:
    listed = run("--help").out.partition("Commands:")[2]
    names = [
        line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "
    ]
    assert names == COMMANDS


def test_without_arguments_there_is_help_and_a_usage_error(run: Run) -> None:
    assert run().code == 2


def test_help_loads_nothing_slow() -> None:
    program = (
        "import sys; from temporal_plans.cli.main import run; run(['--help']); "
        "print([m for m in ('temporalio', 'pydantic', 'rich', 'yaml') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.splitlines()[-1] == "[]", out.stderr


def test_an_agent_loads_no_verbs_and_no_telemetry() -> None:
    slow = (
        "temporal_plans.client.plans_client",
        "temporal_plans.messages.fleets",
        "temporal_plans.messages.packages",
        "temporal_plans.workflows",
        "opentelemetry.sdk",
        "kubernetes_asyncio",
    )
    program = (
        "import sys, temporal_plans.cli.processes.process, "
        "temporal_plans.activities.agent.host.main; "
        f"print([m for m in {slow} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.splitlines()[-1:] == ["[]"], out.stderr


def test_a_command_for_services_loads_no_values_of_fleets_and_reads_no_files() -> None:
    slow = (
        "temporal_plans.domain.fleets",
        "temporal_plans.messages.fleets",
        "temporal_plans.messages.promotions",
        "temporal_plans.loading",
        "yaml",
    )
    program = (
        "import sys, temporal_plans.client.plans_client, temporal_plans.cli.actions.showing; "
        f"print([m for m in {slow} if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.stdout.splitlines()[-1:] == ["[]"], out.stderr


# --- commands to plans --------------------------------------------------------------------------

STEP = ("hello", "hello-0:[server]")


@pytest.mark.parametrize(
    ("arguments", "verb", "text"),
    [
        (("start", "deploy"), "start", '"deploy" plan has been started.'),
        (("stop", "deploy"), "stop", '"deploy" plan has been stopped.'),
        (("interrupt", "deploy"), "interrupt", '"deploy" plan has been paused.'),
        (
            ("pause", "deploy", "hello"),
            "interrupt",
            '"deploy" plan: phase "hello" has been paused.',
        ),
        (("continue", "deploy"), "continue", '"deploy" plan has been resumed.'),
        (
            ("resume", "deploy", "hello"),
            "continue",
            '"deploy" plan: phase "hello" has been resumed.',
        ),
        (("restart", "deploy"), "restart", '"deploy" plan has been restarted.'),
        (
            ("force-restart", "deploy", *STEP),
            "restart",
            '"deploy" plan: step "hello-0:[server]" in phase "hello" has been restarted.',
        ),
        (
            ("force-complete", "deploy", *STEP),
            "force_complete",
            '"deploy" plan: step "hello-0:[server]" in phase "hello" has been forced to complete.',
        ),
        (
            ("force", "deploy", "hello"),
            "force_complete",
            '"deploy" plan: phase "hello" has been forced to complete.',
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(map(str, value)),
)
def test_commands(
    run: Run, gateway: FakeGateway, arguments: tuple[str, ...], verb: str, text: str
) -> None:
    """The texts are those of behaviour 11.1."""
    ran = run(*arguments, "--reason", "why", "--by", "me")
    assert (ran.code, ran.out, ran.err) == (0, text + "\n", "")
    [call] = gateway.told
    assert (call.to, call.name) == ("hello-world/deploy", verb)
    assert isinstance(call.argument, Command)
    given = call.argument
    assert (given.phase, given.step) == (*arguments[2:], "", "")[:2]
    assert (given.reason, given.by) == ("why", "me")


@pytest.mark.parametrize("verb", ["restart", "stop"])
@pytest.mark.parametrize("force", [False, True])
def test_a_command_may_be_forced(run: Run, gateway: FakeGateway, verb: str, force: bool) -> None:
    assert run(verb, "deploy", *(["--force"] if force else [])).code == 0
    [call] = gateway.told
    assert isinstance(call.argument, Command)
    assert call.argument.force is force


def test_parameters_are_split_at_the_first_equals_sign(run: Run, gateway: FakeGateway) -> None:
    assert run("start", "deploy", "-p", "A=b=c", "--param", "B=").code == 0
    [call] = gateway.told
    assert isinstance(call.argument, Command)
    assert call.argument.parameters == {"A": "b=c", "B": ""}


def test_a_value_that_no_message_may_have_is_a_usage_error(run: Run, gateway: FakeGateway) -> None:
    ran = run("start", "deploy", "-p", f"SIZE={'x' * 10_001}")
    assert ran.code == 2, ran
    assert ran.err.startswith("Error: parameters.SIZE: must have at most 10000 characters")
    assert not gateway.told


def test_somebody_gives_the_command(run: Run, gateway: FakeGateway) -> None:
    run("stop", "deploy")
    [call] = gateway.told
    assert isinstance(call.argument, Command)
    assert "@" in call.argument.by


ALREADY = (
    "Error: Cannot execute command. Command has already been issued or the plan has completed\n"
)
NOW = "- the plan is IN_PROGRESS\n"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param(Outcome(result=Result.ALREADY, message="x"), ALREADY + NOW, id="208"),
        pytest.param(
            Outcome(result=Result.ALREADY, message="x", waiting=("the plan is interrupted",)),
            ALREADY + NOW + "- the plan is interrupted\n",
            id="208-and-what-waits",
        ),
        pytest.param(
            Outcome(result=Result.NOTHING, message="Nothing: a; b", waiting=("b", "and z")),
            "Error: Nothing: a; b\n- and z\n",
            id="nothing-changed",
        ),
        pytest.param(
            Refused.of(Code.NOT_FOUND, "Phase wrold not found; did you mean world?"),
            "Error: Phase wrold not found; did you mean world?\n",
            id="refused",
        ),
    ],
)
def test_a_command_that_did_nothing_ends_with_1(
    run: Run, gateway: FakeGateway, answer: BaseModel | Exception, text: str
) -> None:
    gateway.workflows["hello-world/deploy"].answers["continue"] = answer
    ran = run("continue", "deploy")
    assert (ran.code, ran.out, ran.err) == (1, "", text)


def test_a_reason_of_bytes_that_are_no_text_is_kept_as_text(run: Run, gateway: FakeGateway) -> None:
    assert run("stop", "deploy", "--reason", "bad \udcff").code == 0
    [call] = gateway.told
    assert isinstance(call.argument, Command)
    assert call.argument.reason == "bad ?"


def test_an_outcome_that_was_only_taken_is_done(run: Run, gateway: FakeGateway) -> None:
    gateway.workflows["hello-world/deploy"].answers["stop"] = Outcome(
        result=Result.UNDER_WAY, message="taken"
    )
    assert run("stop", "deploy").code == 0


# --- usage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("start",),
        ("start", "deploy", "-p", "X"),
        ("start", "deploy", "--nonsense"),
        ("stop", "deploy", "hello"),
        ("interrupt", "deploy", *STEP),
        ("deploy", "no-such-file.yml"),
        ("schema", "other"),
        ("show", "--watch"),
        ("show", "deploy", "--watch", "--json"),
        ("demo", "--timeout", "soon"),
        ("demo", "--timeout", "0s"),
        ("demo", "--timeout", "99999999999999d"),
        ("demo", "--fleet", "--package"),
        ("demo", "--fleet", "--context", "prod"),
        ("run", __file__, "--id", "hello-world/deploy"),
        ("run", __file__, "--id", "service/hello-world"),
        ("run", __file__, "--id", "pool/default"),
        ("agent", "--id", "a b"),
        ("agent", "--id", "a", "--ports", "9-1"),
        ("agent", "--id", "a", "--mount", "disk"),
        ("spoke", "--environment", "prod"),
        ("spoke", "--environment", "A B", "--hub", "localhost:7233"),
        ("list", "--grpc-meta", "x"),
        ("stop", "deploy", "--reason", "x" * 501),
        ("stop", "deploy", "--by", "x" * 201),
        ("deploy", __file__, "--canary", "0"),
        ("deploy", __file__, "--dry-run", "--wait"),
        ("rollback", "1", "2"),
        ("pod", "restart"),
        ("pod", "restart", "hello-0", "--task", "server"),
        ("schedule", "create", "backup"),
        ("config", "diff"),
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_wrong_usage_ends_with_2(run: Run, arguments: tuple[str, ...], tmp_path: Path) -> None:
    if arguments[0] == "agent":
        arguments = (*arguments, "--work-dir", str(tmp_path))
    ran = run(*arguments)
    assert ran.code == 2
    assert "Error: " in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("dev", "--agents", "x"), "'--agents': must be a whole number (found \"x\")"),
        (("dev", "--agents", "0"), "'--agents': must be 1 or more (found \"0\")"),
        (("agent", "--cpus", "x"), "'--cpus': must be a number (found \"x\")"),
        (("logs", "a", "--tail", "q"), "'--tail': must be a whole number (found \"q\")"),
        (
            ("config", "show", "--format", "xml"),
            "'--format' / '-o': 'xml' is not one of 'yaml', 'json'",
        ),
    ],
)
def test_a_wrong_value_is_told_in_our_words(
    run: Run, arguments: tuple[str, ...], expected: str
) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.err.rstrip().endswith(f"Error: Invalid value for {expected}")


def test_settings_that_contradict_each_other_are_usage(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connect(connection: Connection, **_: object) -> None:
        connection.resolve({})

    monkeypatch.setattr(connecting, "connect", connect)
    ran = run("list", "--tls-ca-path", "a", "--tls-ca-data", "b")
    assert ran.code == 2
    assert ran.err == "Error: give --tls-ca-path or --tls-ca-data, not both\n"


def test_no_server_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(connection: Connection, **_: object) -> None:
        raise ServerUnreachableError("localhost:1", "the connection was refused")

    monkeypatch.setattr(connecting, "connect", connect)
    ran = run("list")
    assert ran.code == 1
    assert "no Temporal server answers at localhost:1" in ran.err


def test_a_bug_shows_its_traceback(run: Run, gateway: FakeGateway) -> None:
    gateway.workflows["hello-world/deploy"].answers["stop"] = ZeroDivisionError("bug")
    ran = run("stop", "deploy")
    assert ran.code == 1
    assert "ZeroDivisionError" in ran.err


# --- connection flags ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "address", "namespace"),
    [
        ((), (), None, None),
        (("--address", "a:1"), (), "a:1", None),
        ((), ("--address", "a:1"), "a:1", None),
        (("--address", "a:1"), ("--namespace", "n"), "a:1", "n"),
        (("--address", "a:1"), ("--address", "b:2"), "b:2", None),
    ],
)
def test_connection_flags_stand_before_or_after(
    run: Run,
    connections: list[Connection],
    before: tuple[str, ...],
    after: tuple[str, ...],
    address: str | None,
    namespace: str | None,
) -> None:
    assert run(*before, "list", *after).code == 0
    assert [(c.address, c.namespace) for c in connections] == [(address, namespace)]


def test_all_connection_flags_reach_the_connection(run: Run, connections: list[Connection]) -> None:
    """Every one that there is: a new field of Connection needs its flag."""
    texts = set(Connection.model_fields) - {"tls", "tls_disable_host_verification", "grpc_meta"}
    said = [part for name in texts for part in (f"--{name.replace('_', '-')}", "x")]
    assert run("list", *said, "--no-tls", "--grpc-meta", "a=b").code == 0
    [connection] = connections
    assert connection.tls is False
    assert connection.grpc_meta == {"a": "b"}
    assert all(getattr(connection, name) is not None for name in texts)
    assert {field.name for field in ConnectionFlags.__dataclass_fields__.values()} == set(
        Connection.model_fields
    )


# --- files --------------------------------------------------------------------------------------

PLAN_FILE = """
name: backup
parameters:
  LABEL: {required: true, pattern: "[a-z]+", description: the copy's name}
phases:
  rest:
    steps:
      nap: {sleep: 1s}
"""


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    path = tmp_path / "backup.yml"
    path.write_text(PLAN_FILE)
    return str(path)


def test_validate_says_what_a_file_is_and_gives(run: Run, plan_file: str) -> None:
    ran = run("validate", plan_file)
    assert ran.code == 0
    assert ran.out == (
        """\
backup.yml: plan 'backup' with 1 phase

backup (serial strategy) (PENDING)
└─ rest (serial strategy) (PENDING)
   └─ nap (PENDING)

Parameters:
- LABEL (required): the copy's name
"""
    )


def test_validate_names_an_unknown_strategy_also_when_other_things_are_wrong(
    run: Run, tmp_path: Path
) -> None:
    """It may be a developer's own, so alone it is no problem of the file."""
    path = tmp_path / "plan.yml"
    path.write_text("name: x\nphases:\n  a: {strategy: seral, steps: {w: {sleep: 1x}}}\n")
    wrong = run("validate", str(path))
    assert wrong.code == 1
    assert "phases.a.steps.w.sleep.duration: must be a duration" in wrong.err
    assert "phases.a.strategy: unknown strategy" in wrong.err
    assert "did you mean serial? (one of your own: register it on the worker)" in wrong.err
    path.write_text("name: x\nphases:\n  a: {strategy: own-way, steps: {w: {sleep: 1s}}}\n")
    assert run("validate", str(path)).code == 0


def test_validate_shows_what_deploy_will_be_after_the_first_time(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "svc.yml"
    path.write_text(
        "name: web\n"
        "pods: {web: {count: 1, tasks: {server: {goal: RUNNING, cmd: x, cpus: 1, memory: 32}}}}\n"
        "plans:\n"
        "  deploy: {strategy: serial, phases: {all: {pod: web}}}\n"
        "  update: {strategy: serial, phases: {roll: {strategy: serial-canary, pod: web}}}\n"
    )
    ran = run("validate", str(path))
    assert ran.out.splitlines()[0].endswith("and 2 plans")
    assert ran.out.partition("after the first complete deployment:\n")[2] == (
        "update (serial strategy) (WAITING)\n"
        "└─ roll (serial-canary strategy) (WAITING)\n"
        "   └─ web-0:[server] (WAITING)\n"
    )


def test_validate_tells_all_problems(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "bad.yml"
    path.write_text(PLAN_FILE.replace("1s", "soon").replace("required: true", "default: 'X'"))
    ran = run("validate", str(path))
    assert ran.code == 1
    assert "phases.rest.steps.nap" in ran.err
    assert "parameters.LABEL.default" in ran.err


def test_validate_tells_what_only_a_developers_worker_knows(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "own.yml"
    path.write_text(PLAN_FILE.replace("rest:", "rest:\n    strategy: by-moon"))
    ran = run("validate", str(path))
    assert ran.code == 0
    assert "Only a worker that registers these names can run it:" in ran.out
    assert "by-moon" in ran.out


def test_validate_shows_the_steps_of_a_phase_that_is_named_strategy(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "own.yml"
    path.write_text(
        "name: p\nphases:\n  strategy:\n    steps:\n      one:\n        custom: {type: by-moon}\n"
    )
    ran = run("validate", str(path))
    assert "phases.strategy.steps.one" in ran.out
    assert "Only a worker that registers" in ran.out
    assert "are not shown" not in ran.out


def test_validate_tells_what_agents_can_not_do(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "svc.yml"
    path.write_text(
        "name: s\npods:\n  p:\n    count: 1\n    image: nginx\n    tasks:\n      t:\n"
        "        goal: RUNNING\n        cmd: sleep 1\n        cpus: 1\n        memory: 32\n"
    )
    ran = run("validate", str(path))
    assert ran.code == 1
    assert "svc.yml:5: pods.p.image: the built-in agents can't do this" in ran.err


@pytest.mark.parametrize("kind", ["service", "plan", "fleet", "fleet-decision"])
def test_schema(run: Run, kind: str) -> None:
    assert json.loads(run("schema", kind).out)["$schema"].startswith("https://json-schema.org/")


def test_run(run: Run, gateway: FakeGateway, plan_file: str) -> None:
    ran = run("run", plan_file, "-p", "LABEL=a", "--id", "b-1")
    assert (ran.code, ran.out) == (0, 'Plan "b-1" is under way.\n')
    assert [(call.to, call.name) for call in gateway.told] == [("b-1", "start")]


@pytest.mark.parametrize(
    ("command", "text", "complaint"),
    [
        pytest.param("deploy", PLAN_FILE, "a plan file; use `temporal-plan run`", id="plan"),
        pytest.param(
            "run", "pods:\n  p: {}\n", "a service file; use `temporal-plan deploy`", id="svc"
        ),
    ],
)
def test_a_file_of_the_other_kind(
    run: Run, gateway: FakeGateway, tmp_path: Path, command: str, text: str, complaint: str
) -> None:
    path = tmp_path / "file.yml"
    path.write_text(text)
    ran = run(command, str(path))
    assert (ran.code, ran.err) == (1, f"Error: file.yml: this is {complaint}\n")
    assert gateway.told == list[Call]()


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_mistyped_strategy_is_refused(
    run: Run, gateway: FakeGateway, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "typo.yml"
    path.write_text(PLAN_FILE.replace("rest:", "rest:\n    strategy: paralel"))
    ran = run(command, str(path))
    assert ran.code == 1
    assert "phases.rest.strategy: unknown strategy" in ran.err
    assert "did you mean parallel" in ran.err
    assert gateway.told == list[Call]()


@pytest.mark.parametrize("name", ["by-moon", "serial-by-rack"])
def test_a_strategy_of_ones_own_is_left_to_the_worker(
    run: Run, gateway: FakeGateway, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "own.yml"
    path.write_text(PLAN_FILE.replace("rest:", f"rest:\n    strategy: {name}"))
    ran = run("run", str(path), "-p", "LABEL=a")
    assert ran.code == 0
    assert ran.err.startswith(
        "Note: Only a worker that registers the strategy can run this plan: phases.rest.strategy"
    )
    assert [call.name for call in gateway.told] == ["start"]


def test_run_without_what_it_needs(run: Run, gateway: FakeGateway, plan_file: str) -> None:
    ran = run("run", plan_file)
    assert ran.code == 1
    assert ran.err == "Error: parameters.LABEL: the plan needs this parameter (the copy's name)\n"
    assert gateway.told == list[Call]()


def test_a_name_that_is_not_utf_8_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def encode(**arguments: object) -> None:
        os.fsdecode(b"\xff").encode()

    def app_for(arguments: object) -> Callable[..., None]:
        return encode

    monkeypatch.setattr("temporal_plans.cli.main._app_for", app_for)
    assert run(["pods", "-s", os.fsdecode(b"\xff")]) == 2
    assert "argument: not UTF-8 (found '\\udcff'); write it in UTF-8" in capsys.readouterr().err
