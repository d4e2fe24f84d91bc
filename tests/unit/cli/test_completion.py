"""Completion of names by the shell, and by the `temporal` CLI for `temporal plan`."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from builders.plan_views import plan, reference_plan
from builders.pools import agent_view
from builders.services import service_status
from builders.tasks import record
from temporal_plans.cli.inputs import completion
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.messages.services import Pods, Tasks
from unit.cli.kit import Run
from unit.cli.service_answers import answering, pod_view
from unit.fake_gateway import FakeGateway, FakeWorkflow

VARIABLES = (
    completion.COMPLETE_VARIABLE,
    "_TYPER_COMPLETE_FISH_ACTION",
    "_TYPER_COMPLETE_ARGS",
    "COMP_WORDS",
    "COMP_CWORD",
)


@pytest.fixture
def unfinished(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """What `temporal plan WORDS<tab>` is completed with."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "")

    async def listens(address: str) -> None:
        assert address

    monkeypatch.setattr(completion, "_listens", listens)
    answering(
        gateway,
        pods=Pods(pods=(pod_view(),)),
        tasks=Tasks(tasks=(record("hello", 0, "server"), record("hello", 1, "other"))),
    )
    agents = (agent_view("a1"), agent_view("a2"))
    gateway.workflows["pool/default"] = FakeWorkflow(
        "Pool", {"status": PoolStatus(name="default", agents=agents)}
    )

    def completed(*words: str) -> list[str]:
        ran = run("__complete", *words)
        assert (ran.code, ran.err) == (0, "")
        *names, directive = ran.out.splitlines()
        assert directive == ":4"
        return names

    return completed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("show", "-s", ""), ["hello-world"]),
        (("show", ""), ["deploy"]),
        (("show", "x"), []),
        (("restart", "deploy", ""), ["hello", "world"]),
        (("restart", "deploy", "w"), ["world"]),
        (("restart", "deploy", "hello", "hello-0"), ["hello-0:[server]"]),
        (("restart", "hello-world/deploy", "-s", "hello-world", "hel"), ["hello"]),
        (("pod", "restart", "h"), ["hello-0"]),
        (("pod", "pause", "hello-1", "--task", "o"), ["other"]),
        (("logs", "hello-1"), ["hello-1-other"]),
        (("logs", "--plan", "deploy", "hello/hello-0"), ["hello/hello-0:[server]"]),
        (("remove-agent", ""), ["a1", "a2"]),
        (("remove-agent", "--pool", "west", ""), []),
        (("agents", "--pool", ""), ["default"]),
    ],
    ids=" ".join,
)
def test_names(
    unfinished: Callable[..., list[str]], words: tuple[str, ...], expected: list[str]
) -> None:
    assert [name for name in unfinished(*words) if name] == expected


def test_commands_and_options(unfinished: Callable[..., list[str]]) -> None:
    assert unfinished("remove")[0].startswith("remove-agent\t")
    assert unfinished("list", "--sta")[0].startswith("--status\t")
    assert len(unfinished()) > 20


def test_of_several_services_plans_have_their_ids(
    unfinished: Callable[..., list[str]], gateway: FakeGateway
) -> None:
    status = service_status("other", "deploy", "backup")
    gateway.workflows["service/other"] = FakeWorkflow("Service", {"status": status})
    gateway.workflows["nap"] = FakeWorkflow("Plan", {"status": plan(Status.WAITING, name="nap")})
    every = ["hello-world/deploy", "other/deploy", "other/backup", "nap"]
    assert unfinished("show", "") == every
    assert unfinished("show", "-s", "other", "b") == ["backup"]


BASH = [
    pytest.param("hello-0", r"hello-0:\[server\]", id="begun"),
    pytest.param("'hello-0", "hello-0:[server]", id="in-quotes"),
]


@pytest.mark.parametrize(("word", "expected"), BASH)
def test_bash_gets_names_quoted_unless_it_stands_in_quotes(
    unfinished: object, run: Run, monkeypatch: pytest.MonkeyPatch, word: str, expected: str
) -> None:
    monkeypatch.setenv(completion.COMPLETE_VARIABLE, "complete_bash")
    words = ("temporal-plan", "restart", "deploy", "hello", word)
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", "4")
    assert run().out == f"{expected}\n"


def test_without_an_answer_in_time_there_are_no_names(
    unfinished: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: str) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(completion, "_listens", never)
    monkeypatch.setattr(completion, "ANSWER_TIMEOUT", timedelta(milliseconds=20))
    assert [name for name in unfinished("show", "") if name] == []


def test_a_server_that_is_not_there_costs_little_time(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed port: the SDK alone would try for a while."""
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
    begun = time.monotonic()
    ran = run("__complete", "show", "--address", "127.0.0.1:1", "")
    assert (ran.code, ran.out.strip(), ran.err) == (0, ":4", "")
    assert time.monotonic() - begun < completion.ANSWER_TIMEOUT.total_seconds() + 5


@pytest.mark.parametrize("answer", [RuntimeError("broken"), None], ids=["error", "nothing"])
def test_a_plan_that_can_not_answer_has_no_phases(
    unfinished: Callable[..., list[str]], gateway: FakeGateway, answer: Exception | None
) -> None:
    answers = gateway.workflows["hello-world/deploy"].answers
    answers["status"] = answer or reference_plan()
    found = unfinished("restart", "deploy", "nothing-so")
    assert [name for name in found if name] == []
