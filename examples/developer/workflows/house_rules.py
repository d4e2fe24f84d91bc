"""Rules for all services that our worker looks after. The worker gives them to ``PlansPlugin``.

They are asked inside workflows, so they look at nothing but their arguments: no clock, no files.
"""

from collections.abc import Iterator, Sequence

from temporal_plans.domain.errors import Problem
from temporal_plans.domain.plan import (
    ApprovalWork,
    CustomWork,
    PhaseSpec,
    PlanSpec,
    PodWork,
    StepSpec,
    StrategySpec,
)
from temporal_plans.domain.recovery import FailedPod
from temporal_plans.domain.recovery_book import RecoverySituation
from temporal_plans.domain.service import Goal, ServiceSpec
from workflows.http_check import HttpCheck

SERIAL = StrategySpec(name="serial")


def readiness_checked(before: ServiceSpec | None, after: ServiceSpec) -> Iterator[Problem]:
    """A configuration validator: what runs for ever says when it is ready. Without that a
    deployment goes on to the next pod while this one may not even answer."""
    for pod in after.pods:
        for task in pod.tasks:
            if task.goal is Goal.RUNNING and task.readiness_check is None:
                yield Problem(
                    path=f"pods.{pod.type}.tasks.{task.name}.readiness-check",
                    message="is missing: our services say when they are ready",
                    fix="add one",
                )


def smoke_tested(plan: PlanSpec, service: ServiceSpec) -> PlanSpec:
    """A plan customizer: a deployment is over when the pages of its servers are as they should be.

    Servers say with their environment variables URL and VERSION where that is and what it says.
    An uninstall is called ``deploy`` too, but launches no pods.
    """
    steps = tuple(_page_checks(service))
    launches = any(isinstance(step.work, PodWork) for phase in plan.phases for step in phase.steps)
    if plan.name != "deploy" or not launches or not steps:
        return plan
    everything = tuple(phase.name for phase in plan.phases)
    check = PhaseSpec(name="smoke-test", strategy=SERIAL, depends_on=everything, steps=steps)
    return plan.but(phases=(*plan.phases, check))


def _page_checks(service: ServiceSpec) -> Iterator[StepSpec]:
    for pod in service.pods:
        for task in pod.tasks:
            if url := task.env.get("URL"):
                check = HttpCheck(url=url, expect=task.env.get("VERSION", ""))
                work = CustomWork(type="http-check", input=check.model_dump(mode="json"))
                yield StepSpec(name=f"{pod.type}-{task.name}", work=work)


def asked_first(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec] | None:
    """A recoverer: a replacement costs the pod's data, so somebody is asked first."""
    if not failed.permanent or failed.ordered:
        return None
    question = f"Give up the data of {failed.name}? {failed.why}"
    return [
        PhaseSpec(
            name=f"replace-{failed.name}",
            strategy=SERIAL,
            steps=(
                StepSpec(name="agree", work=ApprovalWork(message=question)),
                StepSpec(name=failed.name, work=failed.work()),
            ),
        )
    ]
