"""From a pod to what it needs of an agent, and what a requirement must look like.

The first launch of any of a pod's tasks reserves for the whole pod (reference 9.3): which tasks a
step launches counts only where others of the pod run on meanwhile. There is no executor between an
agent and its tasks, hence no overhead of one is added (reference 9.3, stage 5).
"""

import math
from collections.abc import Iterator, Sequence

from temporal_plans.domain.cluster import PortWant, Requirement, SetWant, VolumeWant
from temporal_plans.domain.offer import MAX_PORT
from temporal_plans.domain.placement import PlacementError, parse_placement
from temporal_plans.domain.service import PodSpec, PortSpec, VolumeSpec


class RequirementError(ValueError):
    """A requirement that no agent could ever satisfy, whatever it offers.

    ``problems`` are all that is wrong with it, each naming the field, the value and what would do.
    """

    def __init__(self, key: str, problems: Sequence[str]) -> None:
        super().__init__(f"requirement {key}: " + "; ".join(problems))
        self.key = key
        self.problems = tuple(problems)


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
    """What one instance of a pod needs: each of its resource sets once, in the file's order, and
    the pod's own volumes as the set "".

    Ports are always ports of the host: agents run processes, not containers (reference 9.6).
    ``permanent`` asks for a new place; ``replaces`` then names the reservation to give up, so that
    asking again does not move the pod again. ``launches``: sets of the tasks to be launched;
    ``in_use``: of those that run on meanwhile.
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


def check_requirement(requirement: Requirement) -> None:
    """Raise RequirementError with everything that is wrong with a requirement by itself."""
    problems = list(_problems(requirement))
    if problems:
        raise RequirementError(requirement.key, problems)


def _port(port: PortSpec) -> PortWant:
    return PortWant(name=port.name, port=port.port, ranges=port.ranges)


def _volume(volume: VolumeSpec) -> VolumeWant:
    return VolumeWant(
        path=volume.path, size=volume.size, type=volume.type, profiles=volume.profiles
    )


def _problems(requirement: Requirement) -> Iterator[str]:
    for field in ("owner", "pod", "notify"):
        if not getattr(requirement, field):
            yield f"{field} is empty; it must name a workflow or a pod"
    if requirement.index < 0:
        yield f"index {requirement.index} must be 0 or more"
    try:
        parse_placement(requirement.placement)
    except PlacementError as error:
        yield str(error)
    ids = [wanted.id for wanted in requirement.sets]
    for repeated in sorted({set_id for set_id in ids if ids.count(set_id) > 1}):
        yield f"sets has the id {repeated!r} twice; ids must differ"
    for wanted in requirement.sets:
        yield from _set_problems(wanted)


def _set_problems(wanted: SetWant) -> Iterator[str]:
    where = f"sets.{wanted.id or '(pod)'}"
    for field in ("cpus", "gpus", "memory"):
        amount = getattr(wanted, field)
        if not math.isfinite(amount) or amount < 0:
            yield f"{where}.{field} {amount} must be a number of 0 or more"
    names = [port.name for port in wanted.ports]
    for repeated in sorted({name for name in names if names.count(name) > 1}):
        yield f"{where}.ports has the name {repeated!r} twice; names must differ"
    for port in wanted.ports:
        if not 0 <= port.port <= MAX_PORT:
            yield f"{where}.ports.{port.name} {port.port} must be 0 (any) to {MAX_PORT}"
    paths = [volume.path for volume in wanted.volumes]
    for repeated in sorted({path for path in paths if paths.count(path) > 1}):
        yield f"{where}.volumes has the path {repeated!r} twice; paths must differ"
    for volume in wanted.volumes:
        if volume.size <= 0:
            yield f"{where}.volumes.{volume.path} size {volume.size} must be more than 0 MB"
