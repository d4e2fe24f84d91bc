"""What the service hello-world answers to the command line."""

from builders.pools import reservation
from builders.tasks import record
from temporal_plans.domain.cluster.reservations import ReservedResource
from temporal_plans.messages.services import (
    PodView,
)
from unit.fake_gateway import Answer, FakeGateway

SERVICE = "service/hello-world"


def answering(gateway: FakeGateway, **answers: Answer) -> None:
    gateway.workflows[SERVICE].answers.update(answers)


def pod_view(**changes: object) -> PodView:
    launched = record("hello", 0, "server", config="ccc", task_id="t__1", step="")
    volume = ReservedResource(id="v", set="", kind="volume", value=100, name="data")
    held = reservation("hello", 0, owner=SERVICE, resources=(volume,))
    view = PodView(
        name="hello-0",
        type="hello",
        index=0,
        agent="a1",
        reservation=held,
        tasks=(launched,),
    )
    return view.but(**changes)
