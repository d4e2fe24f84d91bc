"""The requirement of a pod instance.

The first launch of any of a pod's tasks reserves for the whole pod (behaviour 9.3): which tasks a
step launches matters only while other tasks of the pod keep running. There is no executor between
an agent and its tasks, hence no overhead of one is added (behaviour 9.3, stage 5).
"""

from collections.abc import Sequence

from temporal_plans.domain.cluster.requirements import PortWant, Requirement, SetWant, VolumeWant
from temporal_plans.domain.services.spec import PodSpec, PortSpec, VolumeSpec


def requirement_for(
    pod: PodSpec,
    index: int,
    *,
    owner: str,
    notify: str,
    permanent: bool = False,
    replaces: str = "",
    launches: Sequence[str] = (),
    in_use: Sequence[str] = (),
) -> Requirement:
    """Return the requirement of one instance of a pod: each of its resource sets once, in the
    file's order, and the pod's own volumes as the set "".

    Ports are always ports of the host: agents run processes, not containers (behaviour 9.6).
    ``permanent`` requests a new place; ``replaces`` then is the reservation to release, so that a
    repeated request does not move the pod again. ``launches``: sets of the tasks to be launched;
    ``in_use``: sets of the tasks that keep running.
    """
    sets = [
        SetWant(
            id=resources.id,
            cpus=resources.cpus,
            gpus=resources.gpus,
            memory=resources.memory,
            ports=tuple(_port(port) for port in resources.ports),
            volumes=tuple(_volume(volume) for volume in resources.volumes),
        )
        for resources in pod.resource_sets
    ]
    if pod.volumes:
        sets.insert(0, SetWant(id="", volumes=tuple(_volume(volume) for volume in pod.volumes)))
    return Requirement(
        owner=owner,
        pod=pod.type,
        index=index,
        notify=notify,
        sets=tuple(sets),
        placement=pod.placement,
        permanent=permanent,
        replaces=replaces,
        launches=tuple(launches),
        in_use=tuple(in_use),
    )


def _port(port: PortSpec) -> PortWant:
    return PortWant(name=port.name, port=port.port, ranges=port.ranges)


def _volume(volume: VolumeSpec) -> VolumeWant:
    return VolumeWant(
        path=volume.path, size=volume.size, type=volume.type, profiles=volume.profiles
    )
