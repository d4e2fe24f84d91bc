"""Talking to services and plans from outside: ``PlansClient`` and what it answers and raises.

client = PlansClient(await connect())
await client.command("hello-world/deploy", Verb.CONTINUE, Command(phase="world"))
"""

from temporal_plans.client.connection import (
    AnswerLostError,
    Connection,
    ConnectionSettingsError,
    ServerUnreachableError,
    connect,
)
from temporal_plans.client.errors import (
    AgentUnreachable,
    Ambiguous,
    NotFound,
    PlanNotFound,
    PlansError,
    PoolNotFound,
    Refused,
    ScheduleNotFound,
    ServiceNotFound,
    TaskNotFound,
    Unreadable,
    WorkerUnreachable,
)
from temporal_plans.client.plan_run import PlanRun, Trouble
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.schedules import Overlap, Timetable
from temporal_plans.client.services import Deployment
from temporal_plans.domain.pod_verb import PodVerb

__all__ = [
    "AgentUnreachable",
    "Ambiguous",
    "AnswerLostError",
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
    "TaskNotFound",
    "Timetable",
    "Trouble",
    "Unreadable",
    "WorkerUnreachable",
    "connect",
]
