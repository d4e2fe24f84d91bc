"""Runs workflows as the SDK's runners do, with the patches of this room around every run.

A runner of the user's own is left alone, and so is a sandbox with a ``runner_class`` of the user's
own: only its author knows what it does with an activation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from temporalio.worker import (
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from temporal_plans.worker.sdk.empty_activation import EmptyActivation
from temporal_plans.worker.sdk.final_command import OneFinalCommand
from temporal_plans.worker.sdk.interruption import Interruption
from temporal_plans.worker.sdk.message_input import MessageInput
from temporal_plans.worker.sdk.patch import Evict, Patch, Run
from temporal_plans.worker.sdk.payload_contexts import NoPayloadContexts
from temporal_plans.worker.sdk.query_ahead import QueryAhead
from temporal_plans.worker.sdk.refused_update import RefusedUpdate
from temporal_plans.worker.sdk.start_input import StartInput

PATCHES: tuple[type[Patch], ...] = (
    NoPayloadContexts,
    Interruption,  # one activation or eviction at a time, for the patches below too
    QueryAhead,  # refuses activations, which no patch below may then see
    EmptyActivation,
    OneFinalCommand,
    MessageInput,
    StartInput,  # sees the SDK's own completion of the first activation
    RefusedUpdate,  # the patches above see one activation, and one completion
)
"""From the outermost to the one around the SDK's instance: an activation passes them downwards, its
completion upwards."""

OURS: tuple[str, ...] = ("temporal_plans.",)
"""The modules of the engine's own workflows. The patches that change what is written into a history
are for these only: histories of developers' workflows must replay without the plugin, too."""


def _evict_nothing(_: str) -> None:
    """Do nothing: without a worker there is no cache."""


@dataclass(frozen=True)
class Patching:
    """The settings of a worker's patches. ``reads_contexts``: see ``Run``."""

    evict: Evict = _evict_nothing
    reads_contexts: bool = True

    def around(self, inner: WorkflowInstance, details: WorkflowInstanceDetails) -> WorkflowInstance:
        """Return the SDK's instance inside the patches that apply to its run."""
        run = Run(
            details=details,
            evict=self.evict,
            is_ours=details.defn.cls.__module__.startswith(OURS),
            reads_contexts=self.reads_contexts,
        )
        for patch in reversed(PATCHES):
            if patch.applies_to(run):
                inner = patch(inner, run)
        return inner


class PatchedRunner(WorkflowRunner):
    """Delegates to a runner of the SDK, and patches its instances."""

    def __init__(self, sdk: WorkflowRunner, patching: Patching) -> None:
        self._sdk = sdk
        self._patching = patching

    def prepare_workflow(self, defn: Any) -> None:
        self._sdk.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return self._patching.around(self._sdk.create_instance(det), det)

    def set_worker_level_failure_exception_types(
        self, types: Sequence[type[BaseException]]
    ) -> None:
        self._sdk.set_worker_level_failure_exception_types(types)


@dataclass(frozen=True)
class PatchedSandbox(SandboxedWorkflowRunner):
    """The SDK's sandbox with patched instances.

    It inherits where ``PatchedRunner`` delegates, because the SDK's debug mode and plugins applied
    after ours look for a ``SandboxedWorkflowRunner`` and replace its restrictions.
    """

    patching: Patching = field(default_factory=Patching)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return self.patching.around(super().create_instance(det), det)


def patched(runner: WorkflowRunner, patching: Patching) -> WorkflowRunner:
    """Return the runner with patched instances if it is the SDK's, else the runner itself."""
    if type(runner) is UnsandboxedWorkflowRunner:
        return PatchedRunner(runner, patching)
    if type(runner) is not SandboxedWorkflowRunner:
        return runner
    if runner.runner_class is not UnsandboxedWorkflowRunner:
        return runner
    return PatchedSandbox(restrictions=runner.restrictions, patching=patching)
