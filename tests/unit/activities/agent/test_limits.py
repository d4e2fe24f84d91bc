"""Resource limits: rlimits and cgroups, as they are decided."""

import resource
from pathlib import Path
from typing import Literal

import pytest

from temporal_plans.activities.agent.host.preparation import task_of
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.sandbox.cgroups import (
    CgroupLimits,
    CgroupsUnavailable,
    CgroupTree,
    limits_of,
    open_cgroups,
)
from temporal_plans.activities.agent.sandbox.rlimits import plan_limits
from temporal_plans.domain.services.backend_support import unsupported
from temporal_plans.domain.services.spec import (
    NetworkSpec,
    PodSpec,
    ResourceLimits,
    ResourceSet,
    RLimit,
    ServiceSpec,
    TaskSpec,
    TransportEncryption,
)
from temporal_plans.domain.tasks.goal import Goal

HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
WITHIN = RLimit(name="RLIMIT_NOFILE", soft=10, hard=20)
ABOVE = RLimit(name="RLIMIT_NOFILE", soft=10, hard=HARD + 1)
ALL_ABOVE = RLimit(name="RLIMIT_NOFILE", soft=HARD + 1, hard=HARD + 1)
UNLIMITED = RLimit(name="RLIMIT_NOFILE")


@pytest.mark.parametrize(
    ("asked", "policy", "can_raise", "soft", "hard", "noted"),
    [
        pytest.param(WITHIN, "require", False, 10, 20, False, id="within"),
        pytest.param(ABOVE, "require", True, 10, HARD + 1, False, id="raised"),
        pytest.param(UNLIMITED, "require", True, -1, -1, False, id="unlimited"),
        pytest.param(ABOVE, "lower", False, 10, HARD, True, id="hard lowered"),
        pytest.param(ALL_ABOVE, "lower", False, HARD, HARD, True, id="both lowered"),
        pytest.param(UNLIMITED, "lower", False, HARD, HARD, True, id="unlimited lowered"),
    ],
)
def test_rlimits(
    asked: RLimit,
    policy: Literal["require", "lower"],
    can_raise: bool,
    soft: int,
    hard: int,
    noted: bool,
) -> None:
    planned = plan_limits((asked,), policy=policy, can_raise=can_raise)
    assert planned.limits == (("RLIMIT_NOFILE", soft, hard),)
    assert bool(planned.note) == noted


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        pytest.param(ABOVE, "above the agent's own hard limit", id="out of reach"),
        pytest.param(RLimit(name="RLIMIT_X", soft=1, hard=1), "has no such limit", id="unknown"),
    ],
)
def test_rlimits_that_cannot_be_had_are_refused(asked: RLimit, message: str) -> None:
    with pytest.raises(TaskRefused, match=f"rlimits.{asked.name}: .*{message}"):
        plan_limits((asked,), policy="require", can_raise=False)


@pytest.mark.parametrize(
    ("resources", "weight", "quota", "memory"),
    [
        pytest.param(ResourceSet(id="a", cpus=0.5, memory=2), "50", "50000", 2 << 20, id="request"),
        pytest.param(
            ResourceSet(
                id="a", cpus=1, memory=2, limits=ResourceLimits(cpus=2.5, memory="unlimited")
            ),
            "100",
            "250000",
            "max",
            id="limits",
        ),
        pytest.param(
            ResourceSet(id="a", cpus=1, memory=2, limits=ResourceLimits(cpus="unlimited")),
            "100",
            "max",
            2 << 20,
            id="unlimited cpus",
        ),
        pytest.param(ResourceSet(id="a", cpus=0.001), "1", "1000", "max", id="the kernel's least"),
        pytest.param(ResourceSet(id="a", cpus=500), "10000", "50000000", "max", id="the most"),
    ],
)
def test_cgroup_limits(resources: ResourceSet, weight: str, quota: str, memory: int | str) -> None:
    assert limits_of(resources) == CgroupLimits(
        cpu_weight=weight, cpu_max=f"{quota} 100000", memory_max=str(memory)
    )


def test_a_cgroup_is_made_and_removed(tmp_path: Path) -> None:
    path = CgroupTree(tmp_path).create("t1", limits_of(ResourceSet(id="a", cpus=1, memory=1)))
    assert {file.name: file.read_text() for file in path.iterdir()} == {
        "cpu.weight": "100",
        "cpu.max": "100000 100000",
        "memory.max": "1048576",
    }
    CgroupTree(tmp_path).remove("other")  # what isn't there is fine


def test_a_place_without_cgroups_is_told(tmp_path: Path) -> None:
    with pytest.raises(CgroupsUnavailable, match="nowhere"):
        open_cgroups(tmp_path / "nowhere", "a1")


def test_all_that_processes_cannot_give_is_named_at_once() -> None:
    encryption = (TransportEncryption(name="c", type="TLS"),)
    task = TaskSpec(
        name="t", goal=Goal.ONCE, cmd="", resource_set="m", transport_encryption=encryption
    )
    pod = PodSpec(
        type="p",
        count=1,
        tasks=(task,),
        resource_sets=(ResourceSet(id="m", cpus=1, memory=1),),
        networks=(NetworkSpec(name="dcos"),),
        ipc_mode="PRIVATE",
    )
    with pytest.raises(TaskRefused) as refused:
        task_of(pod, "t")
    told = str(refused.value)
    for field in ("p.networks.dcos", "p.ipc-mode", "p.tasks.t.transport-encryption"):
        assert f"pods.{field}: " in told


TASK = TaskSpec(name="t", goal=Goal.ONCE, cmd="", resource_set="m")
PLAIN = PodSpec(
    type="p",
    count=1,
    tasks=(TASK,),
    resource_sets=(ResourceSet(id="m", cpus=1, memory=1),),
)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(PLAIN.but(networks=(NetworkSpec(name="host"),)), id="networks"),
        pytest.param(PLAIN.but(seccomp_unconfined=True), id="seccomp"),
        pytest.param(PLAIN.but(share_pid_namespace=True), id="pid"),
    ],
)
def test_a_deployment_and_an_agent_judge_alike(pod: PodSpec) -> None:
    """What is deployed can be launched, and what would be refused at launch is not deployed."""
    assert unsupported(ServiceSpec(name="s", pods=(pod,))) == ()
    assert task_of(pod, "t") == TASK
