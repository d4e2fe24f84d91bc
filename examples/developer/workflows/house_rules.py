"""Rules for all services of this worker, which registers them with ``PlansPlugin``.

They may run inside workflows, so they depend on their arguments only: no clock, no files.
"""

from collections.abc import Iterator, Sequence

from temporal_plans.sdk import (
    ApprovalWork,
    CustomWork,
    FailedPod,
    Goal,
    PhaseSpec,
    PlanSpec,
    PodWork,
    Reason,
    RecoverySituation,
    ServiceSpec,
    StepSpec,
    StrategySpec,
)
from workflows.http_check import HttpCheck

SERIAL = StrategySpec(name="serial")


def readiness_checked(before: ServiceSpec | None, after: ServiceSpec) -> Iterator[Reason]:
    """A configuration validator: a task with the goal RUNNING needs a readiness check. Without one
    a deployment continues with the next pod before this one answers."""
    for pod in after.pods:
        for task in pod.tasks:
            if task.goal is Goal.RUNNING and task.readiness_check is None:
                yield Reason(
                    field=f"pods.{pod.type}.tasks.{task.name}.readiness-check",
                    problem="is missing: every server needs one",
                    fix="add a readiness check",
                )


def smoke_tested(plan: PlanSpec, service: ServiceSpec) -> PlanSpec:
    """A plan customizer: a deployment ends with a check of the pages of its servers.

    The environment variables URL and VERSION of a task have the address and content of its page.
    The plan of an uninstall is called ``deploy``, too, but launches no pods.
    """
    steps = tuple(_page_checks(service))
    launches = any(isinstance(step.work, PodWork) for phase in plan.phases for step in phase.steps)
    if plan.name != "deploy" or not launches or not steps:
        return plan
    others = tuple(phase.name for phase in plan.phases)
    check = PhaseSpec(name="smoke-test", strategy=SERIAL, depends_on=others, steps=steps)
    return plan.but(phases=(*plan.phases, check))


def _page_checks(service: ServiceSpec) -> Iterator[StepSpec]:
    for pod in service.pods:
        for task in pod.tasks:
            if url := task.env.get("URL"):
                check = HttpCheck(url=url, expect=task.env.get("VERSION", ""))
                work = CustomWork(type="http-check", input=check.model_dump(mode="json"))
                yield StepSpec(name=f"{pod.type}-{task.name}", work=work)


def asked_first(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec] | None:
    """A recoverer: a replacement loses the pod's data, so it waits for an approval first."""
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
