"""Services of entities, driven by a client that answers from memory."""

from collections.abc import Mapping
from typing import cast

import pytest

from builders.tasks import record
from temporal_plans.client.errors import Refused, ServiceNotFound
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.messages.services import PodCommandResult, PodView
from temporal_plans.worker.installations import ClientInstallations


class Pods:
    """A client of one service. ``calls``: what was asked, in order."""

    def __init__(self, *views: PodView) -> None:
        self._views = {view.name: view for view in views}
        self.calls: list[str] = []

    async def pods(self, service: str) -> tuple[PodView, ...]:
        if not self._views:
            raise ServiceNotFound(service)
        return tuple(self._views.values())

    async def launches(self, _service: str, pod: str) -> dict[str, str]:
        return {one.name: one.task_id for one in self._views[pod].tasks}

    async def command_pod(
        self, _service: str, verb: PodVerb, pod: str, *, by: str, reason: str
    ) -> PodCommandResult:
        self.calls.append(f"{verb} {pod} by {by}: {reason}")
        tasks = tuple(one.name for one in self._views[pod].tasks)
        return PodCommandResult(
            pod=pod, tasks=tasks, outcome=Outcome(result=Result.DONE, message="")
        )

    async def wait_for_pod(self, _service: str, pod: str, replaced: Mapping[str, str]) -> None:
        self.calls.append(f"wait for {pod} after {sorted(replaced.values())}")


def installations(pods: Pods) -> ClientInstallations:
    return ClientInstallations(cast(PlansClient, pods))


async def test_pods_are_restarted_one_after_the_other() -> None:
    """A pod that leaves is left alone."""
    pods = Pods(
        PodView(
            name="web-0",
            type="web",
            index=0,
            tasks=(record("web", 0, "server"), record("web", 0, "init", goal=Goal.ONCE)),
        ),
        PodView(name="web-1", type="web", index=1, tasks=(record("web", 1, "server"),)),
        PodView(name="job-0", type="job", index=0, tasks=()),
        PodView(name="web-2", type="web", index=2, wanted=False),
    )
    await installations(pods).restart("prod.web", "plan 2")
    assert pods.calls == [
        "restart_pod web-0 by fleet: plan 2",
        "wait for web-0 after ['svc__web-0-init__1', 'svc__web-0-server__1']",
        "restart_pod web-1 by fleet: plan 2",
        "wait for web-1 after ['svc__web-1-server__1']",
        "restart_pod job-0 by fleet: plan 2",
    ]


async def test_a_service_that_is_not_there_is_not_restarted() -> None:
    with pytest.raises(Refused, match=r"prod\.web"):
        await installations(Pods()).restart("prod.web", "plan 2")
