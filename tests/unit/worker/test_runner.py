"""Which runners and runs are patched, and in which order (worker.sdk.runner)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import PayloadCodec
from temporalio.worker import (
    ReplayerConfig,
    UnsandboxedWorkflowRunner,
    WorkflowInstance,
    WorkflowInstanceDetails,
    WorkflowRunner,
)
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from temporal_plans.worker.plugin import WORKFLOWS, PlansPlugin
from temporal_plans.worker.sdk import runner
from temporal_plans.worker.sdk.patch import Patch
from temporal_plans.worker.sdk.payload_contexts import NoPayloadContexts, reads_contexts
from temporal_plans.worker.sdk.runner import (
    PatchedRunner,
    PatchedSandbox,
    Patching,
    patched,
)
from unit.worker.sdk_kit import Plain, Scripted, WithUpdate, activation, details_of, run_of

OUTERMOST_FIRST = (
    "NoPayloadContexts",
    "Interruption",
    "QueryAhead",
    "EmptyActivation",
    "OneFinalCommand",
    "MessageInput",
    "StartInput",
    "RefusedUpdate",
)


class OwnRunner(UnsandboxedWorkflowRunner):
    """A developer's."""


class OwnSandbox(SandboxedWorkflowRunner):
    """A developer's."""


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        pytest.param(SandboxedWorkflowRunner(), PatchedSandbox, id="the-sandbox"),
        pytest.param(UnsandboxedWorkflowRunner(), PatchedRunner, id="no-sandbox"),
        pytest.param(OwnRunner(), OwnRunner, id="own-runner"),
        pytest.param(OwnSandbox(), OwnSandbox, id="own-sandbox"),
        pytest.param(
            SandboxedWorkflowRunner(runner_class=OwnRunner),
            SandboxedWorkflowRunner,
            id="own-runner-in-the-sandbox",
        ),
    ],
)
def test_only_runners_of_the_sdk_are_patched(
    given: WorkflowRunner, kind: type[WorkflowRunner]
) -> None:
    made = patched(given, Patching())
    assert type(made) is kind
    assert type(patched(made, Patching())) is kind  # a plugin on the client and on the worker


def test_the_sandbox_stays_one_for_plugins_that_come_later() -> None:
    patching = Patching(reads_contexts=False)
    made = patched(SandboxedWorkflowRunner(), patching)
    assert isinstance(made, SandboxedWorkflowRunner)
    theirs = made.restrictions.with_passthrough_modules("theirs")
    replaced = dataclasses.replace(made, restrictions=theirs)
    assert isinstance(replaced, PatchedSandbox)
    assert replaced.patching == patching
    assert "theirs" in replaced.restrictions.passthrough_modules


def layers(instance: WorkflowInstance) -> list[type]:
    """The patches around an instance, the outermost first."""
    found: list[type] = []
    while isinstance(instance, Patch):
        found.append(type(instance))
        instance = instance._inner  # pyright: ignore[reportPrivateUsage]
    return found


@pytest.mark.parametrize(
    ("ours", "of", "reads", "left_out"),
    [
        pytest.param(True, WithUpdate, False, set[str](), id="ours"),
        pytest.param(True, Plain, True, {"NoPayloadContexts", "EmptyActivation"}, id="a-codec"),
        pytest.param(
            False,
            WithUpdate,
            False,
            {"QueryAhead", "EmptyActivation", "MessageInput", "StartInput"},
            id="own",
        ),
    ],
)
def test_the_patches_of_a_run(
    monkeypatch: pytest.MonkeyPatch, ours: bool, of: type, reads: bool, left_out: set[str]
) -> None:
    monkeypatch.setattr(runner, "OURS", (of.__module__,) if ours else ("elsewhere.",))
    instance = Patching(reads_contexts=reads).around(Scripted(), details_of(of))
    assert [one.__name__ for one in layers(instance)] == [
        name for name in OUTERMOST_FIRST if name not in left_out
    ]


def test_the_engines_workflows_are_ours() -> None:
    assert all(one.__module__.startswith(runner.OURS) for one in WORKFLOWS)


def test_a_runner_delegates() -> None:
    class Sdk(UnsandboxedWorkflowRunner):
        def __init__(self) -> None:
            self.seen: list[Any] = []
            self.instance = Scripted()

        def prepare_workflow(self, defn: Any) -> None:
            self.seen.append(defn)

        def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
            self.seen.append(det)
            return self.instance

        def set_worker_level_failure_exception_types(
            self, types: Sequence[type[BaseException]]
        ) -> None:
            self.seen.append(types)

    sdk, details = Sdk(), details_of(Plain)
    made = PatchedRunner(sdk, Patching())
    made.prepare_workflow(details.defn)
    made.set_worker_level_failure_exception_types([ValueError])
    instance = made.create_instance(details)
    assert sdk.seen == [details.defn, [ValueError], details]
    assert instance.get_info() == sdk.instance.get_info()
    assert layers(instance)


def test_the_plugin_patches_the_runners_of_replayers() -> None:
    given = ReplayerConfig(
        workflow_runner=SandboxedWorkflowRunner(),
        unsandboxed_workflow_runner=UnsandboxedWorkflowRunner(),
        data_converter=pydantic_data_converter,
    )
    config = PlansPlugin().configure_replayer(given)
    sandbox = config.get("workflow_runner")
    assert isinstance(sandbox, PatchedSandbox)
    assert not sandbox.patching.reads_contexts
    assert "temporal_plans" in sandbox.restrictions.passthrough_modules
    assert isinstance(config.get("unsandboxed_workflow_runner"), PatchedRunner)


def test_a_patch_forwards_what_it_does_not_change() -> None:
    inner = Scripted()
    patch = Patch(inner, run_of())
    act = activation("fire_timer")
    assert patch.activate(act).HasField("successful")
    assert inner.activations == [act]
    assert patch.get_info() == inner.get_info()
    assert patch.get_serialization_context(None) == inner.get_serialization_context(None)
    assert patch.get_external_store_context(None) == inner.get_external_store_context(None)
    assert patch.get_thread_id() == inner.get_thread_id()


class Codec(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)


@pytest.mark.parametrize(
    ("more", "reads"),
    [
        pytest.param({}, False, id="neither"),
        pytest.param({"payload_codec": Codec()}, True, id="a-codec"),
        pytest.param({"external_storage": object()}, True, id="an-external-storage"),
    ],
)
def test_who_reads_contexts(more: Mapping[str, Any], reads: bool) -> None:
    assert reads_contexts(dataclasses.replace(pydantic_data_converter, **more)) is reads


def test_contexts_are_left_out() -> None:
    patch = NoPayloadContexts(Scripted(), run_of())
    assert patch.get_serialization_context(None) is None
    assert patch.get_external_store_context(None).target is None
