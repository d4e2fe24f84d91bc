"""The commands of a Plan as Temporal handlers: each a signal and an update of the same name.

The update's validator refuses an impossible command, with the valid names, before any history is
written; the signal is for scripts, and its outcome is in the command log.
"""

from abc import abstractmethod

from temporalio import workflow

from temporal_plans.domain.plans.commands import Command, Outcome, Verb
from temporal_plans.messages.plans import CommandMessage

_TARGET = 'Input {"phase", "step", "reason", "by"}, all optional.'


class PlanVerbs:
    """The command handlers of the Plan workflow; they call the two abstract methods."""

    @abstractmethod
    async def command(self, verb: Verb, command: Command, via: str) -> Outcome:
        """Carry out a command, and record it in the log."""

    @abstractmethod
    def check(self, verb: Verb, command: Command) -> None:
        """Raise an error for a command that can't be carried out."""

    @workflow.signal(name="start", description="Start the plan. Input {parameters, reason, by}.")
    async def start_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.START, command, "signal")

    @workflow.update(name="start", description="Start the plan. Input {parameters, reason, by}.")
    async def start_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.START, command, "update")

    @start_update.validator
    def _check_start(self, command: Command = Command()) -> None:
        self.check(Verb.START, command)

    @workflow.signal(name="stop", description="Interrupt the plan and reset its steps.")
    async def stop_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.STOP, command, "signal")

    @workflow.update(name="stop", description="Interrupt the plan and reset its steps.")
    async def stop_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.STOP, command, "update")

    @stop_update.validator
    def _check_stop(self, command: Command = Command()) -> None:
        self.check(Verb.STOP, command)

    @workflow.signal(name="continue", description=f"Resume, open a gate, approve. {_TARGET}")
    async def continue_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.CONTINUE, command, "signal")

    @workflow.update(name="continue", description=f"Resume, open a gate, approve. {_TARGET}")
    async def continue_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.CONTINUE, command, "update")

    @continue_update.validator
    def _check_continue(self, command: Command = Command()) -> None:
        self.check(Verb.CONTINUE, command)

    @workflow.signal(name="interrupt", description=f"Start no new work. {_TARGET}")
    async def interrupt_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.INTERRUPT, command, "signal")

    @workflow.update(name="interrupt", description=f"Start no new work. {_TARGET}")
    async def interrupt_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.INTERRUPT, command, "update")

    @interrupt_update.validator
    def _check_interrupt(self, command: Command = Command()) -> None:
        self.check(Verb.INTERRUPT, command)

    @workflow.signal(name="restart", description=f"Reset to PENDING, and run again. {_TARGET}")
    async def restart_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.RESTART, command, "signal")

    @workflow.update(name="restart", description=f"Reset to PENDING, and run again. {_TARGET}")
    async def restart_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.RESTART, command, "update")

    @restart_update.validator
    def _check_restart(self, command: Command = Command()) -> None:
        self.check(Verb.RESTART, command)

    @workflow.signal(
        name="force_complete", description=f"Set COMPLETE, whatever the work says. {_TARGET}"
    )
    async def force_complete_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.FORCE_COMPLETE, command, "signal")

    @workflow.update(
        name="force_complete", description=f"Set COMPLETE, whatever the work says. {_TARGET}"
    )
    async def force_complete_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.FORCE_COMPLETE, command, "update")

    @force_complete_update.validator
    def _check_force_complete(self, command: Command = Command()) -> None:
        self.check(Verb.FORCE_COMPLETE, command)
