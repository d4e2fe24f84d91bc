"""Rules for services are functions: values in, values out."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import worker
from workflows.house_rules import asked_first, readiness_checked, smoke_tested

from temporal_plans.sdk import (
    ApprovalWork,
    CustomWork,
    FailedPod,
    PlanSpec,
    PodWork,
    RecoverySituation,
    ServiceSpec,
    generate,
    load_service,
    uninstall_plan,
)

WEB = Path(worker.__file__).with_name("web.yml")
VALUES: Mapping[str, str] = {"PORT": "8098", "VERSION": "1.0"}


@pytest.fixture
def web() -> ServiceSpec:
    return load_service(WEB, VALUES)


def test_a_server_without_a_readiness_check_is_refused(web: ServiceSpec, tmp_path: Path) -> None:
    assert list(readiness_checked(None, web)) == []
    unready = tmp_path / "web.yml"
    unready.write_text(WEB.read_text().partition("        readiness-check:")[0])
    [problem] = readiness_checked(web, load_service(unready, VALUES))
    assert problem.field == "pods.web.tasks.server.readiness-check"


def test_a_deployment_ends_with_a_look_at_the_page(web: ServiceSpec) -> None:
    [deploy] = generate(web)
    *launches, check = smoke_tested(deploy, web).phases
    assert tuple(launches) == deploy.phases
    assert (check.name, check.depends_on) == ("smoke-test", ("web",))
    [step] = check.steps
    assert isinstance(step.work, CustomWork)
    assert step.work.input["url"] == "http://127.0.0.1:8098/index.html"
    assert step.work.input["expect"] == "1.0"


def test_other_plans_stay_as_they_are(web: ServiceSpec) -> None:
    uninstall = uninstall_plan(web, {}, {})
    other = PlanSpec(name="other", phases=generate(web)[0].phases)
    assert smoke_tested(uninstall, web) is uninstall
    assert smoke_tested(other, web) is other


DOWN = FailedPod(pod="web", index=0, tasks=("server",), failed=("server",), permanent=True)


def test_nobodys_data_is_given_up_unasked(web: ServiceSpec) -> None:
    phases = asked_first(DOWN, RecoverySituation(service=web, records={}))
    assert phases is not None
    [phase] = phases
    ask, replace = (step.work for step in phase.steps)
    assert isinstance(ask, ApprovalWork)
    assert isinstance(replace, PodWork)
    assert replace.recovery == "permanent"


@pytest.mark.parametrize(
    "failed",
    [
        pytest.param(DOWN.but(permanent=False), id="comes-back-in-its-place"),
        pytest.param(DOWN.but(ordered=True), id="ordered-by-an-operator"),
    ],
)
def test_what_costs_nothing_or_was_ordered_goes_on(failed: FailedPod, web: ServiceSpec) -> None:
    assert asked_first(failed, RecoverySituation(service=web, records={})) is None
