"""The pod commands as Temporal handlers: each a signal and an update of the same name."""

from abc import abstractmethod

from temporalio import workflow

from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.messages.services import PodCommand, PodCommandMessage, PodCommandResult


class PodVerbs:
    """A base class of the Service workflow; its handlers call the two abstract methods."""

    @abstractmethod
    async def pod_command(self, verb: PodVerb, command: PodCommand, via: str) -> PodCommandResult:
        """Carry out a command, and record it in the log."""

    @abstractmethod
    def check_pod(self, verb: PodVerb, command: PodCommand) -> None:
        """Raise an error for a command that can't be carried out."""

    @abstractmethod
    async def pod_signal(self, verb: PodVerb, command: PodCommandMessage) -> None:
        """Carry out a command that a signal brought, or record that it can't be read."""

    @workflow.update(
        name="restart_pod",
        description="Kill a pod's tasks; recovery launches them in place. Input {pod}.",
    )
    async def restart_pod(self, command: PodCommand) -> PodCommandResult:
        return await self.pod_command(PodVerb.RESTART, command, "update")

    @restart_pod.validator
    def _check_restart_pod(self, command: PodCommand) -> None:
        self.check_pod(PodVerb.RESTART, command)

    @workflow.signal(
        name="restart_pod", description="Kill a pod's tasks; recovery launches them in place."
    )
    async def on_restart_pod(self, command: PodCommandMessage) -> None:
        await self.pod_signal(PodVerb.RESTART, command)

    @workflow.update(
        name="replace_pod",
        description="Launch a pod on other resources; its volumes are lost. Input {pod}.",
    )
    async def replace_pod(self, command: PodCommand) -> PodCommandResult:
        return await self.pod_command(PodVerb.REPLACE, command, "update")

    @replace_pod.validator
    def _check_replace_pod(self, command: PodCommand) -> None:
        self.check_pod(PodVerb.REPLACE, command)

    @workflow.signal(
        name="replace_pod", description="Launch a pod on other resources; its volumes are lost."
    )
    async def on_replace_pod(self, command: PodCommandMessage) -> None:
        await self.pod_signal(PodVerb.REPLACE, command)

    @workflow.update(
        name="pause_pod",
        description="Run a placeholder in place of the tasks' commands. Input {pod, tasks}.",
    )
    async def pause_pod(self, command: PodCommand) -> PodCommandResult:
        return await self.pod_command(PodVerb.PAUSE, command, "update")

    @pause_pod.validator
    def _check_pause_pod(self, command: PodCommand) -> None:
        self.check_pod(PodVerb.PAUSE, command)

    @workflow.signal(name="pause_pod", description="Run a placeholder in place of its tasks.")
    async def on_pause_pod(self, command: PodCommandMessage) -> None:
        await self.pod_signal(PodVerb.PAUSE, command)

    @workflow.update(
        name="resume_pod", description="Run paused tasks' own commands again. Input {pod, tasks}."
    )
    async def resume_pod(self, command: PodCommand) -> PodCommandResult:
        return await self.pod_command(PodVerb.RESUME, command, "update")

    @resume_pod.validator
    def _check_resume_pod(self, command: PodCommand) -> None:
        self.check_pod(PodVerb.RESUME, command)

    @workflow.signal(name="resume_pod", description="Run its paused tasks' own commands again.")
    async def on_resume_pod(self, command: PodCommandMessage) -> None:
        await self.pod_signal(PodVerb.RESUME, command)
