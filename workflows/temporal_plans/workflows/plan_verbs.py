"""The commands of a Plan as Temporal handlers: each a signal and an update of the same name.

The update's validator refuses what cannot be, with the right names, before anything is written to
history; the signal is for scripts, and what it comes to is in the log.
"""

from abc import abstractmethod

from temporalio import workflow

from temporal_plans.domain.commands import Command, Outcome, Verb
from temporal_plans.messages.plan import CommandMessage

_TARGET = 'Input {"phase", "step", "reason", "by"}, all optional.'


class PlanVerbs:
    """What the Plan workflow inherits: the handlers, which call these two."""

    @abstractmethod
    async def command(self, verb: Verb, command: Command, via: str) -> Outcome:
        """Carry a command out, and keep it in the log."""

    @abstractmethod
    def check(self, verb: Verb, command: Command) -> None:
        """Raise for a command that can't be carried out."""

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

    @workflow.signal(name="interrupt", description=f"Begin nothing new. {_TARGET}")
    async def interrupt_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.INTERRUPT, command, "signal")

    @workflow.update(name="interrupt", description=f"Begin nothing new. {_TARGET}")
    async def interrupt_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.INTERRUPT, command, "update")

    @interrupt_update.validator
    def _check_interrupt(self, command: Command = Command()) -> None:
        self.check(Verb.INTERRUPT, command)

    @workflow.signal(name="restart", description=f"Do it again from PENDING. {_TARGET}")
    async def restart_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.RESTART, command, "signal")

    @workflow.update(name="restart", description=f"Do it again from PENDING. {_TARGET}")
    async def restart_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.RESTART, command, "update")

    @restart_update.validator
    def _check_restart(self, command: Command = Command()) -> None:
        self.check(Verb.RESTART, command)

    @workflow.signal(name="force_complete", description=f"Take it for complete. {_TARGET}")
    async def force_complete_signal(self, command: CommandMessage = CommandMessage()) -> None:
        await self.command(Verb.FORCE_COMPLETE, command, "signal")

    @workflow.update(name="force_complete", description=f"Take it for complete. {_TARGET}")
    async def force_complete_update(self, command: Command = Command()) -> Outcome:
        return await self.command(Verb.FORCE_COMPLETE, command, "update")

    @force_complete_update.validator
    def _check_force_complete(self, command: Command = Command()) -> None:
        self.check(Verb.FORCE_COMPLETE, command)
