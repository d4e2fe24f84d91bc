"""Whether a break-glass command can be given to an entity."""

from temporal_plans.domain.fleets.configuration import config_key
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.plans import Command, CommandType, Intent
from temporal_plans.domain.values.refusal import Code, Reason, Refusal


def command_refusal(entity: Entity, command: Command) -> Refusal | None:
    """Return why a command can't be given; None when it can. It still waits for the running plan.

    One command waits or is carried out at a time; a reason must be given; `install` is for what is
    not installed, the others but `uninstall` for what is; a version needs a block of configuration.
    """
    state = entity.state
    if entity.settings is None:
        return Refusal.of(Code.NOT_APPLICABLE, "the entity is not managed", field="entity")
    if state.command is not None:
        text = f"the command {state.command.id} waits already"
        fix = "wait for its end, or withdraw it: fleet cancel --command"
        return Refusal.of(Code.IN_USE, text, field="command", fix=fix)
    plan = state.active_plan
    if plan is not None and plan.intent is Intent.BREAK_GLASS:
        text = f"plan {plan.number} carries a command out"
        return Refusal.of(Code.IN_USE, text, field="command", fix="wait for its end, or cancel it")
    if not command.reason.strip():
        return Refusal.of(Code.INVALID, "is missing", field="reason", fix="say why")
    if command.type is CommandType.INSTALL and state.installed:
        text = f"{state.version} is installed"
        return Refusal.of(Code.NOT_APPLICABLE, text, field="type", fix="use enforce-version")
    if command.type is not CommandType.INSTALL and not state.installed:
        return Refusal.of(
            Code.NOT_APPLICABLE, "nothing is installed", field="type", fix="use install"
        )
    if command.type is CommandType.UNINSTALL and not entity.settings.uninstall:
        text = "the entity is not marked for uninstall"
        return Refusal.of(Code.NOT_APPLICABLE, text, field="type", fix="set uninstall first")
    return _version_refusal(entity, command)


def version_problem(command: Command) -> Reason | None:
    """Return why the version of a command can't be: some need one, the others take none."""
    needs = command.type in (CommandType.INSTALL, CommandType.ENFORCE_VERSION)
    if needs and command.version is None:
        return Reason(field="version", problem="is missing", fix="name the version")
    if not needs and command.version is not None:
        text = f"{command.type} takes no version"
        return Reason(field="version", problem=text, value=command.version, fix="remove it")
    return None


def _version_refusal(entity: Entity, command: Command) -> Refusal | None:
    if (problem := version_problem(command)) is not None:
        return Refusal(code=Code.INVALID, reasons=(problem,))
    version = command.version
    if command.type is CommandType.ENFORCE_CONFIG:
        version = entity.state.version
    if version is None or config_key(entity, version) is not None:
        return None
    text = f"no block of configuration covers {version}"
    return Refusal.of(Code.INVALID, text, field="version", fix="add a block that covers it")
