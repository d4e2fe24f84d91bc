"""Malformed commands about fleets: refused before a server is asked, with what is wrong with which
value and what to write instead."""

from pathlib import Path

import pytest

from temporal_plans.domain.fleets.entities import Health
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.reports import EntityFacts, ReportFacts
from temporal_plans.messages.fleets.stops import OverrideWindows
from unit.cli.kit import DONE, Run
from unit.fake_gateway import FakeGateway, FakeWorkflow

LONG = "x" * 600
REFUSED = [
    # command, exit code, words of the message
    ("publish g 1.0.0", 2, ("'g'", "group:name")),
    ("publish g:a 1.0", 1, ("version", '"1.0"', "such as 1.2.3")),
    ("publish g:a 1.0.0 --channel a:b", 1, ("channels.0", '"a:b"')),
    ("publish g:a 1.0.0 -f none.yml", 2, ("none.yml", "no such file")),
    ("publish g:a 1.0.0 --manifest number.yml", 1, ("channels", "must be a list", "found 5")),
    ("publish g:a 1.0.0 --manifest mapping.yml", 1, ("channels", "must be a list")),
    ("publish g:a 1.0.0 --manifest unknown.yml", 1, ("chanels", "did you mean channels")),
    (f"publish g:a 1.0.0 --reason {LONG}", 2, ("--reason", "at most 500", "shorten")),
    ("recall g:a abc", 1, ("start", '"abc"', "1.2.3")),
    ("recall g:a 1.0.0 --minimum x", 1, ("roll-off.minimum-release", '"x"')),
    ("recall g:a 1.0.0 --freeze-until noon", 2, ("--freeze-until", "'noon'", "for example")),
    ("recall g:a 1.0.0 --id a:b", 1, ("id", '"a:b"')),
    ("recall g:a", 2, ("a version", "--revert")),
    ("suppress Prod", 2, ("'Prod'", "small letters")),
    ("suppress prod --for nan", 2, ("--for", "nan")),
    ("suppress prod --until 9999-12-31T23:59:59Z", 2, ("--until", "a year from 1900 to 4999")),
    ("suppress prod --until 0001-01-01T00:00:00+14:00", 2, ("--until", "out of range")),
    (f"suppress prod --by {LONG}", 2, ("--by", "at most 200")),
    ("suppress prod --id a:b", 2, ("id", "a:b")),
    ("unsuppress prod a:b", 2, ("id", "a:b")),
    ("override prod --for inf --reason x", 2, ("--for", "inf")),
    ("override prod --remove a:b", 2, ("id", "a:b")),
    ("cancel prod --suppress 0s", 2, ("--suppress", "0s")),
    ("resolve prod --outcome failed", 2, ("ENV/ENTITY", "'prod'")),
    ("resolve prod/a --outcome gone", 2, ("gone", "succeeded")),
    ("resolve prod/a --outcome failed --version v1", 2, ("version", "v1", "1.2.3")),
    ("command prod/a reboot", 2, ("reboot", "restart")),
    ("command prod/a install --version v1 --reason x", 2, ("version", "v1", "1.2.3")),
    ("promote g:a 1.0.0", 2, ("exactly one of", "--to")),
    ("promote g:a v1 --to stable", 2, ("version", "v1", "1.2.3")),
    ("promote g:a 1.0.0 --to a:b", 2, ("channels.0", "a:b")),
    ("promote g:a 1.0.0 --pause a:b", 2, ("target", "a:b")),
    ("approve Prod c", 2, ("'Prod'", "small letters")),
    ("reject prod a:b", 2, ("id", "a:b")),
    ("hold prod a:b", 2, ("id", "a:b")),
    ("requests Prod", 2, ("'Prod'", "small letters")),
    ("delete prod", 2, ("'prod'", "environment/NAME")),
    ("export x/y", 2, ("'x/y'", "environment")),
    ("explain prod", 2, ("ENV/ENTITY", "'prod'")),
    ("explain g:a/", 2, ("group:name/1.2.3",)),
    ("plans prod//b", 2, ("'/b'", "letters")),
    ("graph prod/a", 2, ("'prod/a'", "alone")),
    ("releases x", 2, ("'x'", "group:name")),
    ("decide rules.yml --at 9999-12-31T23:59:59Z", 2, ("--at", "a year from 1900 to 4999")),
    ("apply -f rules.yml", 1, ("rules.yml:1", "kind", "fleet decide")),
    ("apply -f rollouts.yml", 1, ("rollouts.yml:3", "rollouts.stable", "more than 0")),
    ("apply -f stops.yml", 1, ("suppressions.0.origin", "promotion", "fleet decide")),
    ("apply -f soak.yml", 1, ("soak.yml:4", "entities.a.soak", "counted by the product", "decide")),
    ("apply -f orders.yml", 1, ("entities.a.command", '"restart"', "fleet command")),
    ("apply -f orders.yml", 1, ("entities.a.config-overrides", "x", "document of the environment")),
    ("apply -f orders.yml", 1, ("entities.a.environment-config", "document of the environment")),
    ("apply -f orders.yml", 1, ("entities.a.last-number", "7", "remove it")),
    ("apply -f orders.yml", 1, ("entities.a.last-plan", "itself", "fleet decide")),
    ("apply -f orders.yml", 1, ("entities.a.product", "g:a", "itself")),
    ("diff -f orders.yml", 1, ("entities.a.last-number", "7")),
    ("apply -f nulls.yml", 1, ("entities.a.health", "null", "taken back", "stays as it is")),
    ("apply -f long.yml", 1, ("settings.agent-timeout", "9000", "at most 366 days")),
    ("diff -f long.yml", 1, ("settings.agent-timeout", "9000", "at most 366 days")),
]
FILES = {
    "number.yml": "channels: 5\n",
    "mapping.yml": "channels: {a: b}\n",
    "unknown.yml": "chanels: [a]\n",
    "rules.yml": "kind: expectation\n",
    "rollouts.yml": "kind: product\nname: g:a\nrollouts: {stable: 0s}\n",
    "stops.yml": "kind: suppressions\nenvironment: prod\n"
    "suppressions: [{id: s, origin: promotion, start: 2026-01-05T12:00:00Z}]\n",
    "soak.yml": "kind: state\nenvironment: prod\nentities:\n"
    "  a: {version: 1.0.0, soak: {since: 2026-01-05T12:00:00Z}}\n",
    "orders.yml": "kind: state\nenvironment: prod\nentities:\n  a:\n    product: g:a\n"
    "    command: {id: c, type: restart, reason: stuck}\n    config-overrides: {x: 1}\n"
    "    environment-config: {y: 1}\n    last-number: 7\n"
    "    last-plan: {kind: INSTALL, intent: INSTALL, status: FAILED}\n",
    "nulls.yml": "kind: state\nenvironment: prod\nentities: {a: {health: null}}\n",
    "long.yml": "kind: environment\nname: prod\nsettings: {agent-timeout: 9000d}\n",
}


@pytest.mark.parametrize(("line", "code", "words"), REFUSED, ids=[one[0][:60] for one in REFUSED])
def test_refused_with_the_value_and_what_to_write(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    code: int,
    words: tuple[str, ...],
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    ran = run("fleet", *line.split())
    assert ran.code == code, ran
    said = " ".join(ran.err.split())
    assert all(word in said for word in words), said
    assert not any(word in said for word in ("Traceback", "Input should", "validation error"))


OVERRIDE = """
kind: suppressions
environment: prod
overrides:
  - id: fix
    admits: downtime
    start: 2026-01-05T12:00:00Z
    end: 2026-01-05T14:00:00Z
"""


def test_overrides_of_a_document_are_applied_and_need_a_reason(
    run: Run, gateway: FakeGateway, tmp_path: Path
) -> None:
    status = EnvironmentStatus(name="prod", connection="agents-connected")
    answers = {"status": status, "override": DONE}
    gateway.workflows["environment/prod"] = FakeWorkflow("Environment", dict(answers))
    path = tmp_path / "open.yml"
    path.write_text(OVERRIDE)
    refused = run("fleet", "apply", "-f", str(path))
    assert refused.code == 1
    assert "reason: is missing; say why, or give --reason" in refused.err
    ran = run("fleet", "apply", "-f", str(path), "--reason", "a fix")
    assert ran.out.startswith("override fix of prod: ")
    [request] = [call.argument for call in gateway.told if call.name == "override"]
    assert isinstance(request, OverrideWindows)
    assert (request.id, request.admits, request.duration.total_seconds()) == (
        *("fix", "downtime"),
        7200,
    )


STATE = """
kind: state
environment: prod
connection: agents-connected
entities:
  a: {version: 1.0.0, health: ERROR, health-message: down, all-live: false, data-schema: 3}
"""


def test_all_that_a_state_may_say_reaches_the_environment(
    run: Run, gateway: FakeGateway, tmp_path: Path
) -> None:
    gateway.workflows["environment/prod"] = FakeWorkflow("Environment", {"report": DONE})
    path = tmp_path / "state.yml"
    path.write_text(STATE)
    ran = run("fleet", "apply", "-f", str(path))
    assert ran.out.startswith("state of prod: "), ran
    [request] = [call.argument for call in gateway.told if call.name == "report"]
    assert isinstance(request, ReportFacts)
    assert request.facts is not None
    assert request.facts.model_fields_set == {"connection"}
    known = EntityFacts(
        version="1.0.0",
        health=Health.ERROR,
        health_message="down",
        all_live=False,
        data_schema=3,
    )
    assert request.entities == {"a": known}
