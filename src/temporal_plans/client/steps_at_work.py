"""What the steps of a plan that are at work have given to workers, and whether these take it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from temporal_plans.client.errors import Refused
from temporal_plans.client.gateway import Gateway, NoSuchWorkflow
from temporal_plans.client.verbs import together
from temporal_plans.domain.explain import Cause, Explanation, Explanations, GivenWork

_MOST = 50
"""Steps that Temporal is asked about."""


async def with_work(gateway: Gateway, plan_id: str, explanations: Explanations) -> Explanations:
    """The same with the work of the steps at work, and WORKER as the cause where none takes it."""
    at_work = [one for one in explanations.explanations if one.step and one.cause is Cause.RUNNING]
    at_work = at_work[:_MOST]
    own = await _given(gateway, {_path(one): f"{plan_id}/{_path(one)}" for one in at_work})
    inline = [one for one in at_work if _path(one) not in own]
    phases = await _given(gateway, {one.phase: f"{plan_id}/{one.phase}" for one in inline})
    known = own | _of_inline_steps(plan_id, inline, phases)
    now = datetime.now(UTC)
    told = [_with(one, known.get(_path(one), ()), now) for one in explanations.explanations]
    told += [_with(one, one.work, now) for one in _of_phases(inline, phases)]
    return explanations.but(explanations=tuple(told))


async def _given(
    gateway: Gateway, workflow_ids: Mapping[str, str]
) -> dict[str, Sequence[GivenWork]]:
    """Without those that there are not: the workflows of inline steps."""

    async def of(workflow_id: str) -> Sequence[GivenWork] | None:
        try:
            return await gateway.given_work(workflow_id)
        except NoSuchWorkflow:
            return None
        except Refused:  # it is not for everybody to know
            return ()

    found = zip(workflow_ids, await together(map(of, workflow_ids.values())), strict=True)
    return {name: given for name, given in found if given is not None}


def _of_inline_steps(
    plan_id: str, inline: Sequence[Explanation], phases: Mapping[str, Sequence[GivenWork]]
) -> dict[str, Sequence[GivenWork]]:
    """Their workflow is their phase's. What it has given is theirs by the ids of child workflows;
    activities have none, and are a step's when it is the only one at work."""
    at_work = Counter(one.phase for one in inline)
    return {
        _path(one): [
            work
            for work in phases.get(one.phase, ())
            if work.id.startswith(f"{plan_id}/{_path(one)}/")
            or (not work.id and at_work[one.phase] == 1)
        ]
        for one in inline
    }


def _of_phases(
    inline: Sequence[Explanation], phases: Mapping[str, Sequence[GivenWork]]
) -> Iterator[Explanation]:
    """The activities of phases in which several inline steps are at work."""
    for phase, given in phases.items():
        steps = [one for one in inline if one.phase == phase]
        activities = tuple(work for work in given if not work.id)
        if len(steps) > 1 and activities:
            yield steps[0].but(step="", text="for the inline steps at work:", work=activities)


def _with(explanation: Explanation, work: Sequence[GivenWork], now: datetime) -> Explanation:
    waits = any(one.waits_for_a_worker(now) for one in work)
    return explanation.but(work=tuple(work), cause=Cause.WORKER if waits else explanation.cause)


def _path(explanation: Explanation) -> str:
    return f"{explanation.phase}/{explanation.step}"
