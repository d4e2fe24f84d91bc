"""The pod that a command step runs as."""

from temporal_plans.domain.kinds.command import CommandWork
from temporal_plans.domain.services.spec import PodSpec, ResourceSet, TaskSpec
from temporal_plans.domain.tasks.goal import Goal


def command_pod(work: CommandWork, name: str) -> PodSpec:
    """Return the pod that a command step runs as: one instance, one task named ``command``."""
    return PodSpec(
        type=name,
        count=1,
        user=work.user,
        uris=work.uris,
        placement=work.placement,
        resource_sets=(ResourceSet(id="command", cpus=work.cpus, memory=work.memory),),
        tasks=(
            TaskSpec(
                name="command", goal=Goal.ONCE, cmd=work.cmd, resource_set="command", env=work.env
            ),
        ),
    )
