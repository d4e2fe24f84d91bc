"""The activity that executes the tasks of a package's step, in the worker of its cluster."""

from collections.abc import Mapping

from temporalio import activity
from temporalio.client import Client

from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.secrets import SecretLookup
from temporal_plans.activities.packages.access import LoadPackage
from temporal_plans.activities.packages.errors import located, problem_of
from temporal_plans.activities.packages.preparation import step_context
from temporal_plans.activities.packages.secret_values import HiddenValues, secret_values
from temporal_plans.activities.packages.step_execution import StepExecution, TaskIntervals, ended
from temporal_plans.activities.packages.tasks import TASK_KINDS
from temporal_plans.activities.packages.tasks.execution import TaskKind
from temporal_plans.messages.packages import TasksInput, TasksResult


class PackageTaskActivities:
    """``client`` reaches the owners of steps, ``load`` gives packages, ``connection`` is the
    cluster, and ``secrets`` the lookup of secret parameters. ``kinds`` are developers' own kinds of
    tasks by name."""

    def __init__(
        self,
        client: Client,
        load: LoadPackage,
        connection: ClusterConnection,
        secrets: SecretLookup,
        kinds: Mapping[str, TaskKind] | None = None,
        intervals: TaskIntervals | None = None,
    ) -> None:
        self._client = client
        self._load = load
        self._connection = connection
        self._secrets = secrets
        self._kinds = {**TASK_KINDS, **(kinds or {})}
        self._intervals = intervals or TaskIntervals()

    @activity.defn(name="run_package_tasks")
    async def run_package_tasks(self, order: TasksInput) -> TasksResult:
        """Execute tasks once, and look until all are done, one fails, the reason is another one, or
        a minute has passed.

        Idempotent: what is there already is applied again, which corrects what others changed. It
        never fails: an error is a result, so that the step can show it without values of secrets.
        """
        hidden = HiddenValues()
        async with heartbeats(self._intervals.heartbeat):
            try:
                return await self._execute(order, hidden)
            except Exception as error:
                return ended(located(problem_of(error), order), hidden)

    async def _execute(self, order: TasksInput, hidden: HiddenValues) -> TasksResult:
        installed = order.run.package
        values = await secret_values(installed.secrets, self._secrets)
        hidden.add_values(values.values())
        async with self._connection.use() as cluster:
            context = await step_context(order, self._load, values, cluster, self._client)
            return await StepExecution(context, self._kinds, hidden, self._intervals).run()
