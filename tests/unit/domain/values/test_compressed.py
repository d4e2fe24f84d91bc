"""Values that are written compressed when they are large."""

import base64
import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from uuid import UUID

import pytest
from pydantic import ValidationError

from temporal_plans.domain.cluster.evaluation import resource_id
from temporal_plans.domain.cluster.reservations import Reservation, ReservedResource
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.domain.values.compressed import EXPANDED_LIMIT
from temporal_plans.domain.values.model import WITH_DEFAULTS
from temporal_plans.messages.plan_views import PhaseView, PlanView, StepView
from temporal_plans.messages.plans import PlanInput, PlanResult
from temporal_plans.messages.services import ServiceInput, ServiceState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = 2 * 1024 * 1024
"""Bytes that Temporal takes as one input."""


def _packed(text: bytes) -> str:
    return base64.b85encode(zlib.compress(text)).decode()


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
            queue=f"agent/rack-{index % 50}",
            hostname=f"rack-{index % 50}.example",
            config_id="3f0f3f4e-3b1d-4f7e-8d7e-2c1d2b6a8e11",
            owner="",
            step=f"shop/deploy/web/web-{index}:[server]",
            launched=NOW,
            status=TaskStatus(
                task_id=task_id,
                name=name,
                state=TaskState.RUNNING,
                sequence=2,
                at=NOW,
                agent=f"rack-{index % 50}",
                queue=f"agent/rack-{index % 50}",
            ),
        )
        held = f"{index:08x}-0000-4000-8000-000000000000"
        reservations[f"service/shop:web-{index}"] = Reservation(
            id=held,
            owner="service/shop",
            pod="web",
            index=index,
            agent=f"rack-{index % 50}",
            queue=f"agent/rack-{index % 50}",
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


def carried(state: ServiceState) -> ServiceInput:
    return ServiceInput(spec=ServiceSpec(name="shop", pods=()), state=state)


def test_a_small_value_is_written_as_it_is() -> None:
    written = carried(state(10)).model_dump_json()
    assert json.loads(written).keys() == {"spec", "state"}


def test_a_large_value_is_written_compressed_and_read_again() -> None:
    large = carried(state(8000))
    written = large.model_dump_json()
    assert json.loads(written).keys() == {"compressed"}
    assert len(written) < LIMIT / 2
    assert ServiceInput.model_validate_json(written) == large
    assert ServiceInput.model_validate(json.loads(written)) == large


def test_a_part_is_compressed_with_its_whole() -> None:
    view = PlanView(
        id="p", name="p", strategy="serial", status=Status.PENDING, phases=(phase(4000),)
    )
    written = json.loads(PlanResult(status=Status.PENDING, view=view).model_dump_json())
    assert written.keys() == {"compressed"}
    inside = json.loads(zlib.decompress(base64.b85decode(written["compressed"])))
    assert len(inside["view"]["phases"][0]["steps"]) == 4000


def test_programs_read_plain_json() -> None:
    view = PlanView(
        id="p", name="p", strategy="serial", status=Status.PENDING, phases=(phase(4000),)
    )
    assert json.loads(view.model_dump_json(context=WITH_DEFAULTS))["name"] == "p"
    assert view.model_dump()["name"] == "p"


def phase(steps: int, message: Callable[[int], str] = str) -> PhaseView:
    return PhaseView(
        id="f",
        name="f",
        strategy="serial",
        status=Status.PENDING,
        steps=tuple(
            StepView(
                id=f"{i:036}", name=f"s{i}", kind="noop", status=Status.PENDING, message=message(i)
            )
            for i in range(steps)
        ),
    )


def plan_view(phase: PhaseView) -> PlanView:
    return PlanView(id="p", name="p", strategy="serial", status=Status.PENDING, phases=(phase,))


def test_texts_that_do_not_fit_are_cut() -> None:
    random = Random(1)
    texts = {i: random.randbytes(500).hex() for i in range(8000)}
    view = plan_view(phase(8000, texts.__getitem__))
    written = view.model_dump_json()
    assert len(written) < LIMIT
    read = PlanView.model_validate_json(written)
    assert [step.name for step in read.phases[0].steps] == [f"s{i}" for i in range(8000)]
    cut = read.phases[0].steps[7].message
    assert cut.endswith("...")
    assert texts[7].startswith(cut.removesuffix("..."))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(7, "not a text", id="a number"),
        pytest.param("\u00e4", "can't be expanded", id="not ASCII"),
        pytest.param("hello", "can't be expanded", id="not deflated"),
        pytest.param(_packed(b"{}" * 99)[:-9], "is cut off", id="cut off"),
        pytest.param(_packed(b" " * (EXPANDED_LIMIT + 1)), "expands to more than", id="a bomb"),
        pytest.param(_packed(b"[]"), "Input should be a valid dict", id="no object"),
        pytest.param(_packed(b'{"nme": 1}'), "Extra inputs", id="an unknown key"),
        pytest.param(_packed(b'{"compressed": "hello"}'), "compressed already", id="twice"),
    ],
)
def test_what_can_not_be_expanded_is_refused(text: object, why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        PlanView.model_validate({"compressed": text})


def test_a_compressed_input_is_checked_as_any_other() -> None:
    fields = {"name": "p", "phases": {"a": {"steps": {"x": {"sleep": 1}}}}}
    packed = _packed(json.dumps(fields).encode())
    assert PlanInput.model_validate({"compressed": packed}) == PlanInput.model_validate(fields)
