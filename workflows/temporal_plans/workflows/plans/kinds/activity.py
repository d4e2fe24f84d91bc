"""A step that is one Temporal activity."""

from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.kinds.temporal import RetrySpec
from temporal_plans.workflows.plans.attempt import StepAttempt


async def run(step: StepAttempt) -> Any:
    """Run the activity with the timeouts and retries of the plan (else Temporal's defaults)."""
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


def arguments_of(step: StepAttempt, single: Any, multiple: tuple[Any, ...] | None) -> list[Any]:
    """Return the arguments: ``inputs`` as they are, else ``input`` unless it is absent."""
    values = list(multiple) if multiple is not None else ([] if single is None else [single])
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
