"""What is read of a service, as Temporal queries."""

from temporalio import workflow

from temporal_plans.domain.cluster import reservation_key
from temporal_plans.domain.leases import LeaseState
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.domain.task import TaskState
from temporal_plans.messages.cluster import ConfigQuery, Holdings
from temporal_plans.messages.plan import CommandLog
from temporal_plans.messages.service import (
    ChangeView,
    Configurations,
    LaunchPlace,
    LaunchTarget,
    Pods,
    RunHistory,
    ServiceInput,
    ServiceStatus,
    Tasks,
)
from temporal_plans.workflows.log import CommandLogger
from temporal_plans.workflows.service_changes import ServiceChanges
from temporal_plans.workflows.service_configs import ServiceConfigs
from temporal_plans.workflows.service_deployments import ServiceDeployments
from temporal_plans.workflows.service_plans import ServicePlans
from temporal_plans.workflows.service_tasks import ServiceTasks


class ServiceQueries:
    """What the Service workflow inherits: the handlers, which read these parts of it."""

    _changes: ServiceChanges
    _configs: ServiceConfigs
    _deployments: ServiceDeployments
    _leases: LeaseState
    _log: CommandLogger
    _plans: ServicePlans
    _tasks: ServiceTasks
    _uninstalling: bool

    @workflow.query(name="status", description="Plans, configurations and numbers of tasks.")
    def status(self) -> ServiceStatus:
        records = self._tasks.records.values()
        return ServiceStatus(
            name=self._configs.target.spec.name,
            config_id=self._configs.target.id,
            number=self._configs.target.number,
            pool=self._deployments.input.pool,
            errors=self._deployments.rejected,
            uninstalling=self._uninstalling,
            configs=tuple(one.id for one in self._configs.all),
            plans=tuple(plan for plan in self._plans.records.values() if not plan.dropped),
            tasks=len(records),
            running=sum(
                r.status is not None and r.status.state is TaskState.RUNNING for r in records
            ),
            leases=self._leases.held,
        )

    @workflow.query(name="config", description="A configuration. Input {config_id}, optional.")
    def config(self, query: ConfigQuery = ConfigQuery()) -> ServiceSpec:
        return self._configs.get(query.config_id).spec

    @workflow.query(name="configurations", description="The configurations that are kept.")
    def configurations(self) -> Configurations:
        return Configurations(configurations=self._configs.all, target=self._configs.target.id)

    @workflow.query(name="preview", description="What deploying this would change.")
    def preview(self, input: ServiceInput) -> ChangeView:
        return self._changes.preview(input, deployed_once=self._deployments.done_once)

    @workflow.query(name="runs", description="All runs of its plans, oldest first.")
    def runs(self) -> RunHistory:
        return self._plans.history

    @workflow.query(
        name="launch_target", description="With what, and where, a pod is to be launched."
    )
    def launch_target(self, target: LaunchTarget) -> LaunchPlace:
        config = self._configs.get(target.config_id)
        return LaunchPlace(
            config_id=config.id,
            spec=config.spec,
            replaces=self._tasks.leaves(target.pod, target.index),
            in_use=self._tasks.sets_in_use(config.spec, target),
        )

    @workflow.query(name="tasks", description="The newest launch of every task.")
    def tasks(self) -> Tasks:
        return Tasks(tasks=tuple(self._tasks.records.values()))

    @workflow.query(name="pods", description="Pod instances with their tasks and reservations.")
    def pods(self) -> Pods:
        return Pods(pods=self._tasks.pods(self._configs.target.spec))

    @workflow.query(name="holdings", description="The keys of the reservations that it keeps.")
    def holdings(self) -> Holdings:
        return Holdings(keys=tuple(self._tasks.reservations))

    @workflow.query(name="wanted", description="The keys of the reservations of pods to come.")
    def wanted(self) -> Holdings:
        if self._uninstalling:
            return Holdings()
        owner, pods = workflow.info().workflow_id, self._configs.target.spec.pods
        return Holdings(
            keys=tuple(
                reservation_key(owner, pod.type, index)
                for pod in pods
                for index in range(pod.count)
            )
        )

    @workflow.query(name="log", description="Commands to the service itself, and their outcome.")
    def log(self) -> CommandLog:
        return self._log.log
