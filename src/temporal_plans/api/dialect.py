"""The codes and texts of the ``/v1/plans`` dialect for results of commands (behaviour 10.2).

The engine has only results and the codes of refusals. Their translation is here, and nowhere else.
"""

from collections.abc import Mapping
from types import MappingProxyType

from temporal_plans.domain.plans.commands import Command, Outcome, Result, Verb
from temporal_plans.domain.values.refusal import Code

RESULTS: Mapping[Result, int] = MappingProxyType(
    {
        Result.DONE: 200,
        Result.UNDER_WAY: 202,
        Result.ALREADY: 208,
        Result.NOTHING: 200,
        Result.REFUSED: 409,
    }
)
"""HTTP codes of results; for a refusal REFUSALS is more exact."""

REFUSALS: Mapping[str, int] = MappingProxyType(
    {
        Code.INVALID: 400,
        Code.MALFORMED: 400,
        Code.VALUES_MISSING: 400,
        Code.NOT_APPLICABLE: 400,
        Code.MISSING_PHASE: 400,
        Code.NOT_FOUND: 404,
        Code.AMBIGUOUS: 409,
        Code.IN_ERROR: 409,
        Code.NOT_REENTRANT: 409,
        Code.PARAMETERS_MISSING: 409,
        Code.ENDING: 409,
        Code.SUPERSEDED: 409,
        Code.BY_ITSELF: 409,
        Code.NOT_RUNNING: 409,
        Code.UNINSTALLING: 409,
        Code.DECOMMISSIONING: 409,
        Code.NOT_WANTED: 409,
        Code.CONFIGURATION: 417,
        Code.DOES_NOT_FIT: 409,
        Code.AGENT_LOST: 409,
        Code.IN_USE: 409,
        Code.NAME_TAKEN: 409,
        Code.UNAVAILABLE: 409,
        Code.FAILED: 500,
    }
)
"""HTTP codes of refusals; codes of developers' rules are 409."""

_NAMES: Mapping[Verb, str] = MappingProxyType({Verb.FORCE_COMPLETE: "forceComplete"})
"""Commands with another spelling in the dialect."""

_ALREADY = "Command has already been reported or completed"


def http_code(outcome: Outcome) -> int:
    """Return the HTTP status code of an outcome."""
    if outcome.refusal is not None:
        return REFUSALS.get(outcome.refusal.code, RESULTS[Result.REFUSED])
    return RESULTS[outcome.result]


def message(plan: str, verb: Verb, command: Command, outcome: Outcome) -> str:
    """Return the ``message`` of an answer.

    ``command`` has the names of phase and step. The reason of a refusal, or of an outcome that
    changed nothing, is our own text, which no client parses.
    """
    if outcome.result is Result.ALREADY:
        return _ALREADY
    if outcome.refusal is not None and outcome.refusal.code == Code.MISSING_PHASE:
        return "Missing phase"
    if not outcome.changed:
        return outcome.message
    name = _NAMES.get(verb, verb.value)
    if verb is Verb.START:
        pairs = ", ".join(f"{key}={value}" for key, value in command.parameters.items())
        return f"Received cmd: start {plan} with parameters: {{{pairs}}}"
    if verb in (Verb.RESTART, Verb.FORCE_COMPLETE):
        return (
            f"Received cmd: {name} for Plan: {plan}, "
            f"Phase: {command.phase or 'null'}, Step: {command.step or 'null'}"
        )
    return f"Received cmd: {name}"
