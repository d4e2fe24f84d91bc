"""Every command by ``temporal plan``, by a plain signal and by a plain update: the same effect,
and all of it in the log. What is mistyped or malformed is told, and harms nobody.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from acceptance.cluster import Cluster
from acceptance.histories import assert_all_replays
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.cluster.agents import AgentInfo
from temporal_plans.domain.plans.commands import Command, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.loading.plans import load_plan_text
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.plans import LogEntry

PLAN_FILE = """
name: drill
phases:
  work:
    steps:
      nap: {sleep: 1h}
      rest: {sleep: 1h}
  sign-off:
    steps:
      review: {approval: Is everybody rested?}
"""

NAP = "work (STARTING) nap STARTING, rest PENDING; sign-off (PENDING) review PENDING"


@dataclass(frozen=True)
class Given:
    """A command and the tree that it leads to, from that of the command before."""

    verb: str
    tree: str
    phase: str = ""
    step: str = ""

    @property
    def reason(self) -> str:
        return f"drill: {self.verb} {self.phase} {self.step}".strip()


DRILL = (
    Given("interrupt", f"WAITING: {NAP}"),
    Given("continue", f"STARTING: {NAP}"),
    Given(
        "interrupt",
        "WAITING: work (STARTING) nap STARTING, rest PENDING; sign-off (WAITING) review PENDING",
        phase="sign-off",
    ),
    Given("continue", f"STARTING: {NAP}", phase="sign-off"),
    Given(
        "force_complete",
        "IN_PROGRESS: work (IN_PROGRESS) nap FORCED, rest STARTING; "
        "sign-off (PENDING) review PENDING",
        phase="work",
        step="nap",
    ),
    Given(
        "restart",
        "STARTING: work (STARTING) nap STARTING, rest STARTING; sign-off (PENDING) review PENDING",
        phase="work",
        step="nap",
    ),
    Given(
        "force_complete",
        "WAITING: work (COMPLETE) nap FORCED, rest FORCED; sign-off (WAITING) review WAITING",
        phase="work",
    ),
    Given(
        "stop",
        "WAITING: work (PENDING) nap PENDING, rest PENDING; sign-off (PENDING) review PENDING",
    ),
    Given("start", f"STARTING: {NAP}"),
    Given(
        "force_complete",
        "COMPLETE: work (COMPLETE) nap FORCED, rest FORCED; sign-off (COMPLETE) review FORCED",
    ),
)

Give = Callable[[Cluster, str, Given], Awaitable[None]]


async def by_temporal_plan(cluster: Cluster, plan: str, given: Given) -> None:
    """``temporal plan force-complete …``: the CLI runs ours as its own sub-command."""
    elements = [name for name in (given.phase, given.step) if name]
    await cluster.temporal(
        *("plan", given.verb.replace("_", "-"), plan, *elements),
        *("--reason", given.reason, "--by", "ann"),
    )


async def by_signal(cluster: Cluster, plan: str, given: Given) -> None:
    await cluster.temporal(
        *("workflow", "signal", "--workflow-id", plan, "--name", given.verb),
        *("--input", _input(given)),
    )


async def by_update(cluster: Cluster, plan: str, given: Given) -> None:
    await cluster.temporal(
        *("workflow", "update", "execute", "--workflow-id", plan, "--name", given.verb),
        *("--input", _input(given)),
    )


def _input(given: Given) -> str:
    values = {
        "phase": given.phase,
        "step": given.step,
        "reason": given.reason,
        "by": "ann",
    }
    return json.dumps({name: value for name, value in values.items() if value})


WAYS = [
    pytest.param(by_temporal_plan, "update", id="temporal-plan"),
    pytest.param(by_signal, "signal", id="signal"),
    pytest.param(by_update, "update", id="update"),
]


def tree(view: PlanView) -> str:
    """``STARTING: work (STARTING) nap STARTING, rest PENDING; …``: the whole tree in a line."""
    phases: list[str] = []
    for phase in view.phases:
        told = [f"{step.name} {'FORCED' if step.forced else step.status}" for step in phase.steps]
        phases.append(f"{phase.name} ({phase.status}) {', '.join(told)}")
    return f"{view.status}: {'; '.join(phases)}"


@pytest.fixture
async def drill(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """The id of a plan that is under way."""
    name = str(request.node.name).translate(str.maketrans("[]", "--")).strip("-")
    client = await cluster.client()
    await client.run(load_plan_text(PLAN_FILE), plan_id=name)
    await cluster.until_plan(name, "works", partial(_shows, f"STARTING: {NAP}"))
    return name


async def log_of(cluster: Cluster, plan: str) -> list[LogEntry]:
    return list((await (await cluster.client()).log(plan)).entries)


def _shows(expected: str, view: PlanView) -> bool:
    return tree(view) == expected


@pytest.mark.parametrize(("give", "via"), WAYS)
async def test_the_same_effect_whichever_way(
    cluster: Cluster, drill: str, give: Give, via: str
) -> None:
    for given in DRILL:
        await give(cluster, drill, given)
        await cluster.until_plan(
            drill,
            f"after {given.reason!r} shows {given.tree}",
            partial(_shows, given.tree),
        )
    log = json.loads((await cluster.plan("log", drill, "--json")).out)
    entries: list[dict[str, Any]] = log["entries"]
    assert [(e["verb"], e.get("phase", ""), e.get("step", "")) for e in entries] == [
        (given.verb, given.phase, given.step) for given in DRILL
    ]
    assert [e["reason"] for e in entries] == [given.reason for given in DRILL]
    assert {e["by"] for e in entries} == {"ann"}
    assert {e["via"] for e in entries} == {via}
    assert {e["outcome"]["result"] for e in entries} == {"done"}


# --- mistyped -------------------------------------------------------------------------------------


MISTYPED = [
    pytest.param({"phase": "wrok"}, "phase wrok not found; did you mean work?", id="phase"),
    pytest.param(
        {"phase": "work", "step": "nep"}, "step nep not found; did you mean nap?", id="step"
    ),
    pytest.param({"step": "nap"}, "named without its phase", id="step-without-phase"),
]


@pytest.mark.parametrize(("names", "answer"), MISTYPED)
async def test_mistyped_names(
    cluster: Cluster, drill: str, names: dict[str, str], answer: str
) -> None:
    """An update is refused with the right names, before it is taken; a signal is in the log."""
    before = await cluster.view(drill)
    said = await cluster.temporal(
        *("workflow", "update", "execute", "--workflow-id", drill, "--name", "restart"),
        *("--input", json.dumps(names)),
        code=1,
    )
    assert answer in said.both
    if "phase" in names:
        said = await cluster.plan("restart", drill, *names.values(), code=1)
        assert answer in said.err
    assert await log_of(cluster, drill) == []

    await cluster.temporal(
        *("workflow", "signal", "--workflow-id", drill, "--name", "restart"),
        *("--input", json.dumps(names)),
    )
    [entry] = await _until_logged(cluster, drill, 1)
    assert entry.verb == "restart"
    assert answer in entry.outcome.message
    assert not entry.outcome.changed
    assert tree(await cluster.view(drill)) == tree(before)


MALFORMED = [
    pytest.param("restart", ['{"fase": "work"}'], "fase", id="unknown-key"),
    pytest.param("restart", ['{"phase": 7}'], "phase", id="wrong-type"),
    pytest.param("restart", ['"work"'], "work", id="not-an-object"),
    pytest.param("restart", ['{"phase": "work"}', '{"step": "nap"}'], "", id="two-arguments"),
    pytest.param("force-complete", ["{}"], "did you mean force_complete", id="unknown-signal"),
    pytest.param("phase_changed", ['{"phase": "work"}'], "", id="the-engine's-own"),
]


@pytest.mark.parametrize(("name", "inputs", "told"), MALFORMED)
async def test_malformed_signals(
    cluster: Cluster, drill: str, name: str, inputs: list[str], told: str
) -> None:
    """The plan lives on unchanged, and the log has what a handler could see of it."""
    given = [part for input in inputs for part in ("--input", input)]
    await cluster.temporal("workflow", "signal", "--workflow-id", drill, "--name", name, *given)
    if name != "phase_changed":
        [entry] = await _until_logged(cluster, drill, 1)
        assert entry.verb == name
        assert told in entry.outcome.message
        assert http_code(entry.outcome) == 400
    await cluster.stays(drill, "goes on", partial(_shows, f"STARTING: {NAP}"))
    client = await cluster.client()
    await client.command(drill, Verb.FORCE_COMPLETE, Command(reason="alive"))
    await cluster.until_status(drill, Status.COMPLETE)


async def test_malformed_updates(cluster: Cluster, drill: str) -> None:
    for name, input, told in (
        ("restart", '{"fase": "work"}', "fase"),
        ("restart", '{"phase": 7}', "phase"),
        ("restrt", "{}", "restrt"),
    ):
        said = await cluster.temporal(
            *("workflow", "update", "execute", "--workflow-id", drill, "--name", name),
            *("--input", input),
            code=1,
        )
        assert told in said.both
    assert await log_of(cluster, drill) == []
    assert tree(await cluster.view(drill)) == f"STARTING: {NAP}"


async def test_a_malformed_plan_fails_at_once(cluster: Cluster) -> None:
    """``temporal workflow start`` with a typo: told, not retried for ever."""
    said = await cluster.temporal(
        *("workflow", "execute", "--type", "Plan", "--task-queue", "plans"),
        *("--workflow-id", "typo", "--input", '{"name": "typo", "fases": {}}'),
        code=1,
    )
    assert "fases" in said.both
    said = await cluster.temporal(
        *("workflow", "execute", "--type", "Plam", "--task-queue", "plans"),
        *("--workflow-id", "typo-2", "--input", "{}"),
        code=1,
    )
    assert "Plan" in said.both


@pytest.mark.parametrize("signal", ["register", "heard", "withdraw", "nonsense"])
async def test_a_malformed_signal_to_the_pool(cluster: Cluster, signal: str) -> None:
    before = await agents(cluster)
    await cluster.temporal(
        *("workflow", "signal", "--workflow-id", "pool/default", "--name", signal),
        *("--input", '{"agent": ["no", "agent"], "key": 7}'),
    )
    assert await agents(cluster) == before


async def agents(cluster: Cluster) -> list[AgentInfo]:
    """The agents of the pool, without the ports that other programs of the machine have in use."""
    return [agent.info.but(ports_in_use=()) for agent in (await cluster.pool()).agents]


async def _until_logged(cluster: Cluster, plan: str, count: int) -> list[LogEntry]:
    return await cluster.until(
        f"the log of {plan} has {count} entries",
        lambda: log_of(cluster, plan),
        lambda entries: len(entries) == count,
    )


async def test_all_of_it_replays(cluster: Cluster) -> None:
    """The last one here: whatever was done to plans before, no worker is the worse for it."""
    await assert_all_replays(cluster.server.address)
