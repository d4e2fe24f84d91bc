"""The client of services and plans: ``PlansClient``, with its answers and its errors.

client = PlansClient(await connect())
await client.command("hello-world/deploy", Verb.CONTINUE, Command(phase="world"))
"""

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
