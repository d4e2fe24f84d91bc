"""Placement rules: how they are read, and what they let pass (behaviour 9.8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.pools import agent, reservation
from temporal_plans.domain.cluster.agents import AgentInfo
from temporal_plans.domain.cluster.placement import (
    OPERATORS,
    And,
    Avoid,
    Colocate,
    GroupBy,
    Matcher,
    MaxPer,
    OnAgents,
    Or,
    PlacementError,
    Rule,
    Where,
    parse_placement,
)
from temporal_plans.domain.cluster.requirements import Requirement
from temporal_plans.domain.cluster.reservations import Reservation

SUBJECT = Requirement(owner="service/s", pod="hello", index=9, notify="n")


def machine(
    host: str = "h1",
    zone: str | None = None,
    region: str | None = None,
    id: str | None = None,
    **attributes: str,
) -> AgentInfo:
    return agent(
        id or f"agent-{host}",
        queue=f"queue-{host}",
        hostname=host,
        zone=zone,
        region=region,
        attributes=attributes,
    )


def held(
    index: int,
    on: AgentInfo,
    *,
    pod: str = "hello",
    owner: str = "service/s",
) -> Reservation:
    return reservation(pod, index, on=on, id=f"{pod}-{index}", owner=owner)


def parsed(text: str) -> Rule:
    rule = parse_placement(text)
    assert rule is not None
    return rule


def like(field: str, pattern: str) -> Where:
    return Where(field=field, matcher=Matcher(kind="regex", text=pattern))


@pytest.mark.parametrize("text", [None, "", "  ", "[]", " [ ] "])
def test_no_rule(text: str | None) -> None:
    assert parse_placement(text) is None


READ = {
    "flat": ('["hostname", "UNIQUE"]', MaxPer(field="hostname", max=1)),
    "rows of one": ('[["hostname", "UNIQUE"]]', MaxPer(field="hostname", max=1)),
    "colon": ("hostname:UNIQUE", MaxPer(field="hostname", max=1)),
    "operator in any case": ("@hostname:Unique", MaxPer(field="@hostname", max=1)),
    "blanks": (" hostname : MAX_PER : 2 ", MaxPer(field="hostname", max=2)),
    "unique with an ignored parameter": ("hostname:UNIQUE:x", MaxPer(field="hostname", max=1)),
    "unique attribute must be there": (
        "rack:UNIQUE",
        MaxPer(field="rack", max=1, required=True),
    ),
    "number in JSON": ('[["hostname", "MAX_PER", 2]]', MaxPer(field="hostname", max=2)),
    "several": (
        '[["hostname","MAX_PER","2"],["@zone","GROUP_BY","3"]]',
        And(rules=(MaxPer(field="hostname", max=2), GroupBy(field="@zone", distinct=3))),
    ),
    "several in colon form": (
        "hostname:LIKE:a.*,rack:GROUP_BY",
        And(rules=(like("hostname", "a.*"), GroupBy(field="rack"))),
    ),
    "escaped separators": (r"rack:LIKE:a\,b\:c", like("rack", "a,b:c")),
    "escaped backslash": (r"rack:LIKE:a\\\\b", like("rack", r"a\\b")),
    "regex classes keep theirs": (r"rack:LIKE:r\d+", like("rack", r"r\d+")),
    "is": ("@zone:IS:a", Where(field="@zone", matcher=Matcher(kind="exact", text="a"))),
    "cluster": ("rack:CLUSTER:a", Where(field="rack", matcher=Matcher(kind="exact", text="a"))),
    "unlike": ("hostname:UNLIKE:a", ~like("hostname", "a")),
}


@pytest.mark.parametrize(("text", "rule"), READ.values(), ids=READ.keys())
def test_reading(text: str, rule: Rule) -> None:
    assert parse_placement(text) == rule


REFUSED = {
    "one part": ("hostname", "1 parts", "UNIQUE"),
    "four parts": ("hostname:MAX_PER:1:2", "4 parts", "UNIQUE"),
    "empty row": ("[[]]", "0 parts", "UNIQUE"),
    "mixed rows": ('["hostname", ["a", "UNIQUE"]]', "is not a row", "UNIQUE"),
    "no field": (":UNIQUE", "has no field", "field"),
    "unknown operator": ("hostname:NEAR:x", "'NEAR' is unknown", "GROUP_BY"),
    "trailing JSON": ('["hostname", "UNIQUE"] x', "is not JSON", "UNIQUE"),
    "deep JSON": ("[" * 100_000, "is not JSON", "UNIQUE"),
    "not a number": ("hostname:MAX_PER:two", "whole number, not 'two'", "MAX_PER:2"),
    "absurdly large": ("hostname:MAX_PER:" + "9" * 5000, "whole number", "MAX_PER:2"),
    "negative": ("hostname:MAX_PER:-1", "whole number, not '-1'", "MAX_PER:2"),
    "group of none": ("hostname:GROUP_BY:0", "greater than or equal to 1", "field"),
    "no regex": ("hostname:LIKE:(", "not a regular expression", "field"),
    "parameter missing": ("hostname:IS", "IS needs a parameter", "field:IS:parameter"),
    "null token": ('[["hostname", null]]', "None is not a string", "UNIQUE"),
    "unknown typed rule": ('{"kind": "near"}', "near", "str()"),
}


@pytest.mark.parametrize(("text", "problem", "fix"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_text_problem_and_fix(text: str, problem: str, fix: str) -> None:
    with pytest.raises(PlacementError) as caught:
        parse_placement(text)
    [reason] = caught.value.reasons
    assert reason.value == text
    assert problem in reason.problem
    assert fix in reason.fix
    assert problem in str(caught.value)


PASSES = "passes"
MATCHING = {
    "is": ("hostname:IS:h1", machine("h1"), PASSES),
    "is, another": ("hostname:IS:h1", machine("h2"), "hostname is 'h2'"),
    "is, as a number": ("slots:IS:1", machine(slots="1.0004"), PASSES),
    "is, another number": ("slots:IS:1", machine(slots="1.01"), "slots is '1.01'"),
    "is, absent": ("rack:IS:a", machine(), "has no rack"),
    "is not": ("rack:IS_NOT:a", machine(rack="b"), PASSES),
    "is not, but is": ("rack:IS_NOT:a", machine(rack="a"), "excluded"),
    "is not, but is, beside others": ("rack:IS_NOT:a", machine(rack="a", os="x"), "excluded"),
    "is not, absent attribute": ("rack:IS_NOT:a", machine(), PASSES),
    "is not, absent zone": ("@zone:IS_NOT:a", machine(), "has no @zone"),
    "like is the whole value": ("hostname:LIKE:h", machine("h1"), "hostname is 'h1'"),
    "like": ("hostname:LIKE:h.", machine("h1"), PASSES),
    "unlike": ("hostname:UNLIKE:h.", machine("h1"), "excluded"),
    "unlike, absent zone": ("@zone:UNLIKE:a", machine(), PASSES),
    "region": ("@region:IS:eu", machine(region="eu"), PASSES),
    "zone": ("@zone:LIKE:eu-.*", machine(zone="us-1"), "@zone is 'us-1'"),
    "all that fail are told": ("hostname:IS:x,@zone:IS:y", machine("h1"), "h1'"),
}


@pytest.mark.parametrize(("text", "on", "expected"), MATCHING.values(), ids=MATCHING.keys())
def test_matching(text: str, on: AgentInfo, expected: str) -> None:
    reason = parsed(text).check(on, (), SUBJECT)
    if expected == PASSES:
        assert reason is None
    else:
        assert reason is not None
        assert expected in reason


H1, H2, Z1, Z2 = machine("h1"), machine("h2"), machine("h1", zone="z1"), machine("h2", zone="z2")
R1 = machine("h1", rack="r1")
COUNTING: dict[str, tuple[str, AgentInfo, list[Reservation], str]] = {
    "unique, free": ("hostname:UNIQUE", H1, [held(0, H2)], PASSES),
    "unique, taken": ("hostname:UNIQUE", H1, [held(0, H1)], "hello-0"),
    "unique ignores itself": ("hostname:UNIQUE", H1, [held(9, H1)], PASSES),
    "unique ignores other pods": ("hostname:UNIQUE", H1, [held(0, H1, pod="world")], PASSES),
    "unique ignores pods with a longer name": (
        "hostname:UNIQUE",
        H1,
        [held(0, H1, pod="hello-two")],
        PASSES,
    ),
    "unique ignores other services": (
        "hostname:UNIQUE",
        H1,
        [held(0, H1, owner="service/t")],
        PASSES,
    ),
    "max per, room": ("hostname:MAX_PER:2", H1, [held(0, H1)], PASSES),
    "max per, full": ("hostname:MAX_PER:2", H1, [held(0, H1), held(1, H1)], "has 2"),
    "max per 0": ("hostname:MAX_PER:0", H1, [], "may have 0"),
    "max per zone, no zone": ("@zone:MAX_PER:1", H1, [], "no @zone"),
    "max per region, no region": ("@region:MAX_PER:1", H1, [], PASSES),
    "max per attribute, absent": ("rack:MAX_PER:1", H1, [], PASSES),
    "unique attribute, absent": ("rack:UNIQUE", H1, [], "no rack"),
    "unique attribute, taken": ("rack:UNIQUE", R1, [held(0, R1)], "rack 'r1'"),
    "group by, first": ("hostname:GROUP_BY", H1, [], PASSES),
    "group by, all equal": ("hostname:GROUP_BY", H1, [held(0, H1), held(1, H2)], PASSES),
    "group by, the smaller": (
        "hostname:GROUP_BY",
        H2,
        [held(0, H1), held(1, H1), held(2, H2)],
        PASSES,
    ),
    "group by, the larger": (
        "hostname:GROUP_BY",
        H1,
        [held(0, H1), held(1, H1), held(2, H2)],
        "those are first",
    ),
    "group by 2, a new one is first": ("hostname:GROUP_BY:2", H1, [held(0, H1)], "1 of 2"),
    "group by 2, the new one": ("hostname:GROUP_BY:2", H2, [held(0, H1)], PASSES),
    "group by without a count is best effort": ("hostname:GROUP_BY", H1, [held(0, H1)], PASSES),
    "group by zone": ("@zone:GROUP_BY:2", Z1, [held(0, Z1)], "1 of 2"),
    "group by zone, another": ("@zone:GROUP_BY:2", Z2, [held(0, Z1)], PASSES),
    "group by, absent": ("rack:GROUP_BY", H1, [], "no rack"),
}


@pytest.mark.parametrize(
    ("text", "on", "others", "expected"), COUNTING.values(), ids=COUNTING.keys()
)
def test_counting(text: str, on: AgentInfo, others: list[Reservation], expected: str) -> None:
    reason = parsed(text).check(on, others, SUBJECT)
    if expected == PASSES:
        assert reason is None
    else:
        assert reason is not None
        assert expected in reason


WORLD_ON_H1 = [held(0, H1, pod="world")]
TYPED: dict[str, tuple[Rule, AgentInfo, list[Reservation], bool]] = {
    "colocate, there": (Colocate(pod="world"), H1, WORLD_ON_H1, True),
    "colocate, elsewhere": (Colocate(pod="world"), H2, WORLD_ON_H1, False),
    "colocate, none yet": (Colocate(pod="world"), H2, [], True),
    "avoid, there": (Avoid(pod="world"), H1, WORLD_ON_H1, False),
    "avoid, elsewhere": (Avoid(pod="world"), H2, WORLD_ON_H1, True),
    "agents": (OnAgents(agents=("agent-h1",)), H1, [], True),
    "agents, another": (OnAgents(agents=("agent-h1",)), H2, [], False),
    "and": (like("hostname", "h1") & OnAgents(agents=("agent-h1",)), H1, [], True),
    "and, one fails": (like("hostname", "h1") & OnAgents(agents=()), H1, [], False),
    "or": (like("hostname", "h1") | like("hostname", "h2"), H2, [], True),
    "or, none": (like("hostname", "h1") | like("hostname", "h3"), H2, [], False),
    "not": (~like("hostname", "h1"), H1, [], False),
    "and of none": (And(rules=()), H1, [], False),
    "or of none": (Or(rules=()), H1, [], False),
    "any value": (Where(field="rack", matcher=Matcher()), R1, [], True),
    "counting every pod": (MaxPer(field="hostname", max=1, pods=".*"), H1, WORLD_ON_H1, False),
}


@pytest.mark.parametrize(("rule", "on", "others", "passes"), TYPED.values(), ids=TYPED.keys())
def test_typed_rules(rule: Rule, on: AgentInfo, others: list[Reservation], passes: bool) -> None:
    assert (rule.check(on, others, SUBJECT) is None) is passes


@pytest.mark.parametrize("rule", [case[0] for case in TYPED.values()], ids=TYPED.keys())
def test_a_rule_made_in_python_travels_as_text(rule: Rule) -> None:
    assert parse_placement(str(rule)) == rule


def test_fields_looked_at() -> None:
    rule = parsed("@zone:GROUP_BY,rack:IS_NOT:a,hostname:UNIQUE")
    assert rule.fields() == {"@zone", "rack", "hostname"}


TOKENS = st.sampled_from(
    [
        "hostname",
        "@zone",
        "rack",
        *OPERATORS,
        "1",
        "2",
        "x",
        "(",
        "\\",
        ":",
        ",",
        "[",
        "]",
        '"',
        " ",
    ]
)


@given(st.text() | st.lists(TOKENS).map("".join) | st.lists(TOKENS).map(":".join))
def test_any_text_is_a_rule_or_a_placement_error(text: str) -> None:
    try:
        rule = parse_placement(text)
    except PlacementError:
        return
    assert rule is None or parse_placement(str(rule)) == rule
