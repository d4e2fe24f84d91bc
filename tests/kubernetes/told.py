"""What people are told about an installed package, by the commands that they have."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from kubernetes.installed import Installed
from pauses import until
from temporal_plans.domain.packages.readiness import Readiness
from temporal_plans.domain.plans.explain import Explanation
from temporal_plans.domain.plans.status import Status


@dataclass(frozen=True)
class Told:
    """The output of ``show``, ``list`` and ``explain`` of a service."""

    show: str
    list: str
    explain: str


async def told(installed: Installed) -> Told:
    """Run the three commands; none may fail."""
    names = ("show", "list", "explain")
    answers = await asyncio.gather(
        *(installed.place.command(name, "-s", installed.name) for name in names)
    )
    for answer in answers:
        assert "Traceback" not in answer.both, answer
        assert not answer.err, answer
    return Told(*(answer.out for answer in answers))


async def told_of_plan(installed: Installed, status: Status, reason: str, fix: str) -> Explanation:
    """Wait until a step of the plan ``deploy`` has a status and a reason; ``show`` and ``explain``
    must have that reason, and ``explain`` what helps. Return the step's explanation."""
    client = await installed.place.client()

    async def step() -> tuple[Status, str]:
        view = await installed.view("deploy")
        (found,) = [one for phase in view.phases for one in phase.steps]
        return found.status, " ".join((found.message, *found.errors))

    await until(step, lambda found: found[0] is status and reason in found[1])
    # While a step that is DELAYED is tried again, it has no reason for a moment.
    await until(
        lambda: told(installed),
        lambda one: reason in one.show and reason in one.explain and fix in one.explain,
    )

    async def explained() -> Explanation:
        answer = await client.explain(f"{installed.name}/deploy")
        (one,) = [one for one in answer.explanations if one.step]
        return one

    return await until(explained, lambda one: one.status is status and reason in one.text)


async def told_of_objects(
    installed: Installed, reason: str, fix: str, *, explained: str = ""
) -> Readiness:
    """Wait until the readiness has a reason; with no plan at work ``show``, ``list`` and
    ``explain`` must have it (in other words ``explained``), and ``explain`` what helps."""
    readiness = await until_readiness(installed, lambda found: reason in found.message)
    answer = await told(installed)
    assert reason in answer.show, answer.show
    assert readiness.trouble.partition(":")[0] in answer.list, answer.list
    assert (explained or reason) in answer.explain, answer.explain
    assert fix in answer.explain, answer.explain
    return readiness


async def until_readiness(installed: Installed, wanted: Callable[[Readiness], object]) -> Readiness:
    """Wait until the readiness is as wanted."""
    client = await installed.place.client()

    async def look() -> Readiness | None:
        return (await client.instance(installed.name)).readiness

    found = await until(look, lambda found: found is not None and wanted(found))
    assert found is not None
    return found
