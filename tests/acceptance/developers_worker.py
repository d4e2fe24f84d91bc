"""A worker with the code of a developer's own: run in place of ``temporal-plan worker``.

Its recoverer and customizer are for services whose names begin with ``own``.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from temporalio.worker import Worker

from temporal_plans.client import connect
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.services.recovery.book import RecoverySituation
from temporal_plans.domain.services.recovery.failed import FailedPod
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.worker.plugin import PlansPlugin


def own_recovery(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec] | None:
    """A hello pod that is to be replaced has a phase of its own."""
    own = situation.service.name.startswith("own")
    if not own or failed.pod != "hello" or not failed.permanent:
        return None
    step = StepSpec(name=f"hello-{failed.index}", work=failed.work())
    return [PhaseSpec(name="custom-hello-recovery", steps=(step,))]


def own_plans(plan: PlanSpec, spec: ServiceSpec) -> PlanSpec:
    """World pods from the last to the first, an uninstall likewise; nothing is taken away before
    somebody has agreed."""
    if not spec.name.startswith("own"):
        return plan
    if plan.name == "decommission":
        agree = StepSpec(name="custom_decommission_step", work=ApprovalWork())
        return plan.but(
            phases=tuple(phase.but(steps=(agree, *phase.steps)) for phase in plan.phases)
        )
    if plan.phases[0].name == "kill-tasks":
        return plan.but(phases=plan.phases[::-1])
    return plan.but(
        phases=tuple(
            phase.but(steps=phase.steps[::-1]) if phase.name == "world" else phase
            for phase in plan.phases
        )
    )


async def main() -> None:
    plugin = PlansPlugin(recoverers=[own_recovery], plan_customizers=[own_plans])
    client = await connect(plugins=[plugin])
    with ThreadPoolExecutor() as executor:
        await Worker(client, task_queue="plans", activity_executor=executor).run()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
