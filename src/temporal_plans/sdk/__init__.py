"""The public API for developers. Everything else in ``temporal_plans`` is private and may change
with any release.

    from temporalio.worker import Worker
    from temporal_plans.sdk import PlansPlugin, StepContext, connect

    async def soak(step: StepContext) -> None:
        step.say("watching the error rate")
        ...

    client = await connect(plugins=[PlansPlugin(step_kinds={"soak": soak})])
    await Worker(client, task_queue="plans").run()

``docs/sdk.md`` describes every name, with examples. The module ``build`` makes plans in Python, the
module ``testing`` tests them.
"""

from importlib.metadata import PackageNotFoundError, version

from temporal_plans import build, testing
from temporal_plans.activities.fleets.kinds.record import EntityChange, EntityKind, KindPlan
from temporal_plans.client import (
    AgentNotFound,
    AgentUnreachable,
    Ambiguous,
    AnswerLostError,
    ClusterUnreachable,
    Connection,
    ConnectionSettingsError,
    Deployment,
    NotFound,
    Overlap,
    PlanNotFound,
    PlanRun,
    PlansClient,
    PlansError,
    PodVerb,
    PoolNotFound,
    Refused,
    ScheduleNotFound,
    ServerUnreachableError,
    ServiceNotFound,
    StandsStill,
    TaskNotFound,
    Timetable,
    Unreadable,
    WatchProblem,
    WorkerUnreachable,
    connect,
)
from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.command import CommandWork
from temporal_plans.domain.kinds.custom import CustomWork
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.kinds.workflow import WorkflowWork
from temporal_plans.domain.plans.commands import Command, Outcome, Result, Verb
from temporal_plans.domain.plans.plan import ParameterSpec, PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.record import Element, Select
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.services.change_check import ConfigValidator
from temporal_plans.domain.services.generation import generate
from temporal_plans.domain.services.plan_customizer import PlanCustomizer
from temporal_plans.domain.services.recovery.book import Recoverer, RecoverySituation
from temporal_plans.domain.services.recovery.failed import FailedPod
from temporal_plans.domain.services.removal import uninstall_plan
from temporal_plans.domain.services.spec import PodSpec, ServiceSpec, TaskSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.values.model import Duration, Value
from temporal_plans.domain.values.refusal import Reason, Refusal, SpecError
from temporal_plans.loading.plans import load_plan, load_plan_text
from temporal_plans.loading.services.service import load_service, load_service_text
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.workflows.plans.registry import StepKind
from temporal_plans.workflows.plans.step_context import StepContext

try:
    __version__ = version("temporal-plans")
except PackageNotFoundError:  # a bare checkout
    __version__ = ""

__all__ = [
    "ActivityWork",
    "AgentNotFound",
    "AgentUnreachable",
    "Ambiguous",
    "AnswerLostError",
    "ApprovalWork",
    "ClusterUnreachable",
    "Command",
    "CommandWork",
    "ConfigValidator",
    "Connection",
    "ConnectionSettingsError",
    "CustomWork",
    "Deployment",
    "Duration",
    "Element",
    "EntityChange",
    "EntityKind",
    "FailedPod",
    "Goal",
    "Health",
    "KindPlan",
    "NotFound",
    "Outcome",
    "Overlap",
    "ParameterSpec",
    "PhaseSpec",
    "PlanCustomizer",
    "PlanNotFound",
    "PlanRun",
    "PlanSpec",
    "PlansClient",
    "PlansError",
    "PlansPlugin",
    "PodSpec",
    "PodVerb",
    "PodWork",
    "PoolNotFound",
    "Reason",
    "Recoverer",
    "RecoverySituation",
    "Refusal",
    "Refused",
    "Result",
    "ScheduleNotFound",
    "Select",
    "ServerUnreachableError",
    "ServiceNotFound",
    "ServiceSpec",
    "SleepWork",
    "SpecError",
    "StandsStill",
    "Status",
    "StepContext",
    "StepKind",
    "StepSpec",
    "StrategySpec",
    "TaskNotFound",
    "TaskSpec",
    "Timetable",
    "Unreadable",
    "Value",
    "Verb",
    "WatchProblem",
    "WorkerUnreachable",
    "WorkflowWork",
    "__version__",
    "build",
    "connect",
    "generate",
    "load_plan",
    "load_plan_text",
    "load_service",
    "load_service_text",
    "testing",
    "uninstall_plan",
]
