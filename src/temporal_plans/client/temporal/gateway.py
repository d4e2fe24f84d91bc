"""The interface to Temporal: a few calls with typed answers and few kinds of errors."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol, TypeVar

from pydantic import BaseModel

from temporal_plans.client.temporal.executions import Execution
from temporal_plans.client.temporal.schedules import Schedules
from temporal_plans.domain.plans.explain import PendingWork
from temporal_plans.domain.plans.stuck import StuckWorkflow

Model = TypeVar("Model", bound=BaseModel)


class Gateway(Protocol):
    """The calls to Temporal that verbs need. All may raise ``ServerUnreachableError``."""

    async def describe(self, workflow_id: str) -> Execution:
        """Return the newest run; raises NoSuchWorkflow."""
        ...

    async def runs(self, workflow_id: str, limit: int) -> list[Execution]:
        """Return the runs of a workflow that the server still has, newest first; a run that
        continued as new counts as one with its successor."""
        ...

    async def list(self, query: str, limit: int) -> list[Execution]:
        """Return the newest run of each workflow that matches the query, open ones first."""
        ...

    async def query(
        self,
        workflow_id: str,
        name: str,
        result: type[Model],
        argument: BaseModel | None = None,
        *,
        open_only: bool = False,
    ) -> Model:
        """Query a workflow; raises NoSuchWorkflow, WorkerUnreachable, Refused, Unreadable and, with
        ``open_only``, WorkflowIsClosed."""
        ...

    async def update(
        self, workflow_id: str, name: str, argument: BaseModel, result: type[Model]
    ) -> Model:
        """Update a workflow, and return the answer, even if the server is unreachable for some
        seconds meanwhile.

        Raises NoSuchWorkflow, WorkflowIsClosed, WorkflowIsEnding, EndedBeforeAnswer,
        WorkerUnreachable, Refused.
        """
        ...

    async def start(
        self,
        workflow_type: str,
        workflow_id: str,
        argument: BaseModel,
        *,
        summary: str = "",
        memo: Mapping[str, str] | None = None,
    ) -> None:
        """Start a workflow on the plans queue; raises WorkflowIsOpen."""
        ...

    async def start_and_update(
        self,
        workflow_type: str,
        workflow_id: str,
        argument: BaseModel,
        name: str,
        result: type[Model],
        *,
        request: BaseModel | None = None,
    ) -> Model:
        """Start a workflow unless it is open, and update it; raises as ``update``. The update's
        argument is ``request``, by default that of the start."""
        ...

    async def input_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        """Return the input of a run, by default the newest; raises NoSuchWorkflow, Unreadable."""
        ...

    async def result_of(self, workflow_id: str, model: type[Model], run_id: str = "") -> Model:
        """Return the result of a closed workflow; raises NoSuchWorkflow, Unreadable."""
        ...

    async def ask_agent(
        self,
        agent: str,
        queue: str,
        activity: str,
        argument: BaseModel,
        result: type[Model],
        *,
        timeout: timedelta,
    ) -> Model:
        """Run an activity of an agent, on its task queue; raises AgentUnreachable, Refused."""
        ...

    async def ask_cluster(
        self,
        cluster: str,
        activity: str,
        argument: BaseModel,
        result: type[Model],
        *,
        timeout: timedelta,
    ) -> Model:
        """Run an activity of a cluster's worker, on its task queue; raises ClusterUnreachable,
        Refused."""
        ...

    async def pending_work(
        self, workflow_ids: Sequence[str]
    ) -> Mapping[str, Sequence[PendingWork]]:
        """Return the work that each open workflow has given to workers; raises Refused."""
        ...

    async def stuck(self, workflow_ids: Sequence[str], limit: int) -> Sequence[StuckWorkflow]:
        """Return those of the workflows, and of the child workflows below them, whose workflow task
        fails; at most ``limit`` workflows are examined. Raises Refused."""
        ...

    async def put_content(self, data: bytes) -> str:
        """Put bytes into the content store, and return their digest; raises Refused."""
        ...

    async def get_content(self, digest: str) -> bytes:
        """Return the bytes of a digest from the content store; raises Refused."""
        ...

    @property
    def schedules(self) -> Schedules:
        """The Temporal Schedules of plans."""
        ...
