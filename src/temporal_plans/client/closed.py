"""Commands to a plan whose workflow has ended.

A plan's workflow lives until the plan is COMPLETE. Afterwards a command can only begin it anew:
through its Service when it belongs to one, else by a new run with the old run's input.
"""

from datetime import UTC, datetime

from temporal_plans.client.errors import PlansError, Refused
from temporal_plans.client.gateway import (
    Ended,
    Gateway,
    NoSuchWorkflow,
    WorkflowIsClosed,
    WorkflowIsOpen,
)
from temporal_plans.domain.commands import Command, Outcome, Verb
from temporal_plans.domain.parameters import check_arguments
from temporal_plans.messages.cluster import service_id
from temporal_plans.messages.plan import CommandLog, LogEntry, PlanInput
from temporal_plans.messages.service import PlanRecord, ServiceStatus, StartPlan


async def service_of(gateway: Gateway, plan_id: str) -> tuple[str, PlanRecord] | None:
    """The service that a plan belongs to, and its record of it, by the form of the plan's id."""
    service, _, _ = plan_id.rpartition("/")
    if not service:
        return None
    try:
        status = await gateway.query(service_id(service), "status", ServiceStatus, open_only=True)
    except (NoSuchWorkflow, WorkflowIsClosed):
        return None
    record = next((plan for plan in status.plans if plan.workflow_id == plan_id), None)
    return None if record is None else (service, record)


async def command_closed(
    gateway: Gateway, plan_id: str, ended: Ended, verb: Verb, command: Command
) -> Outcome:
    """What the command does to a plan that has ended. Raises Refused."""
    if verb not in (Verb.START, Verb.RESTART):
        if ended is Ended.COMPLETED:
            return Outcome(
                code=208,
                message="Command has already been reported or completed: the plan has ended",
                changed=False,
            )
        raise Refused(
            f"plan {plan_id!r} was {ended.value}, so there is nothing to {verb.replace('_', ' ')}; "
            "`start` or `restart` begins it anew"
        )
    if (found := await service_of(gateway, plan_id)) is not None:
        return await start_in_service(gateway, found[0], found[1].name, verb, command)
    if command.phase or command.step:
        raise Refused(
            f"plan {plan_id!r} has ended; only the whole of it can be begun anew, which repeats "
            "all its steps: leave phase and step out"
        )
    return await _new_run(gateway, plan_id, verb, command)


async def start_in_service(
    gateway: Gateway, service: str, plan: str, verb: Verb, command: Command
) -> Outcome:
    """Have the Service run its plan (again). Raises WorkflowIsOpen when it is running, as far as
    the Service knows."""
    said = {name: getattr(command, name) for name in Command.model_fields}
    if verb is Verb.RESTART:
        request = StartPlan(plan=plan, verb=Verb.RESTART, **said)
    else:
        request = StartPlan(plan=plan, **said)
    outcome = await gateway.update(service_id(service), "start_plan", request, Outcome)
    if outcome.code == 208:
        raise WorkflowIsOpen
    return outcome


async def _new_run(gateway: Gateway, plan_id: str, verb: Verb, command: Command) -> Outcome:
    old = await gateway.input_of(plan_id, PlanInput)
    arguments = dict(old.arguments)
    if verb is Verb.START:
        arguments = dict(command.parameters)
        _, problems = check_arguments(old.parameters, arguments)
        if problems:
            raise Refused("; ".join(str(problem) for problem in problems))
    elif command.parameters:
        raise Refused("restart takes no parameters; they belong to start")
    outcome = Outcome(code=200, message=f"Received cmd: {verb} {old.name}, which begins anew")
    entry = LogEntry(
        at=datetime.now(UTC),
        verb=verb,
        parameters=command.parameters,
        by=command.by,
        reason=command.reason,
        via="start",
        outcome=outcome,
    )
    log = await _log_of(gateway, plan_id, old)
    fresh = old.but(
        arguments=arguments,
        interrupted=False,
        state=None,
        started=None,
        seed=None,
        log=log.but(entries=(*log.entries, entry)),
    )
    await gateway.start("Plan", plan_id, fresh, summary=fresh.description)
    return outcome


async def _log_of(gateway: Gateway, plan_id: str, old: PlanInput) -> CommandLog:
    """The ended run's commands; those it was started with when it can't be asked any more."""
    try:
        return await gateway.query(plan_id, "log", CommandLog)
    except PlansError:
        return old.log
