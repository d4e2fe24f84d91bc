"""An owner of one step, in place of an Instance: it executes the activity as a step does, and takes
what a run records. Loaded by the workflow sandbox."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from temporal_plans.messages.addresses import cluster_queue
    from temporal_plans.messages.packages import (
        RecordObjects,
        TasksInput,
        TasksResult,
    )
    from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT


@workflow.defn(name="StepOwner")
class StepOwner:
    """Its result is that of the activity. Cancelled, it ends when the activity has."""

    def __init__(self) -> None:
        self._recorded: list[RecordObjects] = []

    @workflow.run
    async def run(self, order: TasksInput) -> TasksResult:
        result: TasksResult = await workflow.execute_activity(
            "run_package_tasks",
            order,
            result_type=TasksResult,
            task_queue=cluster_queue(order.run.package.cluster),
            start_to_close_timeout=timedelta(minutes=10),
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        return result

    @workflow.update
    async def record_objects(self, message: RecordObjects) -> None:
        self._recorded.append(message)

    @workflow.query
    def recorded(self) -> list[RecordObjects]:
        return self._recorded
