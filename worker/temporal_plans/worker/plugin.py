"""``PlansPlugin``: everything that a worker needs to run plans.

``Client.connect(..., plugins=[PlansPlugin()])`` gives the client the data converter, and every
worker made from it the workflows, the activities, the guard, and the developer's extensions.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pydantic
from temporalio.client import Client
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import DataConverter, DefaultPayloadConverter
from temporalio.plugin import SimplePlugin
from temporalio.worker import ReplayerConfig, Worker, WorkerConfig, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from temporal_plans.activities.contents.cached_contents import CachedContents
from temporal_plans.activities.contents.choice import content_store
from temporal_plans.activities.contents.holds import ContentActivities
from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.activities.fleets.catalogues import CatalogueActivities
from temporal_plans.activities.fleets.declarations import DeclarationActivities
from temporal_plans.activities.fleets.kinds import ENTITY_KINDS
from temporal_plans.activities.fleets.kinds.record import EntityKind
from temporal_plans.activities.fleets.packages import PackageInstallationActivities
from temporal_plans.activities.fleets.plans import FleetPlanActivities
from temporal_plans.activities.fleets.releases import Releases
from temporal_plans.activities.fleets.services import InstallationActivities
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.mechanics.secrets import SecretProvider
from temporal_plans.activities.owners.plans import PlanActivities
from temporal_plans.activities.owners.scheduled import ScheduledActivities, ScheduledIntervals
from temporal_plans.activities.pools.backend import Placement
from temporal_plans.activities.pools.offers import OfferActivities
from temporal_plans.activities.pools.pool_placement import PoolPlacement
from temporal_plans.activities.services.configurations import ConfigurationActivities
from temporal_plans.activities.services.pods import PodActivities
from temporal_plans.activities.services.upkeep import UpkeepActivities, UpkeepIntervals
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.domain.plans.strategies.record import Select
from temporal_plans.domain.services.change_check import ConfigValidator
from temporal_plans.domain.services.plan_customizer import PlanCustomizer
from temporal_plans.domain.services.recovery.book import Recoverer
from temporal_plans.domain.values.model import build_all
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.worker.clusters import ServedClusters
from temporal_plans.worker.installations import ClientInstallations
from temporal_plans.worker.package_installations import ClientPackages
from temporal_plans.worker.sdk.evictions import Evictions
from temporal_plans.worker.sdk.interruption import raise_activation_timeout
from temporal_plans.worker.sdk.payload_contexts import reads_contexts
from temporal_plans.worker.sdk.runner import Patching, patched
from temporal_plans.workflows.contents.content import Content
from temporal_plans.workflows.fleets.environment import EnvironmentWorkflow
from temporal_plans.workflows.fleets.product import ProductWorkflow
from temporal_plans.workflows.fleets.spoke import SpokeWorkflow
from temporal_plans.workflows.mechanics.guard import PlansInterceptor
from temporal_plans.workflows.mechanics.settings import EXTERN as settings_extern
from temporal_plans.workflows.mechanics.settings import EngineSettings
from temporal_plans.workflows.mechanics.unknown import UnknownWorkflow
from temporal_plans.workflows.owners.scheduled_run import ScheduledRun
from temporal_plans.workflows.packages.instance import Instance
from temporal_plans.workflows.plans.phase import Phase
from temporal_plans.workflows.plans.plan import Plan
from temporal_plans.workflows.plans.registry import EXTERN as registry_extern
from temporal_plans.workflows.plans.registry import Registry, StepKind, runners_of
from temporal_plans.workflows.plans.step import Step
from temporal_plans.workflows.pools.pool import PoolWorkflow
from temporal_plans.workflows.services.rules import EXTERN as rules_extern
from temporal_plans.workflows.services.rules import ServiceRules
from temporal_plans.workflows.services.service import Service

if TYPE_CHECKING:  # the extra ``kubernetes`` may be missing
    from temporal_plans.activities.packages.tasks.execution import TaskKind

WORKFLOWS: tuple[type, ...] = (
    Plan,
    Phase,
    Step,
    Service,
    Instance,
    PoolWorkflow,
    ScheduledRun,
    Content,
    EnvironmentWorkflow,
    ProductWorkflow,
    SpokeWorkflow,
)

PASSTHROUGH = (
    "temporal_plans",  # its modules hold no state; importing them for each run costs 25 ms
    "opentelemetry",  # the spans' context must be the process's own
    "pystache",  # imported by loading.text.mustache
    "re2",  # imported by domain.values.patterns
    "yaml",  # imported by loading
)

PlacementFactory = Callable[[Client], Placement]
"""Makes the placement of pods for a worker, with the worker's client."""


@dataclasses.dataclass(frozen=True)
class ActivityIntervals:
    """How often activities that wait check, report and heartbeat."""

    scheduled: ScheduledIntervals = dataclasses.field(default_factory=ScheduledIntervals)
    upkeep: UpkeepIntervals = dataclasses.field(default_factory=UpkeepIntervals)


class PlansPlugin(SimplePlugin):
    """Adds plans to a client and its workers.

    ``strategies`` and ``step_kinds`` are the developer's own, by the names that plans use.
    ``recoverers`` plan, the first that has an answer, how a failed pod is recovered;
    ``plan_customizers`` change generated plans before they run; ``config_validators`` refuse
    configurations. ``entity_kinds`` are the developer's own kinds of entities of fleets.
    ``passthrough`` names their modules that workflows may share with the process.
    ``placement`` makes the placement that reserves resources for pods; by default the pools of
    agents. ``guard`` keeps invalid messages from blocking workflows; ``unknown`` makes unknown
    workflow types fail at once: switch it off for a worker with a dynamic workflow of its own.
    ``clusters`` are those that a worker on the queue ``kubernetes/NAME`` reaches (needs the extra
    ``kubernetes``), with the providers of ``secrets`` for the parameters of packages;
    ``task_kinds`` execute tasks of the developer's own kinds there, by name.
    Tests shorten the ``settings`` of the engine and the ``intervals`` of activities.

    Raises ValueError for a name that is built in, and for an extension that is not a function.
    """

    def __init__(
        self,
        *,
        strategies: Mapping[str, Select] | None = None,
        step_kinds: Mapping[str, StepKind] | None = None,
        recoverers: Sequence[Recoverer] = (),
        plan_customizers: Sequence[PlanCustomizer] = (),
        config_validators: Sequence[ConfigValidator] = (),
        entity_kinds: Sequence[EntityKind] = (),
        passthrough: Sequence[str] = (),
        placement: PlacementFactory = PoolPlacement,
        guard: bool = True,
        unknown: bool = True,
        clusters: Sequence[ClusterAccess] = (),
        secrets: Sequence[SecretProvider] = (),
        task_kinds: "Mapping[str, TaskKind] | None" = None,
        settings: EngineSettings | None = None,
        intervals: ActivityIntervals = ActivityIntervals(),
    ) -> None:
        registry = Registry(
            runners={**runners_of("plans"), **runners_of("services"), **runners_of("packages")},
            strategies=dict(strategies or {}),
            kinds=dict(step_kinds or {}),
        )
        rules = ServiceRules(
            recoverers=tuple(recoverers),
            plan_customizers=tuple(plan_customizers),
            config_validators=tuple(config_validators),
        )
        _check(registry, rules)
        self._kinds = _kinds(entity_kinds)
        self._clusters = ServedClusters(clusters, secrets, dict(task_kinds or {}))
        build_all()
        self._rules = rules
        self._placement = placement
        self._intervals = intervals
        externs = {
            registry_extern: registry,
            rules_extern: rules,
            settings_extern: settings or EngineSettings(),
        }
        self._evictions = Evictions()
        types = (*WORKFLOWS, UnknownWorkflow) if unknown else WORKFLOWS
        super().__init__(
            "temporal-plans.PlansPlugin",
            data_converter=_converter,
            workflows=list(types),
            interceptors=[PlansInterceptor(externs, guard=guard)],
            workflow_runner=lambda runner: _runner(runner, passthrough),
            workflow_failure_exception_types=[pydantic.ValidationError],
        )

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """Add the activities, which need the worker's client, and patch the SDK's runners. A worker
        of a cluster has the activities of that cluster alone."""
        if self._clusters.serves(config.get("task_queue", "")):
            return self._clusters.configure(config)
        config = super().configure_worker(config)
        client = config.get("client")
        if client is not None:
            queue = config.get("task_queue", PLANS_QUEUE)
            contents = CachedContents(content_store(client, task_queue=queue))
            placement = self._placement(client)
            config["activities"] = [
                *config.get("activities", []),
                *activities(client, self._rules, placement, contents, self._intervals),
                *fleet_activities(client, self._kinds, contents, queue),
            ]
            self._patch_runners(config, client.data_converter)
        return config

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """Patch the runners of a replayer as those of a worker."""
        config = super().configure_replayer(config)
        self._patch_runners(config, config.get("data_converter"))
        return config

    def _patch_runners(
        self, config: WorkerConfig | ReplayerConfig, converter: DataConverter | None
    ) -> None:
        patching = Patching(
            evict=self._evictions.evict,
            reads_contexts=converter is None or reads_contexts(converter),
        )
        if (runner := config.get("workflow_runner")) is not None:
            config["workflow_runner"] = patched(runner, patching)
        if (runner := config.get("unsandboxed_workflow_runner")) is not None:
            config["unsandboxed_workflow_runner"] = patched(runner, patching)

    async def run_worker(self, worker: Worker, next: Callable[[Worker], Awaitable[None]]) -> None:
        """Run the worker, and let patches evict its runs meanwhile."""
        if self._clusters.serves(worker.task_queue):
            async with self._clusters.connection(worker.task_queue):
                await next(worker)
            return
        raise_activation_timeout(worker)
        with self._evictions.of(worker):
            await super().run_worker(worker, next)


def activities(
    client: Client,
    rules: ServiceRules,
    placement: Placement,
    contents: ContentStore,
    intervals: ActivityIntervals,
) -> list[Callable[..., Any]]:
    """Return the activities of the plans queue: those that talk only to Temporal, to the placement
    and to the content store."""
    configurations = ConfigurationActivities(rules.config_validators, rules.plan_customizers)
    holds = ContentActivities(client, contents)
    offers, pods = OfferActivities(client, placement), PodActivities(client, placement)
    plans = PlanActivities(client)
    scheduled = ScheduledActivities(client, intervals.scheduled)
    upkeep = UpkeepActivities(client, placement, intervals.upkeep)
    return [
        offers.reserve,
        offers.release,
        offers.check_owners,
        configurations.check_change,
        plans.start_plan,
        plans.closed_plans,
        pods.prepare_pod,
        upkeep.retire_task,
        upkeep.release_reservation,
        upkeep.erase_task,
        upkeep.deregister,
        scheduled.start_scheduled_plan,
        scheduled.wait_for_plan,
        scheduled.stop_scheduled_plan,
        holds.hold_content,
        holds.release_content,
        holds.closed_holders,
    ]


def fleet_activities(
    client: Client, kinds: Mapping[str, EntityKind], contents: ContentStore, queue: str
) -> list[Callable[..., Any]]:
    """Return the activities of environments and products. Services of entities are on the same
    queue as these."""
    releases = Releases(client, contents)
    own = PlansClient(gateway=TemporalGateway(client, task_queue=queue))
    packages = ClientPackages(own, contents)
    declarations = DeclarationActivities(kinds, releases, packages)
    catalogues = CatalogueActivities(client)
    plans = FleetPlanActivities(client, kinds, releases)
    services = InstallationActivities(releases, ClientInstallations(own))
    installed = PackageInstallationActivities(releases, packages)
    return [
        declarations.read_environment,
        declarations.check_product,
        declarations.read_product,
        declarations.keep_payload,
        declarations.decide_environment,
        catalogues.fetch_catalogue,
        catalogues.stop_following,
        catalogues.announce,
        catalogues.known_channels,
        catalogues.announce_beginning,
        catalogues.report_canaries,
        plans.issue_plan,
        plans.plan_outcome,
        plans.report_entity,
        services.deploy_installation,
        services.await_installation,
        services.restart_installation,
        services.remove_installation,
        installed.check_package,
        installed.deploy_package,
        installed.await_package,
    ]


def _kinds(own: Sequence[EntityKind]) -> dict[str, EntityKind]:
    kinds = {one.name: one for one in ENTITY_KINDS}
    for one in own:
        if one.name in kinds:
            raise ValueError(f"entity_kinds: {one.name} is there already; choose another name")
        kinds[one.name] = one
    return kinds


def _converter(converter: DataConverter | None) -> DataConverter:
    """Return the converter with pydantic's payload converter, if it has the SDK's default one. A
    codec is kept."""
    if converter is None:
        return pydantic_data_converter
    if converter.payload_converter_class is DefaultPayloadConverter:
        return dataclasses.replace(converter, payload_converter_class=PydanticPayloadConverter)
    return converter


def _runner(runner: WorkflowRunner | None, passthrough: Sequence[str]) -> WorkflowRunner:
    """Return the runner with our modules shared with its sandbox, if it has one."""
    if runner is None:
        runner = SandboxedWorkflowRunner()
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner
    restrictions = runner.restrictions.with_passthrough_modules(*PASSTHROUGH, *passthrough)
    return dataclasses.replace(runner, restrictions=restrictions)


def _check(registry: Registry, rules: ServiceRules) -> None:
    built_in = sorted(NAMES & set(registry.strategies))
    if built_in:
        raise ValueError(f"strategies: {', '.join(built_in)} is built in; choose another name")
    for field, entries in (("strategies", registry.strategies), ("step_kinds", registry.kinds)):
        for name, entry in entries.items():
            if not callable(entry):
                raise ValueError(f"{field}: {name} is not a function (found {entry!r})")
    for field, functions in (
        ("recoverers", rules.recoverers),
        ("plan_customizers", rules.plan_customizers),
        ("config_validators", rules.config_validators),
    ):
        for function in functions:
            if not callable(function):
                raise ValueError(f"{field}: not a function (found {function!r})")
