"""Environments and products on a real server: what is published is installed."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from acceptance.fleet_soak.recorded import Recorded
from pauses import PATIENCE, until
from temporal_plans.activities.fleets.kinds.record import EntityChange, EntityKind, KindPlan
from temporal_plans.activities.mechanics.shared_calls import SharedCalls
from temporal_plans.client.errors import Refused
from temporal_plans.client.temporal.workflow_errors import (
    NoSuchWorkflow,
    WorkflowIsClosed,
    WorkflowIsEnding,
)
from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.fleets.environment import Connection, EnvironmentFacts
from temporal_plans.domain.fleets.plans import CommandType, EndStatus
from temporal_plans.domain.fleets.recalls import Recall, RollOff
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.plans.commands import Result
from temporal_plans.domain.plans.plan import PhaseSpec, StepSpec
from temporal_plans.domain.values.refusal import Refusal
from temporal_plans.messages.fleets.catalogues import Announcement, Catalogue
from temporal_plans.messages.fleets.commands import CancelPlans, FleetCommand, ResolvePlan
from temporal_plans.messages.fleets.names import fleet_plan_id
from temporal_plans.messages.fleets.payloads import ReleasePayload
from temporal_plans.messages.fleets.products import (
    FollowProduct,
    ProductInput,
    RecallRelease,
    RevertRecall,
)
from temporal_plans.messages.fleets.reports import EntityFacts, ReportFacts
from temporal_plans.messages.fleets.requests import DeleteRequest
from temporal_plans.messages.fleets.stops import OverrideWindows, Suppress, Unsuppress
from temporal_plans.worker.plugin import PlansPlugin
from workflows.fleet_kit import (
    Environment,
    Product,
    entities,
    new_environment,
    new_product,
    plan_files,
    run_count,
)
from workflows.plan_kit import Kit, kit


async def installed(plans: Kit, *versions: str) -> tuple[Product, Environment]:
    """A product, and an environment with its last version installed."""
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(entities(product))
    for version in versions:
        await product.publish(version)
        await environment.entity().until_at(version)
    return product, environment


async def refused(work: Awaitable[object]) -> Refusal:
    with pytest.raises(Refused) as caught:
        await work
    return caught.value.refusal


async def test_a_release_that_is_published_is_installed_in_both_environments(plans: Kit) -> None:
    product = new_product(plans)
    one, other = new_environment(plans), new_environment(plans)
    await product.apply()
    for environment in (one, other):
        await environment.apply(entities(product))
        assert (await environment.entity().until_code("CHANNEL_EMPTY")).standing.installed is None
    await product.publish("1.0.0")
    for environment in (one, other):
        await environment.entity().until_at("1.0.0")
    assert plans.recorder.done.count(f"{product.name} 1.0.0 install") == 2
    assert ("publish 1.0.0", "ann", "done") in await product.log()
    assert ("apply", "ann", "done") in await one.log()


async def test_a_newer_release_is_an_upgrade_by_its_own_plan_with_the_four_phases(
    plans: Kit,
) -> None:
    product, environment = await installed(plans, "1.0.0", "1.1.0")
    assert f"{product.name} 1.1.0 upgrade" in plans.recorder.done
    [newest, first] = await environment.entity().plans()
    assert (newest.intent, newest.from_version, newest.to) == ("UPGRADE", "1.0.0", "1.1.0")
    assert (newest.status, first.status) == ("SUCCEEDED", "SUCCEEDED")
    handle = plans.client.get_workflow_handle(newest.plan_id, result_type=dict)
    phases = [one["name"] for one in (await handle.result())["view"]["phases"]]
    assert phases == ["prepare", "change", "verify", "report"]


async def test_a_failing_plan_suppresses_its_entity_and_is_rolled_back(plans: Kit) -> None:
    product, environment = await installed(plans, "1.0.0")
    web = environment.entity()
    plans.recorder.failures[f"{product.name} 1.1.0 upgrade"] = 1
    await product.publish("1.1.0")
    failed = await web.until_plan("FAILED")
    assert (failed.intent, failed.to) == ("UPGRADE", "1.1.0")
    assert any("is broken" in error for error in failed.errors)
    rollback = await web.until_plan("SUCCEEDED", number=failed.number + 1)
    assert (rollback.intent, rollback.to) == ("ROLLBACK", "1.0.0")
    assert f"{product.name} 1.1.0 rollback" in plans.recorder.done
    row = await web.until_code("SUPPRESSED")
    assert (row.standing.installed, row.standing.target) == ("1.0.0", "1.1.0")
    [stop] = (await environment.status()).suppressions
    assert stop.origin == "failed-plan"
    await environment.update("unsuppress", Unsuppress(id=stop.id, by="bob"))
    await web.until_at("1.1.0")


async def test_a_recalled_release_is_rolled_off_and_stays_off_until_reverted(plans: Kit) -> None:
    product, environment = await installed(plans, "1.0.0", "1.1.0")
    recall = Recall(
        id="bad",
        start="1.1.0",
        single=True,
        roll_off=RollOff(allow_downgrade=True, minimum_release="1.0.0"),
    )
    await product.update("recall", RecallRelease(recall=recall, by="eve", reason="it leaks"))
    row = await environment.entity().until_at("1.0.0")
    assert (await environment.entity().plans())[0].intent == "RECALL_ROLL_OFF"
    assert row.standing.outcome == "NO_WORK"
    await product.update("revert_recall", RevertRecall(id="bad", by="eve"))
    await environment.entity().until_at("1.1.0")


async def test_a_suppression_stops_plans_until_it_is_over(plans: Kit) -> None:
    product, environment = await installed(plans, "1.0.0")
    await environment.update("suppress", Suppress(id="long", by="eve"))
    await product.publish("1.1.0")
    row = await environment.entity().until_code("SUPPRESSED")
    assert row.standing.target == "1.1.0"
    decision = await environment.entity().explain()
    assert [one.id for one in decision.constraints if one.state == "FAILED"] == ["K15"]
    end = datetime.now(UTC) + timedelta(seconds=2)
    await environment.update("suppress", Suppress(id="short", end=end, by="eve"))
    await environment.update("unsuppress", Unsuppress(id="long", by="eve"))
    await environment.entity().until_at("1.1.0")  # nobody does anything
    [upgrade, _] = await environment.entity().plans()
    assert upgrade.issued_at is not None
    assert upgrade.issued_at >= end


async def test_it_waits_in_peace_for_a_catalogue_while_the_time_of_a_decision_passes(
    plans: Kit,
) -> None:
    product, environment = await installed(plans, "1.0.0")
    silent = new_product(plans)
    begun = ProductInput(name=silent.name)
    held = await plans.client.start_workflow(
        "Product", begun, id=silent.id, task_queue=f"no worker of {silent.name}"
    )
    await environment.update("suppress", Suppress(by="eve"))
    await product.publish("1.1.0")
    await environment.entity().until_code("SUPPRESSED")
    wakeup = datetime.now(UTC) + timedelta(seconds=2)
    await environment.update("suppress", Suppress(id="short", end=wakeup, by="eve"))
    assert (await environment.status()).next_wakeup in (wakeup, None)  # None: it is over
    other = {"other": entities(silent)["entities"]["web"]}
    await environment.apply({"entities": {**entities(product)["entities"], **other}})
    await until(lambda: _past(wakeup))
    await environment.update("unsuppress", Unsuppress(id="manual-1", by="eve"))
    assert any(silent.name in one for one in (await environment.status()).problems)
    await held.terminate()
    await environment.entity().until_at("1.1.0")


async def _past(time: datetime) -> bool:
    """Whether a time is over, for every clock."""
    return datetime.now(UTC) > time + timedelta(seconds=1)


async def test_a_closed_window_blocks_and_an_override_opens_it(plans: Kit) -> None:
    product, environment = new_product(plans), new_environment(plans)
    windows: dict[str, Any] = {
        "maintenance_windows": {"never": {"time_zone_name": "UTC", "time_intervals": []}},
        "downtime_window": "never",
        "no_downtime_window": "never",
    }
    await environment.apply({**entities(product), "settings": windows})
    await product.publish("1.0.0")
    await environment.entity().until_code("OUTSIDE_WINDOW")
    request = OverrideWindows(duration=timedelta(hours=1), reason="now", by="eve")
    await environment.update("override", request)
    await environment.entity().until_at("1.0.0")


async def test_a_cancelled_plan_ends_and_the_entity_is_left_alone(plans: Kit) -> None:
    product, environment = await installed(plans, "1.0.0")
    held = f"{product.name} 1.1.0 upgrade"
    plans.recorder.gates[held] = asyncio.Event()
    await product.publish("1.1.0")
    await until(lambda: has_begun(plans, held))
    request = CancelPlans(entity="web", suppress=timedelta(minutes=30), by="eve", reason="no")
    await environment.update("cancel", request)
    await environment.entity().until(lambda row: row.plan_status == "CANCELLING")
    plans.recorder.gates[held].set()
    cancelled = await environment.entity().until_plan("CANCELLED")
    assert cancelled.to == "1.1.0"
    again = await refused(environment.update("cancel", CancelPlans(entity="web")))
    assert "no plan of it runs" in str(again)


async def test_a_cancel_says_what_it_suppresses_and_without_plans_suppresses_nothing(
    plans: Kit,
) -> None:
    product, environment = await installed(plans, "1.0.0")
    nothing = await environment.update("cancel", CancelPlans(suppress=timedelta(minutes=30)))
    assert (nothing.result, nothing.message) == (Result.NOTHING, "no plan runs")
    assert (await environment.status()).suppressions == ()
    held = f"{product.name} 1.1.0 upgrade"
    plans.recorder.gates[held] = asyncio.Event()
    await product.publish("1.1.0")
    await until(lambda: has_begun(plans, held))
    done = await environment.update("cancel", CancelPlans(suppress=timedelta(minutes=30)))
    assert f"asked to end: web; suppression cancelled-1 of all of {environment.name}" in str(done)
    plans.recorder.gates[held].set()
    await environment.entity().until_plan("CANCELLED")


async def has_begun(plans: Kit, work: str) -> bool:
    """Whether a step executes an activity."""
    return work in plans.recorder.begun


async def test_answers_name_what_has_no_effect(plans: Kit) -> None:
    """A mistyped product, channel or version is seen at once."""
    product, environment = new_product(plans), new_environment(plans)
    lonely = await product.publish("1.0.0")
    assert f"no environment follows product {product.name} yet" in lonely.message
    again = await product.publish("1.0.0", channels=("stable", "beta"))
    assert "is published already, but is not on beta: promote it" in again.message
    recall = Recall(id="typo", start="7.0.0", single=True)
    future = await product.update("recall", RecallRelease(recall=recall))
    assert future.message == "0 releases are recalled; the recall typo is for releases that come"
    await environment.apply(entities(product))
    await environment.entity().until_at("1.0.0")
    command = FleetCommand(
        entity="web", command=CommandType.ENFORCE_VERSION, version="1.0.1", reason="x"
    )
    said = str(await refused(environment.update("command", command)))
    assert f"{product.name} has no such release" in said
    start = datetime.now(UTC) + timedelta(days=2)
    later = Suppress(start=start, duration=timedelta(hours=1))
    answer = await environment.update("suppress", later)
    assert f" of all of {environment.name} from {start:%Y-%m-%d %H:%M:%S} UTC until" in str(answer)


async def test_nothing_is_known_of_a_terminated_plan_until_somebody_says(own_plans: Kit) -> None:
    product, environment = await installed(own_plans, "1.0.0")
    held = f"{product.name} 1.1.0 upgrade"
    own_plans.recorder.gates[held] = asyncio.Event()
    await product.publish("1.1.0")
    web = environment.entity()
    running = await web.until_plan("RUNNING")
    await until(lambda: has_begun(own_plans, held))
    await own_plans.client.get_workflow_handle(running.plan_id).terminate()
    own_plans.recorder.gates[held].set()
    await web.until(lambda row: row.plan_status == "UNKNOWN")
    answer = ResolvePlan(entity="web", outcome=EndStatus.SUCCEEDED, by="eve", reason="I looked")
    await environment.update("resolve", answer)
    await web.until_at("1.1.0")
    assert (await web.plans())[0].status == "SUCCEEDED"


test_nothing_is_known_of_a_terminated_plan_until_somebody_says = pytest.mark.engine(
    check_interval=timedelta(seconds=0.5)
)(test_nothing_is_known_of_a_terminated_plan_until_somebody_says)


async def test_an_entity_that_is_marked_is_uninstalled(plans: Kit) -> None:
    product, environment = await installed(plans, "1.0.0")
    await environment.apply(entities(product, uninstall=True))
    await environment.entity().until_at(None)
    assert f"{product.name} 1.0.0 uninstall" in plans.recorder.done
    await environment.entity().until_code("UNINSTALLED")


async def test_another_configuration_is_a_plan_with_its_values(plans: Kit) -> None:
    product, environment = new_product(plans), new_environment(plans)
    file = (
        "name: all\nphases: {change: {steps: {work:"
        " {activity: {type: work, input: '${ENVIRONMENT} ${COLOUR}'}}}}}"
    )
    files = ReleasePayload(files={"install.yml": file})
    await environment.apply(entities(product, config={"1.0.0": {"overrides": {"COLOUR": "red"}}}))
    await product.publish("1.0.0", files)
    await environment.entity().until_at("1.0.0")
    await environment.apply(entities(product, config={"1.0.0": {"overrides": {"COLOUR": "blue"}}}))
    await environment.entity().until_plan("SUCCEEDED", number=2)
    mine = [one for one in plans.recorder.done if one.startswith(f"{environment.name} ")]
    assert mine == [f"{environment.name} red", f"{environment.name} blue"]


async def test_a_command_goes_before_everything_that_holds_plans_back(plans: Kit) -> None:
    _, environment = await installed(plans, "1.0.0", "1.1.0")
    await environment.update("suppress", Suppress(by="eve"))
    request = FleetCommand(
        entity="web",
        command=CommandType.ENFORCE_VERSION,
        version="1.0.0",
        reason="incident",
        by="eve",
    )
    await environment.update("command", request)
    await environment.entity().until_at("1.0.0")
    assert (await environment.entity().plans())[0].intent == "BREAK_GLASS"


RESTART = FleetCommand(entity="web", command=CommandType.RESTART, reason="stuck", by="eve")


async def test_a_command_that_waits_can_be_withdrawn(plans: Kit) -> None:
    _, environment = await installed(plans, "1.0.0")
    away = EnvironmentFacts(connection=Connection.NOT_EXPECTED)
    await environment.update("report", ReportFacts(facts=away))
    await environment.update("command", RESTART)
    waiting = await environment.entity().until_code("NOT_CONNECTED")
    assert waiting.standing.outcome == "BLOCKED"
    length = timedelta(minutes=30)
    done = await environment.update("cancel", CancelPlans(entity="web", suppress=length))
    assert done.message == "the command restart-1 is withdrawn"
    assert (await environment.status()).suppressions == ()
    back = EnvironmentFacts(connection=Connection.CONNECTED)
    await environment.update("report", ReportFacts(facts=back))
    await environment.entity().until_code("UP_TO_DATE")
    assert [one.intent for one in await environment.entity().plans()] == ["INSTALL"]


async def test_a_command_beside_a_running_plan_is_withdrawn_when_that_is_asked_for(
    plans: Kit,
) -> None:
    product, environment = await installed(plans, "1.0.0")
    web = environment.entity()
    only = CancelPlans(entity="web", command=True)
    nothing = await refused(environment.update("cancel", only))
    assert "no command waits" in str(nothing)
    held = f"{product.name} 1.1.0 upgrade"
    plans.recorder.gates[held] = asyncio.Event()
    await product.publish("1.1.0")
    await web.until(lambda row: bool(row.plan_status))
    await environment.update("command", RESTART)
    done = await environment.update("cancel", only)
    assert done.message == "the command restart-1 is withdrawn"
    plans.recorder.gates[held].set()
    await web.until_at("1.1.0")
    await web.until_code("UP_TO_DATE")
    assert "BREAK_GLASS" not in [one.intent for one in await web.plans()]


async def test_a_release_without_a_file_for_the_change_fails_with_the_reason(plans: Kit) -> None:
    product, environment = await installed(plans, "1.0.0")
    await product.publish("1.1.0", ReleasePayload())
    failed = await environment.entity().until_plan("FAILED")
    assert "upgrade.yml" in failed.errors[0]
    await environment.entity().until_code("SUPPRESSED")
    assert (await environment.entity().row()).standing.installed == "1.0.0"


async def test_it_continues_as_new_in_the_middle_and_loses_nothing(plans: Kit) -> None:
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(entities(product, "a", "b", "c"), history_limit=50)
    for minor in range(4):
        await product.publish(f"1.{minor}.0", plan_files(f"{product.name} 1.{minor}.0"))
        await environment.update("suppress", Suppress(id=f"s{minor}", duration=timedelta(hours=1)))
        await environment.update("unsuppress", Unsuppress(id=f"s{minor}"))
    for name in ("a", "b", "c"):
        await environment.entity(name).until_at("1.3.0")
    await until(lambda: run_count(plans, environment.id), lambda count: count > 1)
    recorded = Recorded()
    await recorded.read(plans.client, environment.name)
    assert not recorded.faults
    verbs = [verb for verb, _, _ in await environment.log()]
    assert verbs == ["apply"] + ["suppress", *["unsuppress s0"]] + [
        text for minor in range(1, 4) for text in ("suppress", f"unsuppress s{minor}")
    ]
    for name in ("a", "b", "c"):
        rows = await environment.entity(name).plans()
        assert [one.number for one in rows] == list(range(len(rows), 0, -1))
        assert {one.status for one in rows} == {"SUCCEEDED"}


async def test_a_large_environment_is_decided_by_an_activity(plans: Kit) -> None:
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(entities(product, "a", "b"), workflow_limit=1)
    await product.publish("1.0.0")
    for name in ("a", "b"):
        await environment.entity(name).until_at("1.0.0")
    recorded = Recorded()
    await recorded.read(plans.client, environment.name)
    assert recorded.answers[environment.name] > 0
    assert not recorded.faults


async def test_a_deleted_environment_ends_and_its_product_may_go(plans: Kit) -> None:
    product, environment = await installed(plans, "1.0.0")
    why = await refused(product.update("delete", DeleteRequest()))
    assert environment.name in str(why)
    request = DeleteRequest(by="eve")
    assert (
        await environment.client.ask_environment(environment.name, request)
    ).result is Result.DONE
    assert (await product.update("delete", DeleteRequest(by="eve"))).result is Result.DONE
    assert fleet_plan_id(environment.name, "web", 1).startswith(environment.id)


# --- what is refused ------------------------------------------------------------------------------

DOCUMENTS = [
    pytest.param(
        {"settings": {"downtime-window": "nights"}},
        "settings.downtime-window: there is no downtime window of this name",
        id="unknown-window",
    ),
    pytest.param(
        {
            "settings": {
                "maintenance-windows": {
                    "nights": {"time-zone-name": "Mars/Here", "time-intervals": []}
                }
            }
        },
        "is not a time zone",
        id="unknown-zone",
    ),
    pytest.param(
        {"entities": {"web": {"product": "a:b", "kind": "plant"}}},
        'entities.web.kind: is no kind of entity that this worker knows (found "plant"); did you'
        " mean plan?",
        id="unknown-kind",
    ),
]


@pytest.mark.parametrize(("document", "text"), DOCUMENTS)
async def test_a_document_that_cannot_be_used_is_refused_and_leaves_nothing(
    plans: Kit, document: dict[str, Any], text: str
) -> None:
    environment = new_environment(plans)
    assert text in str(await refused(environment.apply(document)))


REQUESTS = [
    pytest.param("suppress", Suppress(entity="wep"), "did you mean web?", id="entity"),
    pytest.param("suppress", Suppress(duration=timedelta()), "more than 0", id="no-time"),
    pytest.param("unsuppress", Unsuppress(id="manual-7"), "is not there", id="suppression"),
    pytest.param(
        "override", OverrideWindows(duration=timedelta(hours=1)), "reason: is missing", id="why"
    ),
    pytest.param(
        "resolve", ResolvePlan(entity="web", outcome=EndStatus.FAILED), "is known", id="known"
    ),
    pytest.param(
        "command",
        FleetCommand(entity="web", command=CommandType.INSTALL, version="1.0.0", reason="x"),
        "1.0.0 is installed",
        id="installed",
    ),
]


async def test_requests_that_cannot_be_granted_are_refused_with_the_reason(plans: Kit) -> None:
    _, environment = await installed(plans, "1.0.0")
    for case in REQUESTS:
        name, request, text = case.values
        assert str(text) in str(await refused(environment.update(str(name), request))), case.id


async def test_a_time_at_the_end_of_the_calendar_is_refused_and_stops_nothing(plans: Kit) -> None:
    """The workflow would add the duration to it."""
    _, environment = await installed(plans, "1.0.0")
    end = datetime.max.replace(tzinfo=UTC)
    request = OverrideWindows(duration=timedelta(hours=1), reason="x").but(start=end)
    said = str(await refused(environment.update("override", request)))
    assert "start" in said
    assert "use a year from 1900 to 4999" in said
    assert (await environment.update("suppress", Suppress(id="later"))).result is Result.DONE


async def test_releases_are_immutable_and_their_files_are_checked(plans: Kit) -> None:
    product = new_product(plans)
    files = plan_files("first")
    assert (await product.publish("1.0.0", files)).result is Result.DONE
    assert (await product.publish("1.0.0", files)).result is Result.ALREADY
    other = await refused(product.publish("1.0.0", plan_files("second")))
    assert "published already, with another content" in str(other)
    assert "has no order" in str(await refused(product.publish("1.0.0-word")))
    broken = ReleasePayload(files={"install.yml": "phases: 3"})
    assert "install.yml" in str(await refused(product.publish("1.1.0", broken)))
    unknown = ReleasePayload(files={"instal.yml": "x"})
    assert "belongs to no kind of entity" in str(await refused(product.publish("1.1.0", unknown)))
    twice = Recall(id="r", start="2.0.0", end="1.0.0")
    assert "is not newer than start" in str(
        await refused(product.update("recall", RecallRelease(recall=twice)))
    )


async def test_a_product_that_is_deleted_by_force_may_come_again(plans: Kit) -> None:
    product, environment = await installed(plans, "1.0.0")
    await product.update("delete", DeleteRequest(force=True, by="eve"))
    await environment.entity().until(lambda row: row.standing.code == "CHANNEL_EMPTY")
    await product.publish("1.1.0")
    await environment.entity().until_at("1.1.0")


async def test_a_product_that_was_terminated_may_come_again(plans: Kit) -> None:
    product, environment = await installed(plans, "1.0.0", "1.1.0")
    await plans.client.get_workflow_handle(product.id).terminate()
    await until(lambda: run_count(plans, product.id, "Terminated"))
    await product.publish("1.2.0")  # its revision is lower than that of the former one
    await environment.entity().until_at("1.2.0")
    await product.publish("1.3.0")
    await environment.entity().until_at("1.3.0")


async def test_an_announcement_of_a_product_that_is_gone_is_asked_about_twice(plans: Kit) -> None:
    """It may have announced a revision, been terminated, and begun again at a lower one before an
    environment asked: that would ask again without end."""
    product, environment = await installed(plans, "1.0.0")
    handle = plans.client.get_workflow_handle(environment.id)
    before = await _fetches(handle)
    await handle.signal("announced", Announcement(product=product.name, revision=50))
    await product.publish("1.1.0")
    await environment.entity().until_at("1.1.0")
    assert await _fetches(handle) - before <= 4


async def test_an_announcement_behind_one_of_others_is_heard_while_it_asks(
    plans: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is on its way when the product has its next revision."""
    product, environment = await installed(plans, "1.0.0")
    answered, gate = asyncio.Event(), asyncio.Event()
    ask: Callable[..., Awaitable[Any]] = SharedCalls[Any].ask

    async def ask_slowly(calls: SharedCalls[Any], key: str, call: Any) -> Any:
        answer: Any = await ask(calls, key, call)
        if key == product.name:
            answered.set()
            await gate.wait()
        return answer

    monkeypatch.setattr(SharedCalls, "ask", ask_slowly)
    handle = plans.client.get_workflow_handle(environment.id)
    before = await _announcements(handle)
    await handle.signal("announced", Announcement(product=product.name, revision=50))
    await asyncio.wait_for(answered.wait(), PATIENCE)
    await product.publish("1.1.0")
    await until(lambda: _announcements(handle), lambda found: found == before + 2)
    gate.set()
    await environment.entity().until_at("1.1.0")


async def _announcements(handle: WorkflowHandle[Any, Any]) -> int:
    """How many an environment has heard."""
    history = await handle.fetch_history()
    return sum(
        one.workflow_execution_signaled_event_attributes.signal_name == "announced"
        for one in history.events
    )


async def _fetches(handle: WorkflowHandle[Any, Any]) -> int:
    """How often an environment has asked for a catalogue."""
    history = await handle.fetch_history()
    return sum(
        one.activity_task_scheduled_event_attributes.activity_type.name == "fetch_catalogue"
        for one in history.events
    )


async def test_a_product_that_announces_its_end_takes_no_more_followers(plans: Kit) -> None:
    """Such a follower would hear of nothing any more, nor of the end."""
    product, _ = await installed(plans, "1.0.0")
    before = await product.query("catalogue", Catalogue)
    await product.update("delete", DeleteRequest(force=True, by="eve"))
    try:
        await product.update("follow", FollowProduct(environment="late"))
    except (WorkflowIsEnding, WorkflowIsClosed, NoSuchWorkflow):
        return
    # Its environment has asked for it meanwhile: it has begun again.
    assert (await product.query("catalogue", Catalogue)).life != before.life


async def test_developers_register_kinds_of_entities(env: WorkflowEnvironment) -> None:
    def noted(change: EntityChange) -> KindPlan:
        text = f"{change.order.entity} {change.values['VERSION']}"
        work = ActivityWork(type="work", input=text)
        if change.order.to.version == "1.1.0":
            raise KeyError("colour")
        return KindPlan((PhaseSpec(name="change", steps=(StepSpec(name="note", work=work),)),))

    address = env.client.service_client.config.target_host
    async with kit(address, PlansPlugin(entity_kinds=[EntityKind("note", noted)])) as made:
        product, environment = new_product(made), new_environment(made)
        await environment.apply(entities(product, kind="note"))
        await product.publish("1.0.0", ReleasePayload())
        await environment.entity().until_at("1.0.0")
        assert made.recorder.done == ["web 1.0.0"]
        await product.publish("1.1.0", ReleasePayload())
        failed = await environment.entity().until_plan("FAILED")
        assert failed.errors == ("the kind note failed: KeyError: 'colour'",)


async def test_a_plan_of_a_kind_that_knows_the_health_reports_it(env: WorkflowEnvironment) -> None:
    def ready(change: EntityChange) -> KindPlan:
        return KindPlan((), health=Health.HEALTHY)

    address = env.client.service_client.config.target_host
    async with kit(address, PlansPlugin(entity_kinds=[EntityKind("ready", ready)])) as made:
        product, environment = new_product(made), new_environment(made)
        await environment.apply(entities(product, kind="ready"))
        await product.publish("1.0.0", ReleasePayload())
        await environment.entity().until_at("1.0.0")
        facts = ReportFacts(entities={"web": EntityFacts(health=Health.ERROR)})
        await environment.update("report", facts)
        await product.publish("1.1.0", ReleasePayload())
        await environment.entity().until_code("UNHEALTHY")
        restart = FleetCommand(entity="web", command=CommandType.RESTART, reason="in error")
        await environment.update("command", restart)
        await environment.entity().until_at("1.1.0")


async def test_an_entity_keeps_its_product_while_it_is_installed(plans: Kit) -> None:
    _, environment = await installed(plans, "1.0.0")
    refusal = await refused(environment.apply(entities(new_product(plans))))
    assert "entities.web.product: can't change from" in str(refusal)


async def test_a_kind_is_registered_once() -> None:
    with pytest.raises(ValueError, match="plan is there already"):
        PlansPlugin(entity_kinds=[EntityKind("plan", lambda change: KindPlan(()))])


async def test_no_work_of_a_killed_worker_is_waited_for_long(plans: Kit) -> None:
    """All activities of a fleet have heartbeats, so that they are begun again soon."""
    product, environment = await installed(plans, "1.0.0")
    await product.apply()
    plan = fleet_plan_id(environment.name, "web", 1)
    found: dict[str, timedelta] = {}
    for id in (product.id, environment.id, plan, f"{plan}/report", f"{plan}/report/state"):
        async for event in plans.client.get_workflow_handle(id).fetch_history_events():
            if event.HasField("activity_task_scheduled_event_attributes"):
                one = event.activity_task_scheduled_event_attributes
                found[one.activity_type.name] = one.heartbeat_timeout.ToTimedelta()
    missing = {name for name, timeout in found.items() if not timeout}
    assert not missing, found
    assert {"report_entity", "read_environment", "keep_payload", "issue_plan"} <= found.keys()
