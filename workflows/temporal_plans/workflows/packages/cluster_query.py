"""The workflow that carries a question to the worker of a cluster: clients have no credentials."""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, TimeoutError, TimeoutType, is_cancelled_exception

from temporal_plans.activities.mechanics.failure_text import typed_failure_text
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.packages import ClusterAnswer, ClusterQuestion, cluster_queue
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT

WORKER_TIMEOUT = timedelta(seconds=20)
"""How long a worker of the cluster has to take the question."""

_ANSWER_TIMEOUT = timedelta(minutes=5)


@workflow.defn(name="ClusterQuery")
class ClusterQuery:
    """Its result is the answer; one with a problem when no worker serves the cluster."""

    @workflow.run
    async def run(self, question: ClusterQuestion) -> ClusterAnswer:
        require_plugin()
        try:
            answer: ClusterAnswer = await workflow.execute_activity(
                "ask_cluster",
                question,
                result_type=ClusterAnswer,
                task_queue=cluster_queue(question.cluster),
                schedule_to_start_timeout=WORKER_TIMEOUT,
                start_to_close_timeout=_ANSWER_TIMEOUT,
                schedule_to_close_timeout=2 * _ANSWER_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=RetryPolicy(maximum_attempts=2),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            return ClusterAnswer(problem=shortened(_why(question.cluster, error)))
        return answer


def _why(cluster: str, error: ActivityError) -> str:
    cause = error.cause
    if isinstance(cause, TimeoutError) and cause.type is TimeoutType.SCHEDULE_TO_START:
        return (
            f"no worker serves the cluster {cluster}; start one with"
            f" `temporal-plan worker --kubernetes {cluster}=KUBECONFIG`"
        )
    return f"the worker of the cluster {cluster} gave no answer: {typed_failure_text(error)}"
