"""The plans that could be made for an entity now, the most wanted first."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.configuration import config_for
from temporal_plans.domain.fleets.constraints.freeze import next_expiry, not_frozen
from temporal_plans.domain.fleets.constraints.record import Constraint
from temporal_plans.domain.fleets.decisions import Note
from temporal_plans.domain.fleets.downtime import needs_downtime
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.judgement import text_of
from temporal_plans.domain.fleets.plans import (
    PRECEDENCE,
    Command,
    CommandType,
    EndStatus,
    EntityConfig,
    Intent,
    PlanKind,
)
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.targets import Choice, RejectedRelease, choose
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.fleets.world import World


@dataclass(slots=True)
class Outlook:
    """The proposals for an entity, the releases that were rejected, and remarks. ``code`` is why
    there is nothing to propose."""

    proposals: list[Proposal] = field(default_factory=list[Proposal])
    rejected: tuple[RejectedRelease, ...] = ()
    notes: list[Note] = field(default_factory=list[Note])
    code: FleetCode | None = None
    changes: list[datetime] = field(default_factory=list[datetime])

    def note(self, code: FleetCode, message: str) -> None:
        self.notes.append(Note(code=code, message=message))
        self.code = self.code or code

    def take(self, choice: Choice) -> None:
        self.rejected, self.code = choice.rejected, self.code or choice.code
        self.changes += [choice.next_change] if choice.next_change else []
        if choice.chosen is not None:
            self.proposals.append(choice.chosen)


def outlook(
    entity: Entity, world: World, now: datetime, constraints: Sequence[Constraint]
) -> Outlook:
    """Return the proposals for an entity, complete and in order of precedence. ``constraints`` are
    those on targets."""
    view = Outlook()
    if entity.state.command is not None:
        view.proposals.append(_commanded(entity, entity.state.command, world))
        return view
    if not entity.state.installed:
        _absent(view, entity, world, now, constraints)
    else:
        _present(view, entity, world, now, constraints)
    view.proposals = [complete(one, world) for one in view.proposals]
    view.proposals.sort(key=lambda one: PRECEDENCE[one.intent])
    return view


def _absent(
    view: Outlook, entity: Entity, world: World, now: datetime, constraints: Sequence[Constraint]
) -> None:
    if entity.settings is not None and entity.settings.uninstall:
        view.note(FleetCode.UNINSTALLED, "it is uninstalled")
        return
    _roll_back(view, entity, world)
    view.take(choose(entity, Intent.INSTALL, world, now, constraints))


def _present(
    view: Outlook, entity: Entity, world: World, now: datetime, constraints: Sequence[Constraint]
) -> None:
    _uninstall(view, entity)
    _roll_back(view, entity, world)
    _change_version(view, entity, world, now, constraints)
    current = entity.state.version
    config = config_for(entity, current or "", world.settings.config_revision)
    if config is not None and config.differs(entity.state.config):
        view.proposals.append(_same_version(entity, PlanKind.CHANGE_CONFIG, Intent.CONFIG))
    elif entity.state.pending_secrets:
        view.proposals.append(_same_version(entity, PlanKind.CHANGE_SECRETS, Intent.SECRET))


def _uninstall(view: Outlook, entity: Entity) -> None:
    if entity.settings is None or not entity.settings.uninstall:
        return
    least = parse_version(entity.settings.uninstall_minimum_version or "")
    current = parse_version(entity.state.version or "")
    if least is not None and (current is None or (current.key or ()) < (least.key or ())):
        view.notes.append(
            Note(
                code=FleetCode.UNINSTALL_NOT_YET,
                message=f"it is uninstalled from {least.text} on, and is at {entity.state.version}",
            )
        )
        return
    view.proposals.append(Proposal(entity, PlanKind.UNINSTALL, Intent.UNINSTALL))


def _roll_back(view: Outlook, entity: Entity, world: World) -> None:
    """Propose to go back to the state before a failed plan that left another state. A failed
    rollback is left to people."""
    last = entity.state.last_plan
    if last is None or last.status is EndStatus.SUCCEEDED:
        return
    if last.intent is Intent.ROLLBACK:
        if last.status is EndStatus.FAILED:
            text = f"the rollback to {last.to.version} failed, and is not tried again"
            view.notes.append(Note(code=FleetCode.ROLLBACK_FAILED, message=text))
        return
    before, current = last.before, entity.state.current
    if not before.differs(current):
        return
    if before.version is None:
        kind = PlanKind.UNINSTALL
    elif current.version is None:
        kind = PlanKind.INSTALL
    elif before.version == current.version:
        kind = PlanKind.CHANGE_CONFIG
    else:
        kind = PlanKind.CHANGE_VERSION
    view.proposals.append(
        Proposal(
            entity,
            kind,
            Intent.ROLLBACK,
            version=before.version,
            release=world.release(entity, before.version),
            config=before.config,
        )
    )


def _change_version(
    view: Outlook, entity: Entity, world: World, now: datetime, constraints: Sequence[Constraint]
) -> None:
    current = parse_version(entity.state.version or "")
    if current is None or not current.orderable:
        text = f"{entity.state.version} has no order among versions, so no release is newer"
        view.note(FleetCode.NON_ORDERABLE, text)
        return
    if not world.recalls(entity, entity.state.version):
        view.take(choose(entity, Intent.UPGRADE, world, now, constraints))
        return
    stay = Proposal(entity, PlanKind.CHANGE_VERSION, Intent.RECALL_ROLL_OFF)
    if (change := next_expiry(stay, world, now)) is not None:
        view.changes.append(change)
    if (frozen := not_frozen(stay, world, now)) is not None:
        view.note(FleetCode.FROZEN_BY_RECALL, text_of(frozen))
        return
    choice = choose(entity, Intent.RECALL_ROLL_OFF, world, now, constraints)
    if choice.chosen is None:
        ids = ", ".join(one.id for one in world.recalls(entity, entity.state.version))
        text = f"{entity.state.version} is recalled ({ids}), and no other release can be used"
        view.note(FleetCode.ROLL_OFF_NO_TARGET, text)
    view.take(choice)


def _same_version(entity: Entity, kind: PlanKind, intent: Intent) -> Proposal:
    return Proposal(entity, kind, intent, version=entity.state.version)


def _commanded(entity: Entity, command: Command, world: World) -> Proposal:
    """Return what a command asks for."""
    version = entity.state.version
    match command.type:
        case CommandType.INSTALL:
            kind, version = PlanKind.INSTALL, command.version
        case CommandType.ENFORCE_VERSION:
            kind, version = PlanKind.CHANGE_VERSION, command.version
        case CommandType.ENFORCE_CONFIG:
            kind = PlanKind.CHANGE_CONFIG
        case CommandType.UNINSTALL:
            kind, version = PlanKind.UNINSTALL, None
        case CommandType.RESTART:
            kind = PlanKind.RESTART
    wanted = Proposal(entity, kind, Intent.BREAK_GLASS, version=version, command=command)
    return complete(wanted, world)


def complete(proposal: Proposal, world: World) -> Proposal:
    """Return a proposal with its release, the configuration of its version, the secrets that wait,
    and whether it needs downtime. Configuration never changes apart from the version that it is
    for."""
    entity, version = proposal.entity, proposal.version
    release = proposal.release or world.release(entity, version)
    config = proposal.config
    if proposal.intent is not Intent.ROLLBACK and version is not None:
        if proposal.kind in (PlanKind.CHANGE_SECRETS, PlanKind.RESTART):
            config = entity.state.config
        else:
            found = config_for(entity, version, world.settings.config_revision)
            config = found or EntityConfig()
    current = world.release(entity, entity.state.version)
    return replace(
        proposal,
        release=release,
        config=config,
        secrets=() if proposal.kind is PlanKind.UNINSTALL else entity.state.pending_secrets,
        downtime=needs_downtime(entity, proposal.kind, current, release, config.key),
    )
