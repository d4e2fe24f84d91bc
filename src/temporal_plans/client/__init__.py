"""The client of services and plans: ``PlansClient``, with its answers and its errors.

client = PlansClient(await connect())
await client.command("hello-world/deploy", Verb.CONTINUE, Command(phase="world"))

The names are imported when they are asked for: an agent and most commands import modules below this
package, and would wait for all verbs.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from temporal_plans.client.errors import (
        AgentNotFound,
        AgentUnreachable,
        Ambiguous,
        ClusterUnreachable,
        NotFound,
        PlanNotFound,
        PlansError,
        PoolNotFound,
        Refused,
        ScheduleNotFound,
        ServiceNotFound,
        StandsStill,
        TaskNotFound,
        Unreadable,
        WorkerUnreachable,
    )
    from temporal_plans.client.plans_client import PlansClient
    from temporal_plans.client.reading.plan_run import PlanRun, WatchProblem
    from temporal_plans.client.temporal.connection import (
        AnswerLostError,
        Connection,
        ConnectionSettingsError,
        ServerUnreachableError,
        connect,
    )
    from temporal_plans.client.temporal.schedules import Overlap, Timetable
    from temporal_plans.client.verbs.services import Deployment
    from temporal_plans.domain.services.pod_verb import PodVerb

__all__ = [
    "AgentNotFound",
    "AgentUnreachable",
    "Ambiguous",
    "AnswerLostError",
    "ClusterUnreachable",
    "Connection",
    "ConnectionSettingsError",
    "Deployment",
    "NotFound",
    "Overlap",
    "PlanNotFound",
    "PlanRun",
    "PlansClient",
    "PlansError",
    "PodVerb",
    "PoolNotFound",
    "Refused",
    "ScheduleNotFound",
    "ServerUnreachableError",
    "ServiceNotFound",
    "StandsStill",
    "TaskNotFound",
    "Timetable",
    "Unreadable",
    "WatchProblem",
    "WorkerUnreachable",
    "connect",
]

_MODULES = {
    "AgentNotFound": "temporal_plans.client.errors",
    "AgentUnreachable": "temporal_plans.client.errors",
    "Ambiguous": "temporal_plans.client.errors",
    "AnswerLostError": "temporal_plans.client.temporal.connection",
    "ClusterUnreachable": "temporal_plans.client.errors",
    "Connection": "temporal_plans.client.temporal.connection",
    "ConnectionSettingsError": "temporal_plans.client.temporal.connection",
    "Deployment": "temporal_plans.client.verbs.services",
    "NotFound": "temporal_plans.client.errors",
    "Overlap": "temporal_plans.client.temporal.schedules",
    "PlanNotFound": "temporal_plans.client.errors",
    "PlanRun": "temporal_plans.client.reading.plan_run",
    "PlansClient": "temporal_plans.client.plans_client",
    "PlansError": "temporal_plans.client.errors",
    "PodVerb": "temporal_plans.domain.services.pod_verb",
    "PoolNotFound": "temporal_plans.client.errors",
    "Refused": "temporal_plans.client.errors",
    "ScheduleNotFound": "temporal_plans.client.errors",
    "ServerUnreachableError": "temporal_plans.client.temporal.connection",
    "ServiceNotFound": "temporal_plans.client.errors",
    "StandsStill": "temporal_plans.client.errors",
    "TaskNotFound": "temporal_plans.client.errors",
    "Timetable": "temporal_plans.client.temporal.schedules",
    "Unreadable": "temporal_plans.client.errors",
    "WatchProblem": "temporal_plans.client.reading.plan_run",
    "WorkerUnreachable": "temporal_plans.client.errors",
    "connect": "temporal_plans.client.temporal.connection",
}
"""Where the names are."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
