"""Whether a break-glass command can be given to an entity."""

from temporal_plans.domain.fleets.configuration import config_key
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.plans import Command, CommandType
from temporal_plans.domain.values.refusal import Code, Refusal


def command_refusal(entity: Entity, command: Command) -> Refusal | None:
    """Return why a command can't be given; None when it can. It still waits for the running plan.

    One command waits at a time; a reason must be given; `install` is for what is not installed, the
    others but `uninstall` for what is; a version needs a block of configuration.
    """
    state = entity.state
    if entity.settings is None:
        return Refusal.of(Code.NOT_APPLICABLE, "the entity is not managed", field="entity")
    if state.command is not None:
        text = f"the command {state.command.id} waits already"
        fix = "wait for its end, or cancel it"
        return Refusal.of(Code.IN_USE, text, field="command", fix=fix)
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


def _version_refusal(entity: Entity, command: Command) -> Refusal | None:
    needs = command.type in (CommandType.INSTALL, CommandType.ENFORCE_VERSION)
    if needs and command.version is None:
        return Refusal.of(Code.INVALID, "is missing", field="version", fix="name the version")
    if not needs and command.version is not None:
        text = f"{command.type} takes no version"
        return Refusal.of(Code.INVALID, text, field="version", fix="remove it")
    version = command.version
    if command.type is CommandType.ENFORCE_CONFIG:
        version = entity.state.version
    if version is None or config_key(entity, version) is not None:
        return None
    text = f"no block of configuration covers {version}"
    return Refusal.of(Code.INVALID, text, field="version", fix="add a block that covers it")
