"""Names of the objects that keep what Pipe tasks made."""

import pytest

from temporal_plans.domain.packages.artefacts import artefacts, object_name
from temporal_plans.domain.packages.package import Operator, Package
from temporal_plans.domain.packages.plans import PackagePhase, PackagePlan, PackageStep
from temporal_plans.domain.packages.tasks import AnyTask
from temporal_plans.domain.packages.tasks.dummy import DummyTask
from temporal_plans.domain.packages.tasks.pipe import PipeFile, PipeTask


def pipe_task(name: str, *keys: str) -> PipeTask:
    files = tuple(PipeFile(file=f"/tmp/{key}", kind="Secret", key=key) for key in keys)
    return PipeTask(name=name, pod="pod.yaml", pipe=files)


def plan(phase: str, **steps: tuple[str, ...]) -> PackagePlan:
    made = tuple(PackageStep(name=name, tasks=tasks) for name, tasks in steps.items())
    return PackagePlan(phases=(PackagePhase(name=phase, steps=made),))


PACKAGE = Package(
    operator=Operator(
        name="op",
        tasks=(
            pipe_task("gen-TLS", "Cert_1", "key"),
            pipe_task("other", "key", "extra"),
            DummyTask(name="wait"),
        ),
        plans={
            "backup": plan("main", save=("other", "wait", "absent")),
            "deploy": plan("Main-1", first=("wait", "gen-TLS")),
            "update": plan("main", apply=("wait",)),
        },
    )
)


def test_the_parts_of_a_name_are_letters_and_digits_in_lower_case() -> None:
    assert object_name("My-Inst", "deploy", "Phase_1", "s", "t.x", "Key") == (
        "myinst.deploy.phase1.s.tx.key"
    )


@pytest.mark.parametrize(
    ("active", "names"),
    [
        (
            "deploy",
            {
                "Cert_1": "inst.deploy.main1.first.gentls.cert1",
                "key": "inst.deploy.main1.first.gentls.key",
                "extra": "inst.backup.main.save.other.extra",
            },
        ),
        (
            "backup",
            {
                "key": "inst.backup.main.save.other.key",
                "extra": "inst.backup.main.save.other.extra",
                "Cert_1": "inst.deploy.main1.first.gentls.cert1",
            },
        ),
        (
            "update",
            {
                "Cert_1": "inst.deploy.main1.first.gentls.cert1",
                "key": "inst.deploy.main1.first.gentls.key",
                "extra": "inst.backup.main.save.other.extra",
            },
        ),
    ],
)
def test_keys_of_the_active_plan_then_of_deploy_then_of_the_others(
    active: str, names: dict[str, str]
) -> None:
    assert artefacts(PACKAGE, active, "inst") == names


ARTEFACT = "inst.deploy.main.first"


@pytest.mark.parametrize(
    ("tasks", "keys"),
    [
        pytest.param((), {}, id="no-tasks"),
        pytest.param((DummyTask(name="wait"),), {}, id="no-pipe-tasks"),
        pytest.param((pipe_task("one", "k"),), {"k": f"{ARTEFACT}.one.k"}, id="one"),
        pytest.param(
            (pipe_task("one", "k"), DummyTask(name="wait"), pipe_task("two", "l", "m")),
            {
                name: f"{ARTEFACT}.{task}.{name}"
                for task, name in (("one", "k"), ("two", "l"), ("two", "m"))
            },
            id="two",
        ),
    ],
)
def test_keys_of_a_plan(tasks: tuple[AnyTask, ...], keys: dict[str, str]) -> None:
    steps = plan("main", first=tuple(task.name for task in tasks))
    package = Package(operator=Operator(name="op", tasks=tasks, plans={"deploy": steps}))
    assert artefacts(package, "deploy", "inst") == keys


def test_a_plan_that_the_package_does_not_have_has_the_keys_of_the_others() -> None:
    assert artefacts(PACKAGE, "nope", "inst") == artefacts(PACKAGE, "update", "inst")
