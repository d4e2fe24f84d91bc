"""Changes of environments that need an approval, and commands that need none."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from pauses import until
from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.fleets.plans import CommandType
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.plans.commands import Result
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.fleets.change_requests import (
    ApproveChange,
    ChangeRequest,
    ChangeRequests,
    HoldChange,
    RejectChange,
)
from temporal_plans.messages.fleets.commands import FleetCommand
from temporal_plans.messages.fleets.products import RecallRelease
from temporal_plans.messages.fleets.reports import EntityFacts, ReportFacts
from temporal_plans.messages.fleets.requests import DeleteRequest
from temporal_plans.messages.fleets.stops import OverrideWindows, Suppress
from workflows.fleet_kit import (
    Environment,
    Product,
    entities,
    new_environment,
    new_product,
    run_count,
)
from workflows.plan_kit import Kit, kit
from workflows.test_fleets import installed, refused


def guarded(product: Product, *changes: str, **more: Any) -> dict[str, Any]:
    """A document of an environment some of whose changes need an approval."""
    rules = {"changes": changes, "approvers": ["eve", "bob", "ann"], **more}
    return {**entities(product), "settings": {"approvals": rules}}


async def requests(environment: Environment) -> list[ChangeRequest]:
    return list((await environment.query("requests", ChangeRequests)).requests)


async def place(plans: Kit, *changes: str, **more: Any) -> tuple[Product, Environment]:
    """A product at 1.0.0 in an environment with approvals."""
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(guarded(product, *changes, **more))
    await product.publish("1.0.0")
    await environment.entity().until_at("1.0.0")
    return product, environment


async def test_a_change_waits_for_its_approval_with_what_would_be_planned(plans: Kit) -> None:
    product, environment = await place(plans, "entities", "config")
    other = guarded(product, "entities", "config")
    other["entities"] = entities(product, "web", "shop")["entities"]
    said = await environment.apply(other)
    assert said.result is Result.UNDER_WAY
    assert said.message == "change request change-1 waits for 1 approval, because of entities"
    assert [row.entity for row in (await environment.status()).rows] == ["web"]
    [one] = await requests(environment)
    assert (one.by, one.reason, one.status) == ("ann", "wanted", "pending")
    [planned] = one.planned
    assert (planned.entity, planned.standing.intent, planned.standing.target) == (
        "shop",
        "INSTALL",
        "1.0.0",
    )
    own = await refused(environment.update("approve", ApproveChange(id="change-1", by="ann")))
    assert "asked for the change, and may not approve it" in str(own)
    stranger = ApproveChange(id="change-1", by="mallory")
    why = await refused(environment.update("approve", stranger))
    assert str(why) == (
        'by: is not among the approvers (found "mallory"); ask one of: eve, bob, ann'
    )
    approval = ApproveChange(id="change-1", by="eve", reason="as planned")
    done = await environment.update("approve", approval)
    assert done.message.startswith("change-1 is approved and applied: ")
    await environment.entity("shop").until_at("1.0.0")
    [one] = await requests(environment)
    assert (one.status, one.wanted, [a.by for a in one.approvals]) == ("applied", {}, ["eve"])
    assert (await environment.log())[-3:] == [
        ("apply", "ann", "under-way"),
        ("approve change-1", "eve", "done"),
        ("apply", "ann", "done"),
    ]
    again = await refused(environment.update("approve", approval))
    assert "is applied" in str(again)


async def test_what_needs_no_approval_is_done_at_once(plans: Kit) -> None:
    product, environment = await place(plans, "settings")
    document = guarded(product, "settings")
    document["entities"] = entities(product, "web", "shop")["entities"]
    assert (await environment.apply(document)).result is Result.DONE
    await environment.entity("shop").until_at("1.0.0")


async def test_constraints_hold_for_a_change_that_needs_no_approval(plans: Kit) -> None:
    """T205"""
    product, environment = await place(plans, "settings")
    await environment.update("suppress", Suppress(reason="an incident", by="eve"))
    document = guarded(product, "settings")
    document["entities"] = entities(product, "web", "shop")["entities"]
    assert (await environment.apply(document)).result is Result.DONE
    row = await environment.entity("shop").until_code("SUPPRESSED")
    assert row.standing.target == "1.0.0"


async def test_approvals_are_removed_by_approval_only(plans: Kit) -> None:
    product, environment = await place(plans, "overrides")
    said = await environment.apply(entities(product))
    assert "because of overrides" in said.message


async def test_several_must_approve_each_once(plans: Kit) -> None:
    product, environment = await place(plans, "entities", needed=2)
    await environment.apply(
        guarded(product, "entities", needed=2) | entities(product, uninstall=True)
    )
    [one] = await requests(environment)
    assert one.kinds == ("entities",)
    first = await environment.update("approve", ApproveChange(id=one.id, by="eve"))
    assert first.message == f"{one.id} is approved, and needs 1 more"
    twice = await refused(environment.update("approve", ApproveChange(id=one.id, by="eve")))
    assert "has approved it already" in str(twice)
    await environment.update("approve", ApproveChange(id=one.id, by="bob"))
    await environment.entity().until_at(None)


async def test_the_author_may_approve_where_the_environment_says_so(plans: Kit) -> None:
    product, environment = await place(plans, "entities", own=True)
    await environment.apply(guarded(product, "entities", own=True) | entities(product, "x"))
    done = await environment.update("approve", ApproveChange(id="change-1", by="ann"))
    assert done.result is Result.DONE


async def test_a_rejected_change_is_not_made_and_its_author_may_withdraw(plans: Kit) -> None:
    product, environment = await place(plans, "entities")
    for by, reason, status in (("eve", "not now", "rejected"), ("ann", "", "withdrawn")):
        await environment.apply(guarded(product, "entities") | entities(product, "web", "shop"))
        one = (await requests(environment))[0]
        if by == "eve":
            silent = await refused(environment.update("reject", RejectChange(id=one.id, by=by)))
            assert str(silent) == "reason: is missing; say why"
        await environment.update("reject", RejectChange(id=one.id, by=by, reason=reason))
        one = (await requests(environment))[0]
        assert one.status == status
        assert one.closed is not None
        assert (one.closed.by, one.closed.reason) == (by, reason)
    assert [row.entity for row in (await environment.status()).rows] == ["web"]


async def test_a_held_change_is_not_made_before_it_is_released(plans: Kit) -> None:
    """T206"""
    product, environment = await place(plans, "entities")
    await environment.apply(guarded(product, "entities") | entities(product, "web", "shop"))
    await environment.update("hold", HoldChange(id="change-1", by="bob", reason="the fair"))
    said = await environment.update("approve", ApproveChange(id="change-1", by="eve"))
    assert said.message == "change-1 is approved, and held"
    assert len((await environment.status()).rows) == 1
    await environment.update("hold", HoldChange(id="change-1", held=False, by="bob"))
    await environment.entity("shop").until_at("1.0.0")


async def test_a_change_for_an_environment_that_is_another_by_now_is_refused(plans: Kit) -> None:
    product, environment = await place(plans, "entities")
    for name in ("a", "b"):
        await environment.apply(guarded(product, "entities") | entities(product, "web", name))
    await environment.update("approve", ApproveChange(id="change-1", by="eve"))
    why = await refused(environment.update("approve", ApproveChange(id="change-2", by="eve")))
    assert why.code == Code.SUPERSEDED
    assert "reject it, and apply the document again" in str(why)
    await environment.update("reject", RejectChange(id="change-2", by="ann"))


async def test_stops_windows_and_deletion_may_need_approvals(plans: Kit) -> None:
    _, environment = await place(plans, "overrides", "suppressions", "deletion")
    stop = Suppress(entity="web", id="incident", by="ann", reason="an incident")
    await environment.update("suppress", stop)
    window = OverrideWindows(duration=timedelta(hours=1), by="ann", reason="a fix")
    await environment.update("override", window)
    await environment.update("delete", DeleteRequest(by="ann", reason="the end"))
    status = await environment.status()
    assert (status.suppressions, status.overrides) == ((), ())
    subjects = [one.subject for one in await requests(environment)]
    assert subjects == [
        f"delete environment {environment.name}",
        "open the windows of all entities for no-downtime changes",
        "suppress web",
    ]
    for number in (1, 2):
        await environment.update("approve", ApproveChange(id=f"change-{number}", by="eve"))
    status = await environment.status()
    assert [one.id for one in status.suppressions] == ["incident"]
    assert [one.by for one in status.overrides] == ["ann"]
    await environment.update("approve", ApproveChange(id="change-3", by="eve"))
    await plans.client.get_workflow_handle(environment.id).result()


async def test_an_approved_change_that_cannot_be_made_any_more_fails(plans: Kit) -> None:
    _, environment = await place(plans, "suppressions")
    stop = Suppress(id="incident", by="ann", reason="an incident")
    for _ in range(2):
        await environment.update("suppress", stop)
    await environment.update("approve", ApproveChange(id="change-1", by="eve"))
    why = await refused(environment.update("approve", ApproveChange(id="change-2", by="eve")))
    assert "is in use" in str(why)
    assert (await requests(environment))[0].status == "failed"


async def test_requests_outlive_continue_as_new_and_expire(
    clocks: WorkflowEnvironment,
) -> None:
    async with kit(clocks.client.service_client.config.target_host) as plans:
        product, environment = new_product(plans), new_environment(plans)
        rules = guarded(product, "entities", expire_after="2d")
        await environment.apply(rules, history_limit=50)
        await environment.apply(rules | entities(product, "web", "shop"))
        for number in range(8):
            facts = {"web": EntityFacts(health_message=str(number))}
            await environment.update("report", ReportFacts(entities=facts))
        await until(lambda: run_count(plans, environment.id), lambda count: count > 1)
        handle = clocks.client.get_workflow_handle(environment.id)
        await clocks.fast_forward(handle, timedelta(days=2) - timedelta(minutes=1))
        [one] = await requests(environment)
        assert one.status == "pending"
        await clocks.fast_forward(handle, timedelta(minutes=2))

        async def status() -> str:
            return (await requests(environment))[0].status

        await until(status, lambda found: found == "expired")
        assert ("expire change-1", "", "done") in await environment.log()
        late = await refused(environment.update("approve", ApproveChange(id="change-1", by="eve")))
        assert "is expired" in str(late)


CONTRADICTIONS = [
    pytest.param({"needed": 4}, "settings.approvals.needed: is more than there are", id="needed"),
    pytest.param({"expire_after": "0s"}, "settings.approvals.expire-after: must be", id="expiry"),
    pytest.param({"expire_after": "400d"}, "at most 366 days", id="long"),
]


@pytest.mark.parametrize(("rules", "text"), CONTRADICTIONS)
async def test_approvals_that_contradict_themselves_are_refused(
    plans: Kit, rules: dict[str, Any], text: str
) -> None:
    environment = new_environment(plans)
    document = guarded(new_product(plans), "entities", **rules)
    assert text in str(await refused(environment.apply(document)))


# --- break-glass ----------------------------------------------------------------------------------


async def test_a_command_passes_everything_but_the_running_plan_and_is_kept(plans: Kit) -> None:
    """T130: a suppression, a closed window, an entity in error, a recalled target, and approvals
    for all changes hold nothing back."""
    product, environment = await installed(plans, "1.0.0", "1.1.0")
    closed: dict[str, Any] = {"never": {"time_zone_name": "UTC", "time_intervals": []}}
    kinds = ["settings", "config", "entities", "overrides", "suppressions", "deletion"]
    settings: dict[str, Any] = {
        "maintenance_windows": closed,
        "downtime_window": "never",
        "no_downtime_window": "never",
        "approvals": {"changes": kinds},
    }
    await environment.update("suppress", Suppress(by="eve", reason="an incident"))
    await environment.apply({**entities(product), "settings": settings})
    recall = Recall(id="bad", start="1.0.0", single=True)
    await product.update("recall", RecallRelease(recall=recall, by="eve", reason="it leaks"))
    error = {"web": EntityFacts(health=Health.ERROR)}
    await environment.update("report", ReportFacts(entities=error))
    request = FleetCommand(
        entity="web", command=CommandType.ENFORCE_VERSION, version="1.0.0", by="eve"
    )
    silent = await refused(environment.update("command", request))  # T139
    assert str(silent) == "reason: is missing; say why"
    said = await environment.update("command", request.but(reason="1.1.0 is worse"))
    assert said.result is Result.DONE
    second = await refused(environment.update("command", request.but(reason="once more")))  # T133
    assert "wait for its end" in str(second)
    await environment.entity().until_at("1.0.0")
    [last, *_] = await environment.entity().plans()
    assert (last.intent, last.status, last.by, last.reason) == (
        "BREAK_GLASS",
        "SUCCEEDED",
        "eve",
        "1.1.0 is worse",
    )
    assert ("enforce-version web", "eve", "done") in await environment.log()
