"""A step that is one Temporal activity."""

from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

from temporal_plans.domain.plan import ActivityWork, RetrySpec
from temporal_plans.workflows.step_context import StepContext


async def run_activity(step: StepContext) -> Any:
    """Runs it with the plan's own time limits and retries (else Temporal's defaults)."""
    work = step.work
    assert isinstance(work, ActivityWork)
    step.begin()
    return await workflow.execute_activity(
        work.type,
        args=arguments_of(step, work.input, work.inputs),
        task_queue=work.task_queue,
        start_to_close_timeout=work.timeout,
        heartbeat_timeout=work.heartbeat_timeout,
        schedule_to_close_timeout=work.schedule_to_close_timeout,
        retry_policy=retry_policy(work.retry),
        summary=step.place.element,
    )


def arguments_of(step: StepContext, one: Any, several: tuple[Any, ...] | None) -> list[Any]:
    """The arguments to pass: ``inputs`` as they are, else the one ``input`` unless it is absent."""
    values = list(several) if several is not None else ([] if one is None else [one])
    return [step.substituted(value) for value in values]


def retry_policy(spec: RetrySpec | None) -> RetryPolicy | None:
    if spec is None:
        return None
    return RetryPolicy(
        initial_interval=spec.initial_interval,
        backoff_coefficient=spec.backoff_coefficient,
        maximum_interval=spec.maximum_interval,
        maximum_attempts=spec.maximum_attempts,
        non_retryable_error_types=list(spec.non_retryable_error_types) or None,
    )
