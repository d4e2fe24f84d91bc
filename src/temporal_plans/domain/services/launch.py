"""Messages between a step that launches tasks of a pod and its service."""

from datetime import datetime

from pydantic import Field

from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.statuses import TaskRef
from temporal_plans.domain.values.model import CompactValue, Name, WorkflowId

INDEX_LIMIT = 1_000_000
"""The largest index of a pod instance: it is a part of names."""


class LaunchTarget(CompactValue):
    """Argument of the Service's query ``launch_target``: how to launch these ``tasks`` of a pod.
    ``config_id``: the configuration to launch; empty: the target."""

    pod: str
    index: int
    tasks: tuple[str, ...] = ()
    config_id: str = ""


class LaunchPlace(CompactValue):
    """Answer: the configuration and the place. ``replaces``: the id of the reservation to replace
    by another one, because the pod must move; empty: it stays. ``in_use``: the resource sets of the
    pod's tasks that keep running beside the launched ones."""

    config_id: str
    spec: ServiceSpec
    replaces: str = ""
    in_use: tuple[str, ...] = ()


class LaunchIntent(CompactValue):
    """Argument of the Service's update ``record_launch``, made before anything is started.

    ``owner`` is the workflow that gets the statuses of these tasks. ``asked`` is when the step
    requested it: a launch that the step requested later is not replaced, however late this one
    comes. ``reserved`` is the time of the Pool's answer: if the agent was lost since, the update is
    refused with the code AGENT_LOST, and the step asks the Pool again; the error's second detail is
    whether the Service has kept that reservation from an earlier launch.
    """

    owner: WorkflowId
    step: str = Field(max_length=3000)
    pod: Name
    index: int = Field(ge=0, le=INDEX_LIMIT)
    config_id: Name
    reservation: Reservation
    tasks: tuple[TaskLaunch, ...] = Field(max_length=1000)
    asked: datetime | None = None
    reserved: datetime | None = None


class LaunchOrder(CompactValue):
    """Answer of ``record_launch``: the tasks to kill before the launch, and the names of the tasks
    to launch paused (an operator's override, behaviour 6.8). ``config_id``: the recorded
    configuration of this launch; empty: the requested one."""

    kill: tuple[TaskRef, ...] = ()
    paused: tuple[str, ...] = ()
    config_id: str = ""
