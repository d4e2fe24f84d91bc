"""The placement that the plugin gives to its activities."""

from collections.abc import Callable
from typing import Any, cast

from temporalio import activity
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment
from temporalio.worker import WorkerConfig

from temporal_plans.activities.pools.backend import Placement
from temporal_plans.activities.pools.pool_placement import PoolPlacement
from temporal_plans.messages.pools import ReleaseInput, ReleaseResult
from temporal_plans.worker.plugin import PlansPlugin

REQUEST = ReleaseInput(pool="racks", key="hello-0")


class Racks(PoolPlacement):
    """Releases without a Pool."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.client = client
        self.released: list[ReleaseInput] = []

    async def release(self, request: ReleaseInput) -> ReleaseResult:
        self.released.append(request)
        return ReleaseResult()


def activities_of(plugin: PlansPlugin, client: Client) -> dict[str, Callable[..., Any]]:
    config = plugin.configure_worker(WorkerConfig(client=client))
    activities: list[Callable[..., Any]] = [*config.get("activities", [])]
    return {
        str(activity._Definition.must_from_callable(entry).name): entry  # pyright: ignore[reportPrivateUsage]
        for entry in activities
    }


def placement_of(entry: Callable[..., Any]) -> Placement:
    owner = cast(object, cast(Any, entry).__self__)
    return cast(Placement, getattr(owner, "placement", None) or getattr(owner, "_placement", None))


async def test_activities_use_the_placement_of_the_developer() -> None:
    client = await Client.connect("localhost:1", lazy=True)
    racks = Racks(client)
    made_for: list[Client] = []

    def placement(client: Client) -> Racks:
        made_for.append(client)
        return racks

    activities = activities_of(PlansPlugin(placement=placement), client)
    await ActivityEnvironment().run(activities["release"], REQUEST)
    assert racks.released == [REQUEST]
    assert made_for == [client]
    for name in ("reserve", "prepare_pod", "release_reservation"):
        assert placement_of(activities[name]) is racks


async def test_the_default_placement_is_the_pools_of_agents() -> None:
    client = await Client.connect("localhost:1", lazy=True)
    assert type(placement_of(activities_of(PlansPlugin(), client)["reserve"])) is PoolPlacement
