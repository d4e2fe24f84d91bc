"""Steps of packages as the worker of a cluster executes them, without a plan: the activity in an
environment of its own, and an owner that keeps what it is told."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.testing import ActivityEnvironment

from builders.packages import package_files
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.secrets import EnvironmentSecrets, SecretLookup
from temporal_plans.activities.packages.package_cache import PackageCache
from temporal_plans.activities.packages.package_tasks import PackageTaskActivities
from temporal_plans.activities.packages.step_execution import TaskIntervals
from temporal_plans.activities.packages.tasks.execution import TaskKind
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.loading.packages.archive import write_archive
from temporal_plans.messages.packages import (
    InstalledPackage,
    PackageRun,
    RecordObjects,
    TasksInput,
    TasksOutcome,
    TasksResult,
)

INTERVALS = TaskIntervals(look=0.1, heartbeat=0.5, answer=20)

Object = dict[str, Any]

PLACE = "deploy.phase.step.task: "
DONE = TasksResult(outcome=TasksOutcome.DONE, done=("task",))


class Contents:
    """A content store in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.kept[digest] = data
        return digest

    async def get(self, digest: str) -> bytes:
        return self.kept[digest]


class Owner:
    """The Instance as far as the activity asks it: it takes what a run records, until the run is
    over."""

    def __init__(self) -> None:
        self.recorded: list[RecordObjects] = []
        self.over = False

    def get_workflow_handle(self, workflow_id: str) -> "Owner":
        return self

    async def execute_update(self, name: str, message: RecordObjects) -> None:
        assert name == "record_objects"
        if self.over:
            refusal = Refusal.of(Code.ENDING, "the run of plan deploy is over")
            raise WorkflowUpdateFailedError(refusal_error(refusal))
        self.recorded.append(message)

    @property
    def names(self) -> list[str]:
        """What was recorded last that is to be applied, as texts."""
        applied = [record.objects for record in self.recorded if record.objects]
        return [str(one) for one in applied[-1]]


class Steps:
    """An instance ``one`` of a package ``web`` in a namespace, and steps of its plan ``deploy``."""

    def __init__(
        self,
        connection: ClusterConnection,
        namespace: str,
        *,
        secrets: Mapping[str, str] | None = None,
        kinds: Mapping[str, TaskKind] | None = None,
        intervals: TaskIntervals = INTERVALS,
        owner: Owner | None = None,
    ) -> None:
        self.owner, self.contents, self.namespace = owner or Owner(), Contents(), namespace
        self.environment = ActivityEnvironment()
        self.activities = PackageTaskActivities(
            cast(Client, self.owner),
            PackageCache(self.contents).get,
            connection,
            SecretLookup([EnvironmentSecrets("", secrets or {})]),
            kinds,
            intervals,
        )

    async def execute(self, order: TasksInput) -> TasksResult:
        """Execute the activity."""
        result: TasksResult = await self.environment.run(self.activities.run_package_tasks, order)
        return result

    def order(
        self,
        tasks: Sequence[Mapping[str, Any]],
        templates: Mapping[str, str | Sequence[Object]],
        *,
        parameters: Sequence[Mapping[str, Any]] = (),
        instance: str = "one",
        version: str = "1.0.0",
        uid: str = "run-1",
        arguments: Mapping[str, str] | None = None,
        shown: str = "",
        **installed: Any,
    ) -> TasksInput:
        """An order to execute all these tasks; templates are texts, or objects."""
        names = [task["name"] for task in tasks]
        step = {"name": "step", "tasks": names}
        phase = {"name": "phase", "strategy": "serial", "steps": [step]}
        operator = {
            "name": "web",
            "operatorVersion": version,
            "tasks": list(tasks),
            "plans": {"deploy": {"strategy": "serial", "phases": [phase]}},
        }
        texts = {
            key: text if isinstance(text, str) else "\n---\n".join(map(json.dumps, text))
            for key, text in templates.items()
        }
        files = package_files(
            json.dumps(operator), json.dumps({"parameters": list(parameters)}), texts
        )
        package = InstalledPackage(
            service="one",
            instance=instance,
            cluster="tests",
            namespace=self.namespace,
            content=self.contents.put(write_archive(files)),
            **installed,
        )
        return TasksInput(
            owner="service/one",
            run=PackageRun(package=package, uid=uid),
            plan="deploy",
            phase="phase",
            step="step",
            tasks=tuple(names),
            arguments=dict(arguments or {}),
            shown=shown,
        )

    def apply(self, *objects: Object, **options: Any) -> TasksInput:
        """An order to apply objects."""
        return self.order([task("Apply", resources=["all.yaml"])], {"all.yaml": objects}, **options)


def task(kind: str, name: str = "task", **spec: Any) -> dict[str, Any]:
    """A task as packages write it."""
    return {"name": name, "kind": kind, "spec": spec}


async def ended(steps: Steps, order: TasksInput) -> TasksResult:
    """Execute a step, as its workflow does, until it no longer waits."""
    result = await steps.execute(order)
    while result.outcome is TasksOutcome.WAITING:
        assert result.about is not None
        assert result.reason.startswith(f"{result.about}: ")
        result = await steps.execute(order.but(shown=result.reason))
    return result


def failed(result: TasksResult, outcome: TasksOutcome = TasksOutcome.FAILED) -> str:
    """The reason of a task that failed, without its place."""
    assert result.outcome is outcome, result
    assert result.reason.startswith(PLACE)
    return result.reason.removeprefix(PLACE)
