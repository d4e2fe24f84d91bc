"""Every kind of document, malformed in every way: refused with path, value and, where the problem
does not say it, with what to do. No text of a library, and never an error of another kind."""

from datetime import UTC, datetime

import pytest

from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.fleets.files import read_documents
from temporal_plans.loading.fleets.snapshots import check_each, product_states, snapshots

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
AT = "2026-01-05T12:00:00Z"
LONG = "x" * 5000
TOO_MUCH = "x" * 200_000
PRODUCT = "kind: product\nname: g:a\nreleases:\n  - {version: 1.0.0, channels: [stable]}\n"
ENVIRONMENT = "kind: environment\nname: prod\nentities: {a: {product: 'g:a'}}\n"
BOTH = f"{PRODUCT}---\n{ENVIRONMENT}---\n"
TWICE = f"{{version: 1.0.0, channel: stable, at: {AT}}}"
RAMP = f"{{channel: stable, version: 1.0.0, started-at: {AT}, duration: 1h, entities: 1}}"
STOP = f"{{id: s, start: {AT}}}"


def settings(text: str) -> str:
    return f"kind: environment\nname: prod\nsettings: {{{text}}}\n"


def entity(text: str) -> str:
    return (
        f"{PRODUCT}---\nkind: environment\nname: prod\nentities:\n  a: {{product: 'g:a', {text}}}\n"
    )


def release(text: str) -> str:
    return f"kind: product\nname: g:a\nreleases:\n  - {{version: 1.0.0, {text}}}\n"


def product(text: str) -> str:
    return f"{PRODUCT}{text}\n"


def pipeline(text: str) -> str:
    return f"{PRODUCT}---\nkind: pipeline\nproduct: g:a\nstages: {text}\n"


def canary(text: str) -> str:
    return pipeline(f"[{{source: a, target: b, canary: {{promote: {{{text}}}}}}}]")


def state(text: str) -> str:
    return f"{BOTH}kind: state\nenvironment: prod\n{text}\n"


def reported(text: str) -> str:
    return state(f"entities: {{a: {{version: 1.0.0, {text}}}}}")


def stops(text: str) -> str:
    return f"{BOTH}kind: suppressions\nenvironment: prod\n{text}\n"


def expectation(text: str) -> str:
    return f"{BOTH}kind: expectation\n{text}\n"


def event(text: str) -> str:
    return f"{BOTH}kind: events\nevents: [{{{text}}}]\n"


REFUSED = {
    # text of the document: the path, the value, and words of the problem or the fix
    "kind: enviroment\nname: a\n": ("kind", "enviroment", "did you mean environment"),
    "kind: [a]\n": ("kind", "a", "use one of"),
    "just a text\n": ("", None, "mapping with a kind"),
    # --- environments ---
    "kind: environment\nname: 1\n": ("name", "1", "must be text"),
    f"kind: environment\nname: {'x' * 100}\n": ("name", "xxx", "at most 63 characters"),
    "kind: environment\nname: a\nsetings: {}\n": ("setings", "{}", "did you mean settings"),
    "kind: environment\nname: a\nsettings: []\n": ("settings", "[]", "mapping"),
    "kind: environment\nname: a\nname: b\n": ("name", "name", "duplicate key"),
    settings("max-active-plans: .nan"): ("settings.max-active-plans", ".nan", "whole number"),
    settings("max-active-plans: .inf"): ("settings.max-active-plans", ".inf", "whole number"),
    settings("agent-timeout: soon"): ("settings.agent-timeout", "soon", "30s, 5m or 1h30m"),
    settings("agent-timeout: .nan"): ("settings.agent-timeout", ".nan", "30s, 5m or 1h30m"),
    settings("scan-validity: 0s"): ("settings.scan-validity", "0:00:00", "more than 0"),
    settings("failure-suppression: 9000d"): (
        *("settings.failure-suppression", "9000 days"),
        "at most 366 days",
    ),
    settings("downtime-window: nights"): ("settings.downtime-window", "nights", "all-time"),
    settings("maintenance-windows: {n: {time-zone-name: Mars, time-intervals: []}}"): (
        *("settings.maintenance-windows.n.time-zone-name", "Mars"),
        "is not a time zone",
    ),
    settings("maintenance-windows: {n: {time-zone-name: UTC, time-intervals: [1-2]}}"): (
        *("settings.maintenance-windows.n.time-intervals.0", "1-2"),
        "MONDAY/22:00-TUESDAY/06:00",
    ),
    settings("labels: {a: 1}"): ("settings.labels.a", "1", "must be text"),
    settings(f"labels: {{a: {LONG}}}"): ("settings.labels.a", "xxx", "at most 200 characters"),
    settings("approvals: {changes: [all]}"): ("settings.approvals.changes.0", "all", "'entities'"),
    settings("approvals: {changes: [config], expire-after: 9000d}"): (
        *("settings.approvals.expire-after", None),
        "at most 366 days",
    ),
    f"kind: environment\nname: a\nconfig: {{a: {TOO_MUCH}}}\n": ("config", "200009", "elsewhere"),
    "kind: environment\nname: a\nconfig: [1]\n": ("config", "[1]", "mapping"),
    # --- entities ---
    ENVIRONMENT: ("entities.a.product", "g:a", "there is no product"),
    entity("replicas: many"): ("entities.a.replicas", "many", "whole number"),
    entity("replicas: .nan"): ("entities.a.replicas", ".nan", "whole number"),
    entity("uninstall: maybe"): ("entities.a.uninstall", "maybe", "true or false"),
    entity("chanel: x"): ("entities.a.chanel", "x", "use one of"),
    entity("config: {1.0: {}}"): ("entities.a.config.1.0", "1.0", "such as|1.2.3"),
    entity("config: {1.0.0: {overides: {}}}"): (
        *("entities.a.config.1.0.0.overides", "{}"),
        "did you mean overrides",
    ),
    entity(f"config: {{1.0.0: {{overrides: {{a: {TOO_MUCH}}}}}}}"): (
        *("entities.a.config.1.0.0.overrides", "200009"),
        "at most|more than 100000",
    ),
    entity(f"dependency-groups: [{', '.join(f'g{n}' for n in range(60))}]"): (
        *("entities.a.dependency-groups", "g0"),
        "at most 50 entries",
    ),
    entity("no-downtime-window: nights"): ("entities.a.no-downtime-window", "nights", "all-time"),
    f"{PRODUCT}---\n{ENVIRONMENT}---\n{ENVIRONMENT}": ("name", "prod", "remove one of them"),
    # --- products ---
    "kind: product\nname: a\n": ("name", "a", "must match"),
    "kind: product\nname: g:a\nreleases: {}\n": ("releases", "{}", "must be a list"),
    "kind: product\nname: g:a\nreleases: [{version: 5.0}]\n": (
        *("releases.0.version", "5.0"),
        "must be text",
    ),
    product("  - {version: 1.0.0}"): ("releases.1.version", "1.0.0", "remove one"),
    release("scan: {scanned-at: yesterday, risk: 1}"): (
        *("releases.0.scan.scanned-at", "yesterday"),
        "2026-01-05T08:30:00Z",
    ),
    release("scan: {scanned-at: 5, risk: 1}"): ("releases.0.scan.scanned-at", "5", "a time"),
    release("scan: {scanned-at: 2026-01-05T12:00:00, risk: 1}"): (
        *("releases.0.scan.scanned-at", "2026-01-05T12:00:00"),
        "must have a time zone",
    ),
    release(f"scan: {{scanned-at: {AT}, risk: .nan}}"): ("releases.0.scan.risk", ".nan", "number"),
    release(f"scan: {{scanned-at: {AT}, risk: 11}}"): ("releases.0.scan.risk", "11", "10 or less"),
    release("published-at: 9999-12-31T23:00:00-10:00"): (
        *("releases.0.published-at", "9999"),
        "use a year from 1900 to 4999",
    ),
    release("dependencies: [{product: 'g:a'}]"): (
        *("releases.0.dependencies.0.product", "g:a"),
        "remove it",
    ),
    release("dependencies: [{product: 'g:b', minimum-version: 2.0.0, maximum-version: 1.x.x}]"): (
        *("releases.0.dependencies.0.minimum-version", "2.0.0"),
        "give a range that has versions",
    ),
    release("dependencies: [{product: 'g:b', maximum-version: x.0.0}]"): (
        *("releases.0.dependencies.0.maximum-version", "x.0.0"),
        "1.2.x",
    ),
    release(f"artifacts: [{LONG}]"): ("releases.0.artifacts.0", "xxx", "at most 500 characters"),
    product("recalls: [{id: r, start: 1.0.0}, {id: r, start: 1.0.0}]"): (
        *("recalls.1.id", "r"),
        "use another id",
    ),
    product("recalls: [{id: r, start: 2.0.0, end: 1.0.0}]"): ("recalls.0.end", "1.0.0", "newer"),
    product("recalls: [{id: r, start: 1.0.0, roll-off: {freeze-until: 1}}]"): (
        *("recalls.0.roll-off.freeze-until", "1"),
        "must be a time",
    ),
    product(f"ramps: [{RAMP}, {RAMP}]"): ("ramps.1.version", "1.0.0", "remove one"),
    product(f"ramps: [{RAMP.replace('1.0.0', '2.0.0')}]"): ("ramps.0.version", "2.0.0", "1.0.0"),
    product(f"ramps: [{RAMP.replace('1h', '9999d')}]"): (
        "ramps.0.duration",
        "9999d",
        "3660d or less",
    ),
    product("rollouts: {stable: long}"): ("rollouts.stable", "long", "30s, 5m or 1h30m"),
    product(f"admissions: [{TWICE}, {TWICE}]"): ("admissions.1.version", "1.0.0", "remove one"),
    product("promotions: [{source: a, target: b, version: 1.0.0, status: gone}]"): (
        *("promotions.0.status", "gone"),
        "'paused'",
    ),
    # --- channels and pipelines ---
    "kind: channel\nname: ''\n": ("name", "", "must match"),
    "kind: channel\nname: a\nlabels: {x: y}\n": ("labels.x", "y", "must be a list"),
    "kind: channel\nname: a\narchived: perhaps\n": ("archived", "perhaps", "true or false"),
    "kind: channel\nname: a\nlables: {}\n": ("lables", "{}", "did you mean labels"),
    "kind: pipeline\nproduct: g:b\n": ("product", "g:b", "add a document for the product"),
    pipeline("{}"): ("stages", "{}", "must be a list"),
    pipeline("[{source: a, target: b}]"): ("stages.0", None, "give one of: timed, canary"),
    pipeline("[{source: a, target: b, timed: {soak: .inf}}]"): (
        *("stages.0.timed.soak", ".inf"),
        "30s, 5m or 1h30m",
    ),
    pipeline("[{source: a, target: RELEASE, timed: {soak: 1h}}]"): (
        *("stages.0.target", "RELEASE"),
        "use a channel of your own",
    ),
    canary("percent: .nan, soak: 1h"): ("stages.0.canary.promote.percent", ".nan", "a number"),
    canary("percent: 150, soak: 1h"): ("stages.0.canary.promote.percent", "150", "100 or less"),
    # --- states ---
    "kind: state\nenvironment: prd\n": ("environment", "prd", "add a document"),
    f"{BOTH}kind: state\nenvironment: prd\n": ("environment", "prd", "did you mean prod"),
    state("connection: maybe"): ("connection", "maybe", "'relayed'"),
    state("agent-seen-at: noon"): ("agent-seen-at", "noon", "2026-01-05T08:30:00Z"),
    state("agent-seen-at: 0001-01-01T00:00:00+14:00"): ("agent-seen-at", "0001", "from 1900"),
    state("artifacts: {x: gone}"): ("artifacts.x", "gone", "'available'"),
    reported("health: BAD"): ("entities.a.health", "BAD", "'ERROR'"),
    reported("data-schema: .nan"): ("entities.a.data-schema", ".nan", "whole number"),
    reported("command: {id: c, type: restart}"): ("entities.a.command.reason", None, "missing"),
    reported("command: {id: c, type: install, reason: x}"): (
        *("entities.a.command.version", None),
        "name the version",
    ),
    reported("soak: {since: 9999-12-31T23:59:59Z}"): ("entities.a.soak.since", "9999", "4999"),
    # --- suppressions ---
    stops("suppressions: {}"): ("suppressions", "{}", "must be a list"),
    stops("suppressions: [{id: s}]"): ("suppressions.0.start", None, "is missing"),
    stops(f"suppressions: [{STOP}, {STOP}]"): ("suppressions.1.id", "s", "use another id"),
    f"{stops(f'suppressions: [{STOP}]')}---\nkind: suppressions\nenvironment: prod\n"
    f"suppressions: [{STOP}]\n": ("suppressions.0.id", "s", "another document"),
    stops(f"suppressions: [{{id: s, entity: b, start: {AT}}}]"): (
        *("suppressions.0.entity", "b"),
        "use one of: a",
    ),
    stops(f"suppressions: [{{id: s, start: {AT}, end: {AT}}}]"): (
        *("suppressions.0.end", "2026"),
        "must be after start",
    ),
    stops(f"suppressions: [{{id: s, start: {AT}, reason: {LONG}}}]"): (
        *("suppressions.0.reason", "xxx"),
        "at most 1000 characters",
    ),
    stops(f"overrides: [{{id: s, admits: all, start: {AT}, end: {AT}}}]"): (
        *("overrides.0.admits", "all"),
        "'downtime'",
    ),
    # --- expectations and events ---
    expectation("decision: {}"): ("decision", "{}", "did you mean decisions"),
    expectation("at: 9999-12-31T23:00:00Z"): ("at", "9999", "use a year"),
    expectation("decisions: {prod/a: {outcome: GO}}"): (
        "decisions.prod/a.outcome",
        "GO",
        "'ISSUE'",
    ),
    event("product: 'g:a'"): ("events.0.at", None, "is missing"),
    event(f"at: {AT}, entity: a, command: reboot"): ("events.0.command", "reboot", "'restart'"),
    f"{BOTH}kind: events\nplan-duration: .nan\n": ("plan-duration", ".nan", "30s, 5m or 1h30m"),
}

LIBRARY = ("Input should", "should have", "Value error", "validation error", "pydantic")


def read(text: str) -> None:
    files = read_documents(text, "f.yml")
    check_each(files)
    snapshots(files, NOW)
    product_states(files, NOW)


@pytest.mark.parametrize("text", REFUSED, ids=[f"{n}" for n in range(len(REFUSED))])
def test_refused_with_path_value_and_fix(text: str) -> None:
    path, value, words = REFUSED[text]
    with pytest.raises(SpecError) as raised:
        read(text)
    found = raised.value.reasons
    assert path in [one.field for one in found], found
    one = next(one for one in found if one.field == path)
    assert any(word in str(one) for word in words.split("|")), one
    assert value is None or value in str(one), one
    assert one.line is not None
    assert not any(word in str(each) for each in found for word in LIBRARY)
