"""K25: a command that waits goes first."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def no_command(proposal: Proposal, _world: World, _now: datetime, /) -> Refusal | None:
    command = proposal.entity.state.command
    if command is None:
        return None
    reason = Reason(
        field="command",
        problem=f"the command {command.id} ({command.type}) goes first",
        value={"id": command.id, "type": command.type.value},
    )
    return refused(
        FleetCode.PENDING_COMMAND,
        reason,
        cure="wait for it, or withdraw it: fleet cancel --command",
    )


COMMAND_FIRST = Constraint(
    id="K25",
    title="no command waits",
    stage=Stage.ISSUE,
    rule=no_command,
    applies="IN UP CF UN RO RB",
    who_can_act=("entity operator",),
)
