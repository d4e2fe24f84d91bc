"""The plans of an instance, and the inputs of their runs."""

from collections.abc import Mapping, MutableMapping
from typing import NamedTuple

from temporalio import workflow

from temporal_plans.domain.kinds.package_removal import PackageRemovalWork
from temporal_plans.domain.owners.configurations import ConfigurationBook
from temporal_plans.domain.packages.configuration import PackageConfiguration
from temporal_plans.domain.packages.dependencies import KeptHash
from temporal_plans.domain.packages.installation import Installation
from temporal_plans.domain.packages.plan_specs import plan_specs
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.strategies import CANARIES, keeping_dependencies, record_of
from temporal_plans.domain.plans.strategies.dependency import DEPENDENCY
from temporal_plans.domain.plans.strategies.record import Dependencies
from temporal_plans.domain.plans.strategies.serial import SERIAL
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.messages.owners import PlanBegin, PlanRecord
from temporal_plans.messages.packages import PackageRun, installed_package
from temporal_plans.messages.plans import EngineInput, OwnerContext, PlanInput

REMOVAL = "remove-objects"
"""The phase behind those of the package's own plan ``cleanup``."""


class Removal(NamedTuple):
    """How the plan ``cleanup`` removes the instance. ``volumes``: with the claims of its pods;
    ``own_plan``: after the package's own phases."""

    volumes: bool = False
    own_plan: bool = True


class InstancePlans:
    """Makes the plans of the configuration in force. ``uids`` is what identifies the newest run of
    each plan in its objects; every run gets another."""

    def __init__(
        self,
        name: str,
        configs: ConfigurationBook[PackageConfiguration],
        uids: MutableMapping[str, str],
    ) -> None:
        self._name = name
        self._configs = configs
        self._uids = uids

    @property
    def startable(self) -> Mapping[str, PlanSpec]:
        """The plans that people may start, by name."""
        installation = self._configs.target.installation
        specs = plan_specs(installation.package, installation.switches)
        return {name: spec for name, spec in specs.items() if name != CLEANUP}

    def make(
        self,
        begin: PlanBegin,
        record: PlanRecord,
        backoff: Backoff,
        removal: Removal,
        hashes: tuple[KeptHash, ...] = (),
    ) -> PlanInput:
        """Return the input of a plan that starts now. ``hashes`` as in PackageRun."""
        installation = self._configs.target.installation
        uid = self._uids[record.name] = str(workflow.uuid4())
        operator = installation.package.operator
        run = PackageRun(
            package=installed_package(self._name, installation),
            uid=uid,
            kubernetes_version=operator.kubernetes_version,
            namespace_manifest=operator.namespace_manifest,
            create_namespace=installation.create_namespace,
            hashes=hashes,
            installation=workflow.info().first_execution_run_id,
        )
        context = OwnerContext(
            owner=self._name,
            workflow_id=workflow.info().workflow_id,
            plan=record.name,
            run=record.run,
            starter=workflow.info().first_execution_run_id,
            priority=record.priority,
            part=run.model_dump(mode="json"),
            follows_rest=True,
        )
        spec = self._spec(record.name, installation, removal)
        return PlanInput.model_construct(
            **{field: getattr(spec, field) for field in PlanSpec.model_fields},
            engine=EngineInput(context=context, first=(begin.first,) if begin.first else ()),
            arguments=begin.arguments,
            backoff=backoff,
            by=begin.by,
            reason=begin.reason,
        )

    def _spec(self, plan: str, installation: Installation, removal: Removal) -> PlanSpec:
        specs = plan_specs(installation.package, installation.switches)
        if plan == CLEANUP:
            return cleanup_plan(specs.get(CLEANUP), removal)
        return specs[plan]


def cleanup_plan(own: PlanSpec | None, removal: Removal) -> PlanSpec:
    """Return the plan that uninstalls: the package's own phases, and when all of them are complete
    the removal of every object that is left."""
    phases = own.phases if own is not None and removal.own_plan else ()
    names = tuple(phase.name for phase in phases)
    name = REMOVAL
    while name in names:
        name += "-2"
    work = PackageRemovalWork(volumes=removal.volumes)
    last = PhaseSpec(name=name, depends_on=names, steps=(StepSpec(name="objects", work=work),))
    spec = own or PlanSpec(name=CLEANUP)
    strategy = _with_a_last_phase(spec.strategy, len(phases))
    in_order = record_of(strategy.name) is SERIAL
    return spec.but(
        phases=(*phases, last.but(depends_on=()) if in_order else last),
        strategy=strategy,
        on_error="stop",
        parameters=None,
    )


def _with_a_last_phase(spec: StrategySpec, count: int) -> StrategySpec:
    """Return a strategy for some phases and one that waits for all of them, without a gate."""
    if not count:
        return StrategySpec()
    record = record_of(spec.name)
    if record is None or record.dependencies is Dependencies.IGNORED:
        name = keeping_dependencies(spec.name)
        spec = spec.but(name=name) if name != spec.name else StrategySpec(name=DEPENDENCY.name)
    return spec.but(proceeds=min(spec.proceeds, count)) if spec.name in CANARIES else spec
