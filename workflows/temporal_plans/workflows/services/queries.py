"""The queries of a service."""

from temporalio import workflow

from temporal_plans.domain.cluster.reservations import reservation_key
from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.plans.leases import LeaseState
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.launch import LaunchPlace, LaunchTarget
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.messages.owners import Rollback
from temporal_plans.messages.pools import Holdings
from temporal_plans.messages.services import (
    ChangeView,
    ConfigQuery,
    Configurations,
    Pods,
    ServiceInput,
    ServiceStatus,
    Tasks,
    pod_views,
)
from temporal_plans.workflows.owners.owner import Owner
from temporal_plans.workflows.services.changes import ServiceChanges
from temporal_plans.workflows.services.deployments import ServiceDeployments


class ServiceQueries(Owner):
    """A base class of the Service workflow; the handlers read these attributes."""

    _changes: ServiceChanges
    _configs: ConfigurationBook[Configuration]
    _deployments: ServiceDeployments
    _leases: LeaseState
    _tasks: TaskBook

    @workflow.query(name="status", description="Plans, configurations and numbers of tasks.")
    def status(self) -> ServiceStatus:
        records = self._tasks.records.values()
        return ServiceStatus(
            name=self._configs.target.spec.name,
            config_id=self._configs.target.id,
            number=self._configs.target.number,
            pool=self._deployments.input.pool,
            errors=self._deployments.rejected,
            uninstalling=self.uninstalling,
            configs=tuple(config.id for config in self._configs.all),
            plans=tuple(plan for plan in self.plans.records.values() if not plan.dropped),
            tasks=len(records),
            running=sum(r.runs for r in records),
            leases=self._leases.held,
            strangers=self._tasks.strangers_of(),
        )

    @workflow.query(name="config", description="A configuration. Input {config_id}, optional.")
    def config(self, query: ConfigQuery = ConfigQuery()) -> ServiceSpec:
        return self._configs.get(query.config_id).spec

    @workflow.query(name="configurations", description="The configurations that are kept.")
    def configurations(self) -> Configurations:
        return Configurations(configurations=self._configs.all, target=self._configs.target.id)

    @workflow.query(name="preview", description="What deploying this would change.")
    def preview(self, input: ServiceInput) -> ChangeView:
        before = self._deployments.input
        return self._changes.preview(input, before, deployed_once=self._deployments.done_once)

    @workflow.query(
        name="preview_rollback",
        description="What deploying an earlier configuration again would change. Input {config}.",
    )
    def preview_rollback(self, request: Rollback) -> ChangeView:
        found, before = self._configs.find(request.config), self._deployments.input
        input = before.but(spec=found.spec, plans=found.plans, rollout=request.rollout)
        return self._changes.preview(input, before, deployed_once=self._deployments.done_once)

    @workflow.query(
        name="launch_target", description="The configuration and place for a pod's launch."
    )
    def launch_target(self, target: LaunchTarget) -> LaunchPlace:
        config = self._configs.get(target.config_id)
        return LaunchPlace(
            config_id=config.id,
            spec=config.spec,
            replaces=self._tasks.to_be_replaced(target.pod, target.index),
            in_use=self._tasks.sets_in_use(config.spec, target),
        )

    @workflow.query(name="tasks", description="The newest launch of every task.")
    def tasks(self) -> Tasks:
        return Tasks(tasks=tuple(self._tasks.records.values()))

    @workflow.query(name="pods", description="Pod instances with their tasks and reservations.")
    def pods(self) -> Pods:
        return Pods(pods=pod_views(self._tasks, self._configs.target.spec))

    @workflow.query(
        name="holdings", description="The keys of the reservations that the service holds."
    )
    def holdings(self) -> Holdings:
        return Holdings(keys=tuple(self._tasks.reservations))

    @workflow.query(
        name="wanted", description="The keys of the reservations of all pods in the target."
    )
    def wanted(self) -> Holdings:
        if self.uninstalling:
            return Holdings()
        owner, pods = workflow.info().workflow_id, self._configs.target.spec.pods
        return Holdings(
            keys=tuple(
                reservation_key(owner, pod.type, index)
                for pod in pods
                for index in range(pod.count)
            )
        )
