"""``PlanEnvironment``: services on agents with developers' rules, time skipping, and replays."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client

from builders.services import pod, service, task
from pauses import until
from temporal_plans import build
from temporal_plans.client.errors import Refused
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.owners.rollout import Rollout
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.services.recovery.book import RecoverySituation
from temporal_plans.domain.services.recovery.failed import FailedPod
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.testing import PlanEnvironment, ReplayFailed, check_replays
from temporal_plans.workflows.plans.step_context import StepContext

pytestmark = pytest.mark.cached("the environments are its own")


def few_pods(before: ServiceSpec | None, after: ServiceSpec) -> Iterator[Reason]:
    if any(one.count > 2 for one in after.pods):
        yield Reason(field="pods.web.count", problem="at most 2")


def signed_off(plan: PlanSpec, spec: ServiceSpec) -> PlanSpec:
    if plan.name != "deploy":
        return plan
    agree = StepSpec(name="agree", work=ApprovalWork(message="Is it well?"))
    return plan.but(phases=(*plan.phases, PhaseSpec(name="sign-off", steps=(agree,))))


def named(failed: FailedPod, situation: RecoverySituation) -> list[PhaseSpec] | None:
    step = StepSpec(name=failed.name, work=failed.work())
    return [PhaseSpec(name=f"own-{failed.name}", steps=(step,))]


def web(count: int) -> ServiceSpec:
    return service(pod("web", count, task(cmd="exec sleep 1000")), name="shop")


async def test_a_service_runs_on_agents_by_the_developers_rules() -> None:
    environment = PlanEnvironment(
        agents=1,
        config_validators=[few_pods],
        plan_customizers=[signed_off],
        recoverers=[named],
        timeout=timedelta(seconds=55),
    )
    async with environment as plans:
        deploy = await plans.deploy(web(1))
        await deploy.until(Status.WAITING, phase="sign-off")
        await until(
            lambda: plans.plans.pods("shop"),
            lambda pods: [task.reached_goal for pod in pods for task in pod.tasks] == [True],
        )
        await deploy.proceed(phase="sign-off", step="agree")
        assert (await deploy.at_rest()).complete

        with pytest.raises(Refused, match=r"pods\.web\.count: at most 2"):
            await plans.deploy(web(3))
        update = await plans.deploy(web(2), rollout=Rollout(canary=1))
        await update.until(Status.WAITING, phase="web")

        await plans.plans.command_pod("shop", PodVerb.REPLACE, "web-0")

        def is_recovered(view: PlanView) -> bool:
            phases = {phase.name: phase.status for phase in view.phases}
            return phases.get("own-web-0") is Status.COMPLETE

        await plans.running("shop/recovery").until(is_recovered)


async def test_a_service_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "svc.yml"
    path.write_text(
        "name: none\npods: {web: {count: {{COUNT}}, tasks: {a: {goal: RUNNING, cmd: a,"
        " cpus: 0.1, memory: 32}}}}\n"
    )
    async with PlanEnvironment() as plans:
        assert (await (await plans.deploy(path, {"COUNT": "0"})).at_rest()).complete


@pytest.mark.parametrize("mode", ["child", "inline"])
async def test_time_is_skipped(mode: Any) -> None:
    days = build.phase("days", build.sleep(timedelta(days=1)), build.approval("go on?"))
    later = build.phase("later", build.sleep(timedelta(days=30)))
    begun = time.monotonic()
    async with PlanEnvironment(time_skipping=True) as plans:
        running = await plans.start(build.plan("long", days, later, steps=mode))
        await running.until(Status.WAITING, phase="days")
        await running.proceed(phase="days")
        view = (await running.at_rest()).view
    assert view.status is Status.COMPLETE
    assert view.started is not None
    assert view.finished is not None
    assert view.finished - view.started >= timedelta(days=30)
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("other", "reason"), [("agents", "leave out agents"), ("client", "leave out client")]
)
async def test_time_skipping_excludes_real_time(other: str, reason: str) -> None:
    given: dict[str, Any] = {"agents": 1, "client": object.__new__(Client)}
    with pytest.raises(ValueError, match=reason):
        PlanEnvironment(time_skipping=True, **{other: given[other]})


# --- replays --------------------------------------------------------------------------------------


async def soak(step: StepContext) -> str:
    await workflow.sleep(timedelta(milliseconds=1))
    return "soaked"


async def soak_longer(step: StepContext) -> str:
    await workflow.sleep(timedelta(milliseconds=1))
    await workflow.sleep(timedelta(milliseconds=1))
    return "soaked"


async def test_changed_code_is_checked_against_recorded_histories(tmp_path: Path) -> None:
    plan = build.plan("release", build.phase("run", build.custom("soak", {})))
    async with PlanEnvironment(step_kinds={"soak": soak}) as plans:
        assert (await plans.run(plan)).complete
        files = await plans.save_histories(tmp_path)
    assert sorted(files) == sorted(tmp_path.iterdir())
    assert len(files) == 3  # plan, phase, step
    assert await check_replays(tmp_path, step_kinds={"soak": soak}) == 3
    with pytest.raises(ReplayFailed) as failed:
        await check_replays(tmp_path, step_kinds={"soak": soak_longer})
    (path,) = failed.value.failures
    assert "soak" in path.name


async def test_no_histories_are_no_success(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await check_replays(tmp_path)
