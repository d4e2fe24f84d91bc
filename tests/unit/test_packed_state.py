"""A service's state, packed and unpacked."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from temporal_plans.domain.cluster import Reservation, ReservedResource
from temporal_plans.domain.evaluation import resource_id
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.messages.packed_state import packed, unpacked
from temporal_plans.messages.service import ServiceInput, ServiceState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = 2 * 1024 * 1024
"""Bytes that Temporal takes as one input."""


def state(pods: int) -> ServiceState:
    """A service of so many pods of one task each."""
    tasks: dict[str, TaskRecord] = {}
    reservations: dict[str, Reservation] = {}
    for index in range(pods):
        name = f"web-{index}-server"
        task_id = f"shop__{name}__{index:032x}"
        tasks[name] = TaskRecord(
            task_id=task_id,
            name=name,
            pod="web",
            index=index,
            task="server",
            goal="RUNNING",
            resource_set="server",
            agent=f"rack-{index % 50}",
            hostname=f"rack-{index % 50}.example",
            config_id="3f0f3f4e-3b1d-4f7e-8d7e-2c1d2b6a8e11",
            owner="",
            step=f"shop/deploy/web/web-{index}:[server]",
            launched=NOW,
            status=TaskStatus(
                task_id=task_id, name=name, state=TaskState.RUNNING, sequence=2, at=NOW
            ),
        )
        held = f"{index:08x}-0000-4000-8000-000000000000"
        reservations[f"service/shop:web-{index}"] = Reservation(
            id=held,
            owner="service/shop",
            pod="web",
            index=index,
            agent=f"rack-{index % 50}",
            hostname=f"rack-{index % 50}.example",
            created=NOW,
            resources=(
                ReservedResource(
                    id=resource_id(UUID(held), "server", "cpus", ""),
                    set="server",
                    kind="cpus",
                    value=0.5,
                ),
            ),
        )
    return ServiceState(tasks=tasks, reservations=reservations)


def test_a_small_state_stays_readable() -> None:
    assert packed(state(10)) == ""


def test_the_same_comes_back_and_five_thousand_pods_fit() -> None:
    large = state(5000)
    text = packed(large)
    assert unpacked(text) == large
    assert len(text) < LIMIT / 2


def test_what_is_no_packed_state_is_refused() -> None:
    for text in ("hello", "~~", packed(state(2000))[:-10]):
        with pytest.raises(ValueError, match="this is no packed state"):
            unpacked(text)


def test_a_packed_input_is_carried_as_it_is() -> None:
    input = ServiceInput.model_validate(
        {"spec": {"name": "shop", "pods": []}, "packed": packed(state(2000))}
    )
    assert ServiceInput.model_validate_json(input.model_dump_json()) == input
