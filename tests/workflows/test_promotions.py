"""Pipelines of products on a real server: canaries report, releases move on or are recalled."""

from collections.abc import Awaitable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from pauses import until
from temporal_plans.client.errors import PlansError, Refused
from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.decisions import PromotionDecision
from temporal_plans.domain.fleets.promotion.pipelines import PipelineOptions
from temporal_plans.domain.plans.commands import Result
from temporal_plans.domain.values.refusal import Refusal
from temporal_plans.messages.fleets.product_views import ProductView
from temporal_plans.messages.fleets.products import ProductInput
from temporal_plans.messages.fleets.reports import EntityFacts, ReportFacts
from temporal_plans.messages.promotions import (
    CanaryAnswer,
    CanaryReports,
    ExplainRelease,
    PromoteRelease,
    PromotionVerb,
    ReleaseExplanation,
    SetChannel,
    SetPipeline,
    SteerPromotion,
)
from workflows.fleet_kit import (
    Environment,
    Product,
    entities,
    new_environment,
    new_product,
    run_count,
)
from workflows.plan_kit import Kit


def canary(soak: str = "0s", *, recall: bool = True, **more: Any) -> dict[str, Any]:
    """A stage from beta to stable: all canaries must be healthy, and one in error is too many."""
    one: dict[str, Any] = {"promote": {"percent": 100, "soak": soak}, **more}
    if recall:
        one["recall"] = {
            "count": 1,
            "soak": "0s",
            "roll_off": {"allow_downgrade": True, "minimum_release": "1.0.0"},
        }
    return {"source": "beta", "target": "stable", "canary": one}


async def piped(plans: Kit, *stages: dict[str, Any]) -> tuple[Product, Environment, Environment]:
    """A product with a pipeline, a place of canaries on beta, and production on stable."""
    product, beta, production = new_product(plans), new_environment(plans), new_environment(plans)
    await product.apply()
    await pipeline(product, *stages)
    await beta.apply({**entities(product), "settings": {"release_channel": "beta"}})
    await production.apply(entities(product))
    return product, beta, production


async def pipeline(product: Product, *stages: dict[str, Any]) -> None:
    options = PipelineOptions.model_validate({"product": product.name, "stages": stages})
    await product.update("pipeline", SetPipeline(pipeline=options, by="ann", reason="a pipeline"))


async def decided(
    product: Product, version: str, target: str = "stable"
) -> PromotionDecision | None:
    view = await product.query("status", ProductView)
    found = [one for one in view.promotions if (one.version, one.target) == (version, target)]
    return found[0] if found else None


async def until_code(product: Product, version: str, code: str) -> PromotionDecision:
    async def reached() -> PromotionDecision | None:
        one = await decided(product, version)
        return one if one is not None and one.code == code else None

    found = await until(reached)
    assert found is not None
    return found


async def refused(work: Awaitable[object]) -> Refusal:
    with pytest.raises(Refused) as caught:
        await work
    return caught.value.refusal


async def test_canaries_that_are_healthy_promote_a_release(plans: Kit) -> None:
    product, beta, production = await piped(plans, canary())
    await product.publish("1.0.0", channels=("beta",))
    await beta.entity().until_at("1.0.0")
    await production.entity().until_at("1.0.0")
    entries = await product.log()
    assert ("promote 1.0.0", "the stage from beta to stable", "done") in entries


async def health(environment: Environment, value: Health, entity: str = "web") -> None:
    facts = ReportFacts(entities={entity: EntityFacts(health=value, health_message="probe")})
    await environment.update("report", facts)


async def test_a_canary_in_error_has_the_release_recalled_and_rolled_off(plans: Kit) -> None:
    product, beta, production = await piped(plans, canary())
    await product.publish("1.0.0", channels=("beta",))
    await production.entity().until_at("1.0.0")
    await pipeline(product, canary("1h"))
    await product.publish("1.1.0", channels=("beta",))
    await beta.entity().until_at("1.1.0")
    await health(beta, Health.ERROR)
    # The health that was reported is that of 1.1.0: what comes after it is healthy again.
    await beta.entity().until(lambda row: row.standing.installed == "1.0.0")
    view = await product.query("status", ProductView)
    assert [(one.id, one.cause, one.start) for one in view.recalls] == [
        ("canary-stable-1.1.0", "promotion", "1.1.0")
    ]
    assert ("recall 1.1.0", "the stage from beta to stable", "done") in await product.log()
    assert (await until_code(product, "1.1.0", "RECALLED")).outcome == "RECALLED"
    assert (await production.entity().row()).standing.installed == "1.0.0"
    assert (await beta.entity().plans())[0].intent == "RECALL_ROLL_OFF"


async def test_a_canary_whose_replicas_are_not_all_live_is_not_healthy(plans: Kit) -> None:
    product, beta, _ = await piped(plans, canary("1h"))
    await product.publish("1.0.0", channels=("beta",))
    await beta.entity().until_at("1.0.0")

    async def conditions() -> list[str]:
        query = ExplainRelease(version="1.0.0", at=datetime.now(UTC))
        found = await product.query("explain", ReleaseExplanation, query)
        return [str(one.condition) for one in found.stages[0].canaries]

    await until(conditions, lambda found: found == ["healthy"])
    await beta.update("report", ReportFacts(entities={"web": EntityFacts(all_live=False)}))
    await until(conditions, lambda found: found == ["neither"])
    await beta.update("report", ReportFacts(entities={"web": EntityFacts(all_live=True)}))
    await until(conditions, lambda found: found == ["healthy"])


async def test_entities_under_test_keep_their_version_until_the_test_is_over(plans: Kit) -> None:
    product, beta, _ = await piped(plans, canary("1h"))
    await product.publish("1.0.0", channels=("beta",))
    await beta.entity().until_at("1.0.0")

    async def tested() -> list[str]:
        return [one.reason for one in (await beta.status()).suppressions]

    await until(tested, lambda reasons: reasons == ["a promotion tests 1.0.0"])
    await product.publish("1.1.0", channels=("beta",))
    row = await beta.entity().until_code("SUPPRESSED")
    assert (row.standing.installed, row.standing.target) == ("1.0.0", "1.1.0")
    [failed] = [c for c in (await beta.entity().explain()).constraints if c.state == "FAILED"]
    assert failed.id == "K18"
    waits = await until_code(product, "1.0.0", "CANARIES_SOAKING")
    assert waits.canaries is not None
    assert (waits.canaries.reached, waits.canaries.needed) == (1, 1)
    # A person ends the test: the entity is free again, and goes on.
    stop = SteerPromotion(verb=PromotionVerb.CANCEL, version="1.0.0", target="stable")
    why = await refused(product.update("steer", stop))
    assert str(why) == "reason: is missing; say why"
    await product.update("steer", stop.but(reason="another will do", by="eve"))
    await beta.entity().until_at("1.1.0")
    ended = await until_code(product, "1.0.0", "CANCELLED_BY_HAND")
    assert "another will do" in ended.message


async def test_other_environments_hear_nothing_of_a_test(plans: Kit) -> None:
    product, beta, production = await piped(plans, canary("1h"))
    await product.publish("1.0.0", channels=("beta", "stable"))
    await production.entity().until_at("1.0.0")
    await product.publish("1.1.0", channels=("beta",))
    await beta.entity().until_at("1.1.0")
    await until(beta.status, lambda status: bool(status.suppressions))
    handle = plans.client.get_workflow_handle(production.id)
    revisions = [
        event.workflow_execution_signaled_event_attributes.signal_name
        async for event in handle.fetch_history_events()
        if event.HasField("workflow_execution_signaled_event_attributes")
    ].count("announced")
    assert revisions <= 2  # the two releases


async def test_a_channel_asks_for_labels_however_a_release_comes_to_it(own_plans: Kit) -> None:
    product, _, production = await piped(own_plans, canary())
    rules = Channel(name="stable", labels={"audited": ("yes",)})
    await product.update("channel", SetChannel(channel=rules, by="ann", reason="audits"))
    again = await product.update("channel", SetChannel(channel=rules, by="ann"))
    assert again.result is Result.ALREADY
    needs = "labels: the channel stable needs the labels audited = yes; add them to the release"
    assert str(await refused(product.publish("1.0.0", channels=("stable",)))) == needs
    await product.publish("1.0.0", channels=("beta",))
    held = await until_code(product, "1.0.0", "LABELS_MISSING")
    assert held.message == "the release lacks audited = yes"
    by_hand = PromoteRelease(version="1.0.0", channels=("stable",), reason="now", by="eve")
    assert str(await refused(product.update("promote", by_hand))) == needs
    stop = SteerPromotion(verb=PromotionVerb.CANCEL, version="1.0.0", target="stable", reason="no")
    await product.update("steer", stop)  # else its test holds newer releases back
    await product.publish("1.1.0", channels=("beta",), labels={"audited": "yes"})
    await production.entity().until_at("1.1.0")


async def test_a_person_promotes_pauses_and_resumes(plans: Kit) -> None:
    product, beta, production = await piped(plans, canary("1h"))
    await product.publish("1.0.0", channels=("beta",))
    await beta.entity().until_at("1.0.0")
    await until_code(product, "1.0.0", "CANARIES_SOAKING")
    steer = SteerPromotion(verb=PromotionVerb.PAUSE, version="1.0.0", target="stable", by="eve")
    await product.update("steer", steer.but(reason="a look at it"))
    paused = await until_code(product, "1.0.0", "PAUSED_BY_HAND")
    assert "a look at it" in paused.message
    await product.update("steer", steer.but(verb=PromotionVerb.RESUME))
    await until_code(product, "1.0.0", "CANARIES_SOAKING")
    no_reason = PromoteRelease(version="1.0.0", up_to="stable", by="eve")
    why = await refused(product.update("promote", no_reason))
    assert str(why) == "reason: is missing; say why"
    said = await product.update("promote", no_reason.but(reason="we need it"))
    assert said.message == (
        "1.0.0 is on stable; it did not wait for CANARIES_SOAKING from beta to stable"
    )
    await production.entity().until_at("1.0.0")
    verbs = [verb for verb, who, _ in await product.log() if who == "eve"]
    assert verbs == ["pause 1.0.0 to stable", "resume 1.0.0 to stable", "promote 1.0.0"]
    twice = await refused(product.update("promote", no_reason.but(reason="again")))
    assert "is on all these channels already" in str(twice)


async def test_a_product_without_a_pipeline_wants_no_reports(plans: Kit) -> None:
    product, beta, _ = await piped(plans, canary("1h"))
    await product.publish("1.0.0", channels=("beta",))
    await beta.entity().until_at("1.0.0")
    await until(beta.status, lambda status: bool(status.suppressions))
    await product.update("pipeline", SetPipeline(pipeline=None, by="ann"))
    await until(beta.status, lambda status: not status.suppressions)
    view = await product.query("status", ProductView)
    assert (view.pipeline, view.promotions, view.tests) == (None, (), ())
    await pipeline(product, canary())  # and is told all of it when it does again

    async def channels() -> tuple[str, ...]:
        return (await product.query("status", ProductView)).releases[0].channels

    found = await until(channels, lambda found: "stable" in found)
    assert found[0] == "beta"
    assert await decided(product, "1.0.0") is None


def decided_of(product: Product, version: str) -> Any:
    async def look() -> PromotionDecision | None:
        return await decided(product, version)

    return look


async def test_promotions_and_reports_outlive_continue_as_new(plans: Kit) -> None:
    product, beta = new_product(plans), new_environment(plans)
    handle = await plans.client.start_workflow(
        "Product",
        ProductInput(name=product.name, history_limit=60),
        id=product.id,
        task_queue=plans.queue,
    )
    await pipeline(product, canary("1h"))
    settings = {"settings": {"release_channel": "beta"}}
    await beta.apply({**entities(product, "a", "b"), **settings}, history_limit=60)
    await product.publish("1.0.0", channels=("beta",))
    for name in ("a", "b"):
        await beta.entity(name).until_at("1.0.0")
    await until(counted(product, "1.0.0"), lambda reached: reached == 2)
    for number in range(12):
        await health(beta, Health.WARNING if number % 2 else Health.HEALTHY, "a")
        steer = SteerPromotion(
            verb=PromotionVerb.PAUSE, version="1.0.0", target="stable", reason=str(number)
        )
        await product.update("steer", steer)
        await product.update("steer", steer.but(verb=PromotionVerb.RESUME))
    for workflow in (product.id, beta.id):
        await until(partial(run_count, plans, workflow), lambda count: count > 1)
    await until(counted(product, "1.0.0"), lambda reached: reached == 2)
    await until(beta.status, lambda status: len(status.suppressions) == 2)

    async def conditions() -> list[tuple[str, str]]:
        query = ExplainRelease(version="1.0.0", at=datetime.now(UTC))
        found = await product.query("explain", ReleaseExplanation, query)
        [stage] = found.stages
        assert {one.since for one in stage.canaries} != {None}
        return [(one.entity, one.condition) for one in stage.canaries]

    # The environment reports a health after it has taken it, and again in its next run.
    await until(conditions, lambda found: found == [("a", "neither"), ("b", "healthy")])
    verbs = [verb for verb, _, _ in await product.log()]
    assert verbs.count("pause 1.0.0 to stable") == verbs.count("resume 1.0.0 to stable") == 12
    assert handle.id == product.id


def counted(product: Product, version: str) -> Any:
    async def look() -> int:
        one = await decided(product, version)
        return one.canaries.reached if one is not None and one.canaries else 0

    return look


async def report(
    product: Product, environment: Environment, *names: str, **more: Any
) -> CanaryAnswer:
    """One report of an environment about some entities, in the place of the environment itself."""
    one = {"channel": "beta", "version": "1.0.0", "known_at": EPOCH}
    states = [{**one, "entity": name} for name in names]
    given = {"environment": environment.name, "epoch": EPOCH, "number": 1, "entities": states}
    reports = CanaryReports.model_validate({**given, **more})
    return await product.gateway.update(product.id, "canaries", reports, CanaryAnswer)


EPOCH = datetime(2099, 1, 1, tzinfo=UTC)
"""After every run of an environment, whose own reports come before it."""


async def test_reports_count_once_and_in_order(plans: Kit) -> None:
    product, beta, _ = await piped(plans, canary("1h"))
    await product.publish("1.0.0", channels=("beta",))
    await beta.entity().until_at("1.0.0")
    await until(counted(product, "1.0.0"), lambda reached: reached == 1)
    assert (await report(product, beta, "x", number=2)).send_all  # of an unknown run
    assert not (await report(product, beta, "x", complete=True)).send_all
    await until(names_of(product), lambda names: names == ["x"])
    assert not (await report(product, beta, "y")).send_all  # it was taken already
    assert (await report(product, beta, "y", number=3)).send_all
    assert not (await report(product, beta, "y", number=2)).send_all
    await until(names_of(product), lambda names: names == ["x", "y"])
    assert not (await report(product, beta, number=3, gone=["x"])).send_all
    await until(names_of(product), lambda names: names == ["y"])
    stranger = new_environment(plans)
    assert not (await report(product, stranger, "x", complete=True)).send_all
    assert await names_of(product)() == ["y"]


def names_of(product: Product) -> Any:
    async def look() -> list[str]:
        query = ExplainRelease(version="1.0.0", at=datetime.now(UTC))
        found = await product.query("explain", ReleaseExplanation, query)
        return [one.entity for one in found.stages[0].canaries]

    return look


async def test_what_cannot_be_a_pipeline_is_refused_with_path_value_and_fix(plans: Kit) -> None:
    product, _, _ = await piped(plans, canary())

    async def why(*stages: dict[str, Any], **more: Any) -> str:
        given = {"product": product.name, "stages": stages, **more}
        options = PipelineOptions.model_validate(given)
        return str(await refused(product.update("pipeline", SetPipeline(pipeline=options))))

    to_default = {**canary(), "target": "RELEASE"}
    assert "stages.0.target: is a channel that releases come to when" in await why(to_default)
    assert "stages.0.canary.promote.soak: is too long" in await why(canary("20d"))
    assert "stages.1: there is another stage from beta to stable" in await why(canary(), canary())
    assert "product: is the pipeline of another product" in await why(product="a:b")
    assert "since: is in the future" in await why(canary(), since="2999-01-01T00:00:00Z")
    steer = SteerPromotion(verb=PromotionVerb.RESUME, version="1.0.0", target="stabel")
    assert "did you mean beta to stable?" in str(await refused(product.update("steer", steer)))
    late = product.publish("1.0.0", published_at="2999-01-01T00:00:00Z")
    assert "published-at: is in the future" in str(await refused(late))
    archived = SetChannel(channel=Channel(name="DEV", archived=True))
    assert "takes every release" in str(await refused(product.update("channel", archived)))
    missing = ExplainRelease(version="1.0.00", at=datetime.now(UTC))
    with pytest.raises(PlansError, match="has no release"):
        await product.query("explain", ReleaseExplanation, missing)


async def test_a_product_that_begins_knows_the_rules_of_channels(own_plans: Kit) -> None:
    former, product = new_product(own_plans), new_product(own_plans)
    rules = Channel(name="stable", labels={"audited": ("yes",)})
    await former.apply()
    await former.update("channel", SetChannel(channel=rules, by="ann"))
    await until(lambda: listed(former))
    why = await refused(product.publish("1.0.0", channels=("stable",)))
    assert "the channel stable needs the labels audited = yes" in str(why)
    assert (await product.query("status", ProductView)).channels == (rules,)


async def listed(product: Product) -> bool:
    return product.name in await product.client.products()
