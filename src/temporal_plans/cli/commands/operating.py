"""Commands to plans: start, stop, continue, interrupt, restart, force-complete."""

from typing import TYPE_CHECKING

import typer

from temporal_plans.cli.commands import offer
from temporal_plans.cli.flags import (
    ByOption,
    ConnectionFlags,
    ParameterOption,
    PhaseArgument,
    PlanArgument,
    ReasonOption,
    ServiceOption,
    StepArgument,
)

if TYPE_CHECKING:
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.domain.commands import Command, Outcome, Verb

_ALREADY = "Cannot execute command. Command has already been issued or the plan has completed"
"""What the reference's command line prints for 208 (reference 11.1)."""

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
    reason: ReasonOption = "",
    by: ByOption = None,
    service: ServiceOption = None,
) -> None:
    """Start a plan, with parameters; begin it anew when it has ended.

    Begun anew it repeats all its steps: a deploy plan launches all its tasks again, those that
    run included.
    """
    from temporal_plans.cli.pairs import pairs
    from temporal_plans.domain.commands import Command, Verb

    parameters = pairs(param or [], "-p")
    command = Command(parameters=parameters, reason=reason, by=_who(by))
    _give(flags, service, plan, Verb.START, command)


def stop(
    flags: ConnectionFlags,
    plan: PlanArgument,
    reason: ReasonOption = "",
    by: ByOption = None,
    service: ServiceOption = None,
) -> None:
    """Interrupt a plan and set its steps back; running tasks go on."""
    from temporal_plans.domain.commands import Command, Verb

    _give(flags, service, plan, Verb.STOP, Command(reason=reason, by=_who(by)))


def continue_(
    flags: ConnectionFlags,
    plan: PlanArgument,
    phase: PhaseArgument = "",
    step: StepArgument = "",
    reason: ReasonOption = "",
    by: ByOption = None,
    service: ServiceOption = None,
) -> None:
    """Let go on what waits: an interrupted plan or phase, a canary's next step, an approval."""
    from temporal_plans.domain.commands import Command, Verb

    command = Command(phase=phase, step=step, reason=reason, by=_who(by))
    _give(flags, service, plan, Verb.CONTINUE, command)


def interrupt(
    flags: ConnectionFlags,
    plan: PlanArgument,
    phase: PhaseArgument = "",
    reason: ReasonOption = "",
    by: ByOption = None,
    service: ServiceOption = None,
) -> None:
    """Begin no further step of a plan or phase; what is under way goes on."""
    from temporal_plans.domain.commands import Command, Verb

    _give(flags, service, plan, Verb.INTERRUPT, Command(phase=phase, reason=reason, by=_who(by)))


def restart(
    flags: ConnectionFlags,
    plan: PlanArgument,
    phase: PhaseArgument = "",
    step: StepArgument = "",
    reason: ReasonOption = "",
    by: ByOption = None,
    service: ServiceOption = None,
) -> None:
    """Do a step, a phase or a whole plan again.

    A step of a pod launches its tasks again, those that run included. Without PHASE and STEP a
    deploy plan does so with all tasks of the service.
    """
    from temporal_plans.domain.commands import Command, Verb

    command = Command(phase=phase, step=step, reason=reason, by=_who(by))
    _give(flags, service, plan, Verb.RESTART, command)


def force_complete(
    flags: ConnectionFlags,
    plan: PlanArgument,
    phase: PhaseArgument = "",
    step: StepArgument = "",
    reason: ReasonOption = "",
    by: ByOption = None,
    service: ServiceOption = None,
) -> None:
    """Call a step, a phase or a whole plan COMPLETE, whatever its work says."""
    from temporal_plans.domain.commands import Command, Verb

    command = Command(phase=phase, step=step, reason=reason, by=_who(by))
    _give(flags, service, plan, Verb.FORCE_COMPLETE, command)


def _who(by: str | None) -> str:
    from temporal_plans.cli.who import whoami

    return by or whoami()


def _give(
    flags: ConnectionFlags, service: str | None, plan: str, verb: "Verb", command: "Command"
) -> None:
    """Give the command and say what came of it; ends with 1 when it did nothing."""
    from temporal_plans.cli.names import the_plan
    from temporal_plans.cli.output import complain, say
    from temporal_plans.cli.running import ask
    from temporal_plans.client.plans_client import PlansClient

    async def given(client: PlansClient) -> "Outcome":
        plan_id = await the_plan(client, plan, service)
        outcome = await client.command(plan_id, verb, command)
        return await _with_status(client, plan_id, outcome) if outcome.code == 208 else outcome

    outcome = ask(flags, given)
    if outcome.code < 300 and outcome.code != 208 and outcome.changed:
        say(done_text(plan, verb, command))
        return
    complain(undone_text(outcome))
    raise typer.Exit(1)


async def _with_status(client: "PlansClient", plan_id: str, outcome: "Outcome") -> "Outcome":
    """Which it is, of "already issued" and "completed"."""
    from temporal_plans.client.errors import PlansError

    try:
        run = await client.show(plan_id)
    except PlansError:
        return outcome
    status = f"the plan is {run.view.status}" + (f", {run.cut_short}" if run.cut_short else "")
    return outcome.but(waiting=(status, *outcome.waiting))


def done_text(plan: str, verb: "Verb", command: "Command") -> str:
    """``"deploy" plan: phase "hello" has been paused.`` (reference 11.1)"""
    where = f'"{plan}" plan'
    if command.step:
        where += f': step "{command.step}" in phase "{command.phase}"'
    elif command.phase:
        where += f': phase "{command.phase}"'
    return f"{where} has been {_DONE[verb.value]}."


def undone_text(outcome: "Outcome") -> str:
    """Why nothing was changed, and what waits for somebody."""
    text = _ALREADY if outcome.code == 208 else outcome.message
    waiting = [line for line in outcome.waiting if line not in text]
    return "\n".join([text, *(f"- {line}" for line in waiting)])


def add_to(app: typer.Typer) -> None:
    offer(
        app,
        start,
        "start",
        "temporal-plan start backup -p SNAPSHOT=nightly",
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
