"""The decisions that environments recorded, made once more from nothing.

A run of an environment begins with its whole state: the snapshot, and how every entity stands by
the last decision about it. Environments decide again only what a change concerns; what they say
must be what a decision about everything says. Where an activity decided, the history has what it
was given and what it answered, which must be the same to the last character.
"""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from temporalio.api.common.v1 import Payloads
from temporalio.client import Client, WorkflowExecution
from temporalio.converter import DataConverter

from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Outcome
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.standing import EntityStanding, Pass, passed, standing
from temporal_plans.messages.fleets.environments import (
    DecideEnvironment,
    EnvironmentInput,
    EnvironmentState,
)
from temporal_plans.messages.fleets.names import environment_id
from temporal_plans.workflows.fleets import book

Value = TypeVar("Value")


@dataclass
class Recorded:
    """By environment: ``snapshots`` were compared, ``undecided`` ones were not: something had
    changed in them, and was yet to be decided. ``answers`` of activities were compared."""

    snapshots: Counter[str] = field(default_factory=Counter[str])
    undecided: Counter[str] = field(default_factory=Counter[str])
    answers: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])

    async def read(self, client: Client, name: str) -> None:
        """All runs of an environment."""
        id, gateway = environment_id(name), TemporalGateway(client, task_queue="plans")
        async for run in client.list_workflows(f"WorkflowId = '{id}'"):
            where = f"{id} run {run.run_id}"
            input = await gateway.input_of(id, EnvironmentInput, run.run_id)
            if input.state is not None:
                self._compare(name, input.state, run.start_time, where)
            async for request, answer in _decided(client, run):
                self.answers[name] += 1
                if decided_again(request).model_dump_json() != answer.model_dump_json():
                    self.faults.append(f"{where}: the decision at {request.now} is another now")

    def __str__(self) -> str:
        return (
            f"decided again: {_text(self.snapshots)} snapshots between runs"
            f" ({_text(self.undecided)} were not decided then),"
            f" {_text(self.answers)} answers of activities"
        )

    def _compare(self, name: str, state: EnvironmentState, at: datetime, where: str) -> None:
        wakeup = state.next_wakeup
        if state.again is None or (wakeup is not None and wakeup <= at):
            self.undecided[name] += 1
            return
        self.snapshots[name] += 1
        for decision in decide(book.snapshot_of(state), at).decisions:
            entity = decision.entity.partition("/")[2]
            said = state.standings.get(entity)
            found = standing(decision, said)
            if said is None or not _same(said, found):
                self.faults.append(f"{where}: {entity} was {said}, and is {found} from nothing")


def decided_again(request: DecideEnvironment) -> Pass:
    """What the activity answers to a request."""
    snapshot = Snapshot(environment=request.environment, products=request.products)
    return passed(snapshot, decide(snapshot, request.now), request.standings)


def _same(said: EntityStanding, found: EntityStanding) -> bool:
    """A state that is recorded as decided has nothing that was issued since."""
    return said.outcome is not Outcome.ISSUE and said.same_as(found)


def _text(counts: Counter[str]) -> str:
    found = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    return found or "no"


async def _decided(
    client: Client, run: WorkflowExecution
) -> AsyncIterator[tuple[DecideEnvironment, Pass]]:
    """What the activity was asked in a run, with its answers."""
    asked: dict[int, Payloads] = {}
    converter = client.data_converter
    async for event in client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        if scheduled.activity_type.name == "decide_environment":
            asked[event.event_id] = scheduled.input
        completed = event.activity_task_completed_event_attributes
        if completed.scheduled_event_id in asked:
            payloads = asked[completed.scheduled_event_id]
            request = await _value(converter, payloads, DecideEnvironment)
            yield request, await _value(converter, completed.result, Pass)


async def _value(converter: DataConverter, payloads: Payloads, kind: type[Value]) -> Value:
    [value] = await converter.decode(payloads.payloads, [kind])
    assert isinstance(value, kind)
    return value
