"""Commands to a plan whose workflow has ended.

A plan's workflow is open until the plan is COMPLETE. Afterwards a command can only start a new run:
through the plan's Service if it has one, else with the input of the last run.
"""

from datetime import UTC, datetime

from temporal_plans.client.errors import PlansError, Refused
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.client.temporal.gateway import Gateway
from temporal_plans.client.temporal.workflow_errors import (
    NoSuchWorkflow,
    WorkflowIsClosed,
    WorkflowIsOpen,
)
from temporal_plans.domain.plans.commands import (
    Command,
    CommandRefused,
    Outcome,
    Result,
    Verb,
    refuse_parameters,
)
from temporal_plans.domain.plans.parameters import check_arguments
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.owners import CommonStatus, PlanRecord, StartPlan
from temporal_plans.messages.plans import (
    BY_CLIENT,
    PLAN_STARTER,
    CommandLog,
    EngineInput,
    LogEntry,
    PlanInput,
)


async def service_of(gateway: Gateway, plan_id: str) -> tuple[str, PlanRecord] | None:
    """Return the service of a plan and the service's record of it; None for a plan without a
    service. The plan's id must be ``<service>/<plan>``."""
    service, _, _ = plan_id.rpartition("/")
    status = await _status_of(gateway, service)
    return None if status is None else _recorded(service, status, plan_id)


async def package_of(gateway: Gateway, plan_id: str) -> tuple[str, PlanRecord] | None:
    """Return the same as ``service_of`` where the service is an installed package, else None."""
    service, _, _ = plan_id.rpartition("/")
    status = await _status_of(gateway, service)
    if status is None or status.content != "package":
        return None
    return _recorded(service, status, plan_id)


async def _status_of(gateway: Gateway, service: str) -> CommonStatus | None:
    """Return the status of a service; None where there is no such service."""
    if not service:
        return None
    try:
        return await gateway.query(service_id(service), "status", CommonStatus, open_only=True)
    except (NoSuchWorkflow, WorkflowIsClosed):
        return None


def _recorded(service: str, status: CommonStatus, plan_id: str) -> tuple[str, PlanRecord] | None:
    record = next((plan for plan in status.plans if plan.workflow_id == plan_id), None)
    return None if record is None else (service, record)


async def command_closed(
    gateway: Gateway, plan_id: str, ended: Ended, verb: Verb, command: Command
) -> Outcome:
    """Give a command to a plan that has ended. Raises Refused."""
    if not verb.begins_a_run:
        if ended is Ended.COMPLETED:
            return Outcome(
                result=Result.ALREADY, message="nothing to do; the plan is COMPLETE and has ended"
            )
        problem = (
            f"plan {plan_id!r} {ended.clause}, so there is nothing to {verb.replace('_', ' ')}"
        )
        raise Refused.of(Code.NOT_RUNNING, problem, fix="start or restart it")
    if (found := await service_of(gateway, plan_id)) is not None:
        return await start_in_service(gateway, found[0], found[1].name, verb, command)
    if command.phase or command.step:
        raise Refused.of(
            Code.NOT_APPLICABLE,
            f"plan {plan_id!r} has ended, so only the whole plan can be started, which repeats all "
            "its steps",
            fix="omit phase and step",
        )
    return await _new_run(gateway, plan_id, verb, command)


async def start_in_service(
    gateway: Gateway, service: str, plan: str, verb: Verb, command: Command
) -> Outcome:
    """Start a new run of a service's plan, through the Service. Raises WorkflowIsOpen when the
    Service believes that the plan is running."""
    fields = {name: getattr(command, name) for name in Command.model_fields}
    if verb is Verb.RESTART:
        request = StartPlan(plan=plan, verb=Verb.RESTART, **fields)
    else:
        request = StartPlan(plan=plan, **fields)
    outcome = await gateway.update(service_id(service), "start_plan", request, Outcome)
    if outcome.result is Result.ALREADY:
        raise WorkflowIsOpen
    return outcome


async def _new_run(gateway: Gateway, plan_id: str, verb: Verb, command: Command) -> Outcome:
    try:
        refuse_parameters(verb, command)
    except CommandRefused as refused:
        raise Refused(refused.refusal) from None
    old = await gateway.input_of(plan_id, PlanInput)
    arguments = dict(old.arguments)
    if verb is Verb.START:
        arguments = dict(command.parameters)
        _, problems = check_arguments(old.parameters, arguments)
        if problems:
            raise Refused(Refusal(code=Code.INVALID, reasons=tuple(problems)))
    outcome = Outcome(result=Result.DONE, message=f"plan {old.name} starts a new run")
    entry = LogEntry(
        at=datetime.now(UTC),
        verb=verb,
        parameters=command.parameters,
        force=command.force,
        by=command.by,
        reason=command.reason,
        via="start",
        outcome=outcome,
    )
    log = await _log_of(gateway, plan_id, old)
    new = old.but(
        arguments=arguments,
        interrupted=False,
        by=command.by,
        reason=command.reason,
        engine=EngineInput(log=log.but(entries=(*log.entries, entry))),
    )
    memo = {PLAN_STARTER: BY_CLIENT}
    await gateway.start("Plan", plan_id, new, summary=new.description, memo=memo)
    return outcome


async def _log_of(gateway: Gateway, plan_id: str, old: PlanInput) -> CommandLog:
    """Return the commands of the ended run; only those of its input if the query fails."""
    try:
        return await gateway.query(plan_id, "log", CommandLog)
    except PlansError:
        return (old.engine or EngineInput()).log
