"""What the tests of the patches share: a scripted instance, activations, and runs of workflows."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from temporalio import workflow
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DefaultFailureConverter
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails

from temporal_plans.worker.sdk.patch import Evict, Run


@workflow.defn
class Plain:
    @workflow.run
    async def run(self) -> None: ...


@workflow.defn
class WithUpdate:
    @workflow.run
    async def run(self) -> None: ...

    @workflow.update
    def knock(self) -> None: ...


class Scripted(WorkflowInstance):
    """Answers activations with the ``commands`` that it was given, once; keeps all activations."""

    def __init__(self) -> None:
        self.commands: list[WorkflowCommand] = []
        self.activations: list[WorkflowActivation] = []

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        self.activations.append(act)
        completion = WorkflowActivationCompletion()
        completion.successful.SetInParent()
        completion.successful.commands.extend(self.commands)
        self.commands = []
        return completion

    def get_info(self) -> Any:
        return "the instance's info"

    def get_serialization_context(self, command_info: object) -> Any:
        return "the instance's context"

    def get_external_store_context(self, command_info: object) -> Any:
        return "the instance's target"

    def get_thread_id(self) -> int | None:
        return 7


def run_of(
    of: type = Plain,
    *,
    evict: Evict = lambda _: None,
    is_ours: bool = True,
    reads_contexts: bool = True,
) -> Run:
    """A run of the workflow, with the plugin's data converter."""
    return Run(details_of(of), evict, is_ours=is_ours, reads_contexts=reads_contexts)


def details_of(of: type) -> WorkflowInstanceDetails:
    definition = workflow._Definition  # pyright: ignore[reportPrivateUsage]
    return WorkflowInstanceDetails(
        payload_converter_factory=lambda: pydantic_data_converter.payload_converter,
        failure_converter_class=DefaultFailureConverter,
        interceptor_classes=[],
        defn=definition.must_from_class(of),
        info=cast(workflow.Info, SimpleNamespace(namespace="default", workflow_id="w")),
        randomness_seed=1,
        extern_functions={},
        disable_eager_activity_execution=False,
        worker_level_failure_exception_types=[],
        patch_activation_callback=None,
        last_completion_result=cast(Any, None),
        last_failure=None,
    )


def activation(*jobs: str, at: int = 1, replaying: bool = False) -> WorkflowActivation:
    """``at``: the seconds of its workflow task; the job ``query`` is a direct query, ``local`` the
    end of a local activity."""
    made = WorkflowActivation(run_id="run", is_replaying=replaying, history_length=at * 5)
    made.timestamp.seconds = at
    for job in jobs:
        if job == "query":
            made.jobs.add().query_workflow.query_id = "legacy_query"
        elif job == "local":
            made.jobs.add().resolve_activity.is_local = True
        else:
            getattr(made.jobs.add(), job).SetInParent()
    return made


def command(kind: str, seq: int = 0, *, rejected: bool = False) -> WorkflowCommand:
    made = WorkflowCommand()
    getattr(made, kind).SetInParent()
    if seq:
        getattr(made, kind).seq = seq
    if rejected:
        made.update_response.rejected.message = "no"
    return made


def kinds(completion: WorkflowActivationCompletion) -> Sequence[str]:
    """The commands of a completion that is successful."""
    assert completion.HasField("successful")
    return [command.WhichOneof("variant") or "" for command in completion.successful.commands]
