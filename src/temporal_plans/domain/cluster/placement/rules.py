"""The placement rules as values (behaviour 9.8).

A rule returns None when an agent passes, else the reason. Rules that count look at the *other
reservations of the same owner*: one reservation is one live pod instance, so a pod of two
tasks counts once and records of tasks that are gone do not count.

A field is ``hostname`` (or ``@hostname``), ``@zone``, ``@region``, or the name of an attribute.
"""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field, field_validator

from temporal_plans.domain.cluster.agents import AgentInfo
from temporal_plans.domain.cluster.placement.matching import Matcher
from temporal_plans.domain.cluster.requirements import Requirement
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.values import patterns
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import listed

Check = Callable[[AgentInfo], str | None]
"""A rule prepared for one requirement: None when the agent passes, else the reason."""


def field_of(place: AgentInfo | Reservation, field: str) -> str | None:
    """Return the value of a field of an agent, or of a reservation: its agent's when it was
    made."""
    match field:
        case "hostname" | "@hostname":
            return place.hostname
        case "@zone":
            return place.zone
        case "@region":
            return place.region
        case _:
            return place.attributes.get(field)


class Rule(CompactValue):
    """One condition on the agent of a pod."""

    @abstractmethod
    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        """Prepare the rule for one requirement. It counts ``held`` here, once, so that checking a
        thousand agents stays cheap."""

    def check(
        self, agent: AgentInfo, held: Sequence[Reservation], subject: Requirement
    ) -> str | None:
        """Return None when ``agent`` may take ``subject`` beside what is ``held``, else the
        reason."""
        return self.checker(held, subject)(agent)

    def fields(self) -> frozenset[str]:
        """Return the fields that the rule reads; ``@zone`` and ``@region`` change a task's
        environment (behaviour 9.10)."""
        return frozenset()

    def __and__(self, other: "AnyRule") -> "And":
        return And(rules=(self, other))  # type: ignore[arg-type]  # self is one of AnyRule

    def __or__(self, other: "AnyRule") -> "Or":
        return Or(rules=(self, other))  # type: ignore[arg-type]  # self is one of AnyRule

    def __invert__(self) -> "Not":
        return Not(rule=self)  # type: ignore[arg-type]  # self is one of AnyRule

    def __str__(self) -> str:
        return self.model_dump_json()


class Where(Rule):
    """The field's value matches. An agent without the value fails."""

    kind: Literal["where"] = "where"
    field: str
    matcher: Matcher

    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        def check(agent: AgentInfo) -> str | None:
            value = field_of(agent, self.field)
            if value is None:
                return (
                    f"the agent has no {self.field}; the rule requires a value that {self.matcher}"
                )
            if self.matcher.matches(value):
                return None
            return f"{self.field} is {value!r}; the rule requires a value that {self.matcher}"

        return check

    def fields(self) -> frozenset[str]:
        return frozenset({self.field})


class OnAgents(Rule):
    """The agent is in a list of ids."""

    kind: Literal["on-agents"] = "on-agents"
    agents: tuple[str, ...]

    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        allowed = frozenset(self.agents)
        listed = ", ".join(self.agents) or "none"
        return lambda agent: (
            None if agent.id in allowed else f"agent {agent.id} is not one of {listed}"
        )


class Counting(Rule):
    """A rule that counts pod instances per value of a field.

    ``pods``: a regular expression that the types of the counted pods match as a whole; empty means
    the type of the pod that is placed.
    """

    field: str
    pods: str = ""

    @field_validator("pods")
    @classmethod
    def _compiles(cls, pods: str) -> str:
        return _regular_expression(pods)

    def counted(
        self, held: Iterable[Reservation], subject: Requirement
    ) -> dict[str, list[Reservation]]:
        """Return the instances that count, by their value of the field."""
        found: dict[str, list[Reservation]] = {}
        for other in _others(held, subject, self.pods or re.escape(subject.pod)):
            value = field_of(other, self.field)
            if value is not None:
                found.setdefault(value, []).append(other)
        return found

    def fields(self) -> frozenset[str]:
        return frozenset({self.field})


class MaxPer(Counting):
    """At most ``max`` instances per value of the field, the new instance included.

    An agent without the value passes, but fails for ``@zone`` (behaviour 9.8) and if ``required``.
    """

    kind: Literal["max-per"] = "max-per"
    max: int = Field(ge=0)
    required: bool = False

    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        counted = self.counted(held, subject)

        def check(agent: AgentInfo) -> str | None:
            value = field_of(agent, self.field)
            if value is None:
                if self.required or self.field == "@zone":
                    return f"the agent has no {self.field}, which the rule counts by"
                return None
            there = counted.get(value, [])
            if len(there) < self.max:
                return None
            named = listed([f"{other.pod}-{other.index}" for other in there], 5)
            return f"{self.field} {value!r} may have {self.max}, has {len(there)} already" + (
                f": {named}" if there else ""
            )

        return check


class GroupBy(Counting):
    """Round robin over the values of the field: only to the value with the fewest instances.

    ``distinct``: the number of values; without it the rule does not wait for values that have no
    instance yet (best effort).
    """

    kind: Literal["group-by"] = "group-by"
    distinct: int | None = Field(default=None, ge=1)

    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        counts = Counter({k: len(v) for k, v in self.counted(held, subject).items()})
        fewest, most = min(counts.values(), default=0), max(counts.values(), default=0)
        all_seen = self.distinct is None or len(counts) >= self.distinct

        def check(agent: AgentInfo) -> str | None:
            value = field_of(agent, self.field)
            if value is None:
                return f"the agent has no {self.field}, which the rule groups by"
            count = counts[value]
            if count > fewest and fewest != most:
                return f"{self.field} {value!r} has {count}, others have {fewest}: those are first"
            if count > 0 and not all_seen:
                return (
                    f"{self.field} {value!r} has {count}, and {len(counts)} of {self.distinct} "
                    "values are in use: a new value is first"
                )
            return None

        return check


class Colocate(Rule):
    """On an agent that has an instance of that pod type; anywhere while there is none."""

    kind: Literal["colocate"] = "colocate"
    pod: str

    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        agents = {other.agent for other in _others(held, subject, re.escape(self.pod))}
        listed = ", ".join(sorted(agents))
        return lambda agent: (
            None
            if not agents or agent.id in agents
            else f"pod {self.pod} is not on {agent.id} but on {listed}"
        )


class Avoid(Rule):
    """Not on an agent that has an instance of that pod type."""

    kind: Literal["avoid"] = "avoid"
    pod: str

    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        agents = {other.agent for other in _others(held, subject, re.escape(self.pod))}
        return lambda agent: (
            f"pod {self.pod} is on {agent.id}, which the rule avoids"
            if agent.id in agents
            else None
        )


class And(Rule):
    """All rules pass; the reason lists every rule that does not. Without rules: fails."""

    kind: Literal["and"] = "and"
    rules: tuple["AnyRule", ...]

    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        checks = [rule.checker(held, subject) for rule in self.rules]

        def check(agent: AgentInfo) -> str | None:
            if not checks:
                return "no rule is given"
            reasons = [reason for reason in (one(agent) for one in checks) if reason]
            return "; ".join(reasons) or None

        return check

    def fields(self) -> frozenset[str]:
        return frozenset[str]().union(*(rule.fields() for rule in self.rules))


class Or(Rule):
    """At least one rule passes. Without rules: fails."""

    kind: Literal["or"] = "or"
    rules: tuple["AnyRule", ...]

    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        checks = [rule.checker(held, subject) for rule in self.rules]

        def check(agent: AgentInfo) -> str | None:
            reasons = [one(agent) for one in checks]
            if None in reasons:
                return None
            return "none of: " + "; ".join(filter(None, reasons)) if reasons else "no rule is given"

        return check

    def fields(self) -> frozenset[str]:
        return frozenset[str]().union(*(rule.fields() for rule in self.rules))


class Not(Rule):
    """The rule does not pass."""

    kind: Literal["not"] = "not"
    rule: "AnyRule"

    def checker(self, held: Sequence[Reservation], subject: Requirement) -> Check:
        check = self.rule.checker(held, subject)
        return lambda agent: (
            f"excluded: {_description(self.rule)}" if check(agent) is None else None
        )

    def fields(self) -> frozenset[str]:
        return self.rule.fields()


AnyRule = Annotated[
    Where | OnAgents | MaxPer | GroupBy | Colocate | Avoid | And | Or | Not,
    Field(discriminator="kind"),
]
And.model_rebuild()
Or.model_rebuild()
Not.model_rebuild()


def _description(rule: Rule) -> str:
    return f"{rule.field} that {rule.matcher}" if isinstance(rule, Where) else str(rule)


def _others(held: Iterable[Reservation], subject: Requirement, pods: str) -> Iterable[Reservation]:
    """Reservations of the subject's owner and of matching pods, without the subject's own."""
    verdicts: dict[str, bool] = {}
    for other in held:
        if other.owner != subject.owner:
            continue
        if other.pod == subject.pod and other.index == subject.index:
            continue
        if other.pod not in verdicts:
            verdicts[other.pod] = patterns.matches(pods, other.pod)
        if verdicts[other.pod]:
            yield other


def _regular_expression(text: str) -> str:
    try:
        patterns.check(text)
    except patterns.PatternError as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return text
