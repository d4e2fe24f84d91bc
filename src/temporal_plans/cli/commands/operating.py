"""Commands to plans: start, stop, continue, interrupt, restart, force-complete."""

from typing import TYPE_CHECKING

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.inputs.flags import (
    ByOption,
    ConnectionFlags,
    ForceOption,
    JsonOption,
    ParameterOption,
    PhaseArgument,
    PlanArgument,
    ReasonOption,
    ServiceOption,
    StepArgument,
    TimeoutOption,
    WaitOption,
)

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.domain.plans.commands import Command, Outcome, Verb

_ALREADY_TEXT = "Cannot execute command. Command has already been issued or the plan has completed"
"""The text for a command that was issued already (behaviour 11.1)."""

_DONE = {
    "start": "started",
    "stop": "stopped",
    "continue": "resumed",
    "interrupt": "paused",
    "restart": "restarted",
    "force_complete": "forced to complete",
}


def start(
    flags: ConnectionFlags,
    plan: PlanArgument,
    param: ParameterOption = None,
    force: ForceOption = False,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Start a plan, with parameters; restart it if it has ended.

    A plan that is restarted repeats all its steps: a deploy plan launches all its tasks again,
    including those that run. A package's plan that runs begins again.
    """
    from temporal_plans.cli.inputs.pairs import pairs
    from temporal_plans.domain.plans.commands import Command, Verb

    parameters = pairs(param or [], "-p")
    command = Command(parameters=parameters, force=force, reason=reason, by=_author(by))
    _execute(flags, service, plan, Verb.START, command, json=json, wait=wait, timeout=timeout)


def stop(
    flags: ConnectionFlags,
    plan: PlanArgument,
    force: ForceOption = False,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Interrupt a plan and reset its steps; running tasks keep running."""
    from temporal_plans.domain.plans.commands import Command, Verb

    command = Command(force=force, reason=reason, by=_author(by))
    _execute(flags, service, plan, Verb.STOP, command, json=json)


def continue_(
    flags: ConnectionFlags,
    plan: PlanArgument,
    phase: PhaseArgument = "",
    step: StepArgument = "",
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Continue an interrupted plan or phase, a canary's next step, or an approval."""
    from temporal_plans.domain.plans.commands import Command, Verb

    command = Command(phase=phase, step=step, reason=reason, by=_author(by))
    _execute(flags, service, plan, Verb.CONTINUE, command, json=json)


def interrupt(
    flags: ConnectionFlags,
    plan: PlanArgument,
    phase: PhaseArgument = "",
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Start no further step of a plan or phase; steps under way continue."""
    from temporal_plans.domain.plans.commands import Command, Verb

    command = Command(phase=phase, reason=reason, by=_author(by))
    _execute(flags, service, plan, Verb.INTERRUPT, command, json=json)


def restart(
    flags: ConnectionFlags,
    plan: PlanArgument,
    phase: PhaseArgument = "",
    step: StepArgument = "",
    force: ForceOption = False,
    wait: WaitOption = False,
    timeout: TimeoutOption = None,
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Restart a step, a phase or a whole plan.

    A step of a pod launches its tasks again, including those that run; a deploy plan without PHASE
    and STEP all tasks of the service.
    """
    from temporal_plans.domain.plans.commands import Command, Verb

    command = Command(phase=phase, step=step, force=force, reason=reason, by=_author(by))
    _execute(flags, service, plan, Verb.RESTART, command, json=json, wait=wait, timeout=timeout)


def force_complete(
    flags: ConnectionFlags,
    plan: PlanArgument,
    phase: PhaseArgument = "",
    step: StepArgument = "",
    reason: ReasonOption = "",
    by: ByOption = None,
    json: JsonOption = False,
    service: ServiceOption = None,
) -> None:
    """Force a step, a phase or a whole plan to COMPLETE."""
    from temporal_plans.domain.plans.commands import Command, Verb

    command = Command(phase=phase, step=step, reason=reason, by=_author(by))
    _execute(flags, service, plan, Verb.FORCE_COMPLETE, command, json=json)


def _author(by: str | None) -> str:
    from temporal_plans.cli.inputs.author import whoami

    return by or whoami()


def _execute(
    flags: ConnectionFlags,
    service: str | None,
    plan: str,
    verb: "Verb",
    command: "Command",
    *,
    json: bool = False,
    wait: bool = False,
    timeout: str | None = None,
) -> None:
    """Execute the command and print its outcome; exit with 1 if it changed nothing. With ``wait``
    follow the plan to its end then."""
    from temporal_plans.cli.actions.prospects import tell_what_stops
    from temporal_plans.cli.actions.running import call_client_until_interrupted
    from temporal_plans.cli.actions.showing import wait_for_plan
    from temporal_plans.cli.inputs.durations import timeout_of
    from temporal_plans.cli.inputs.names import resolve_plan
    from temporal_plans.cli.terminal.output import print_error, print_json, print_line
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.domain.plans.commands import Result

    limit = timeout_of(timeout, waits=wait)

    async def execute(client: PlansClient) -> int:
        plan_id = await resolve_plan(client, plan, service)
        outcome = await client.command(plan_id, verb, command)
        if outcome.result is Result.ALREADY:
            outcome = await _with_status(client, plan_id, outcome)
        if json:
            print_json({"plan": plan_id, "outcome": outcome})
        if not outcome.changed:
            print_error(not_done_text(outcome))
            return 1
        if not json:
            print_line(done_text(plan, verb, command))
        if verb.begins_a_run and not (json or wait):
            return await tell_what_stops(client, plan_id)
        return await wait_for_plan(client, plan_id, quiet=json, timeout=limit) if wait else 0

    raise typer.Exit(call_client_until_interrupted(flags, execute))


async def _with_status(client: "PlansClient", plan_id: str, outcome: "Outcome") -> "Outcome":
    """Add the plan's status, which tells "already issued" from "completed"."""
    from temporal_plans.client.errors import PlansError

    try:
        run = await client.show(plan_id)
    except PlansError:
        return outcome
    status = f"the plan is {run.view.status}" + (f", {run.cut_short}" if run.cut_short else "")
    return outcome.but(waiting=(status, *outcome.waiting))


def done_text(plan: str, verb: "Verb", command: "Command") -> str:
    """Return ``"deploy" plan: phase "hello" has been paused.`` (behaviour 11.1)"""
    where = f'"{plan}" plan'
    if command.step:
        where += f': step "{command.step}" in phase "{command.phase}"'
    elif command.phase:
        where += f': phase "{command.phase}"'
    return f"{where} has been {_DONE[verb.value]}."


def not_done_text(outcome: "Outcome") -> str:
    """Return why nothing was changed, and what waits for an operator."""
    from temporal_plans.domain.plans.commands import Result

    text = _ALREADY_TEXT if outcome.result is Result.ALREADY else outcome.message
    waiting = [line for line in outcome.waiting if line not in text]
    return "\n".join([text, *(f"- {line}" for line in waiting)])


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        start,
        "start",
        "temporal-plan start backup -p SNAPSHOT=nightly --wait --timeout 1h",
        "temporal-plan start deploy -s hello-world --reason 'after the outage'",
    )
    offer(app, stop, "stop", "temporal-plan stop backup --reason 'disk is full'")
    offer(
        app,
        continue_,
        "continue",
        "temporal-plan continue deploy",
        "temporal-plan continue deploy world",
        "temporal-plan continue backup finish sign-off --reason 'looked at the dump'",
        aliases=("resume",),
    )
    offer(
        app,
        interrupt,
        "interrupt",
        "temporal-plan interrupt deploy",
        "temporal-plan interrupt deploy world --reason 'error rate rises'",
        aliases=("pause",),
    )
    offer(
        app,
        restart,
        "restart",
        "temporal-plan restart deploy world 'world-0:[server]'",
        "temporal-plan restart deploy world",
        aliases=("force-restart",),
    )
    offer(
        app,
        force_complete,
        "force-complete",
        "temporal-plan force-complete deploy hello 'hello-0:[server]' --reason 'check is wrong'",
        aliases=("force",),
    )
