"""Documents of fleets: read, refused with field and line, and made into snapshots."""

from datetime import UTC, datetime, timedelta

import pytest

from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.fleets.files import read_documents
from temporal_plans.loading.fleets.snapshots import product_states, snapshots

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
PRODUCT = "kind: product\nname: g:a\nreleases:\n  - {version: 1.0.0, channels: [stable]}\n"
ENVIRONMENT = (
    "kind: environment\nname: prod\nentities:\n  a: {product: 'g:a', config: {1.0.0: {}}}\n"
)
PIPELINE = (
    "kind: pipeline\nproduct: g:a\nstages: [{source: DEV, target: beta, timed: {soak: 1h}}]\n"
)


def test_documents_make_the_state_of_products() -> None:
    state = "kind: state\nenvironment: prod\nentities: {a: {version: 1.0.0, health: ERROR}}\n"
    channel = "kind: channel\nname: beta\nlabels: {tested: []}\n"
    texts = (PRODUCT, ENVIRONMENT, state, channel, PIPELINE)
    [found] = product_states(read_documents("---\n".join(texts), "f.yml"), NOW)
    assert found.pipeline is not None
    assert (found.id, found.channel("beta").labels) == ("g:a", {"tested": ()})
    assert [(one.key, one.condition) for one in found.reports] == [(("prod", "a"), "unhealthy")]
    alone = product_states(read_documents(f"{PRODUCT}---\n{PIPELINE}", "f.yml"), NOW)
    assert [one.reports for one in alone] == [()]


def test_weekdays_are_those_of_the_zone_of_the_product() -> None:
    window = (
        "maintenance-window: {time-zone-name: Asia/Tokyo, "
        "time-intervals: [MONDAY/00:00-MONDAY/01:00]}\n"
    )
    for text, begins in ((PRODUCT, 0), (PRODUCT + window, -9)):
        [found] = product_states(read_documents(text, "f.yml"), NOW)
        sunday = datetime(2026, 1, 4, 12, tzinfo=UTC)
        monday = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=begins)
        assert found.weekdays(NOW).next_opening(sunday) == monday


def test_documents_make_a_snapshot() -> None:
    state = "kind: state\nenvironment: prod\nentities: {a: {version: 1.0.0}}\n"
    files = read_documents(f"{PRODUCT}---\n{ENVIRONMENT}---\n{state}", "f.yml")
    [snapshot] = snapshots(files, NOW)
    [entity] = snapshot.environment.entities
    assert (entity.state.version, entity.product) == ("1.0.0", "g:a")
    assert [one.id for one in snapshot.products] == ["g:a"]


def test_t211_an_environment_without_entities_is_fine() -> None:
    [snapshot] = snapshots(read_documents("kind: environment\nname: prod\n", "f.yml"), NOW)
    assert snapshot.environment.entities == ()


def test_the_configuration_in_force_is_compared_by_its_content() -> None:
    state = (
        "kind: state\nenvironment: prod\n"
        "entities: {a: {version: 1.0.0, config-overrides: {b: 2, a: 1}}}\n"
    )
    environment = ENVIRONMENT.replace("{1.0.0: {}}", "{1.0.0: {overrides: {a: 1, b: 2}}}")
    [snapshot] = snapshots(read_documents(f"{PRODUCT}---\n{environment}---\n{state}", "f.yml"), NOW)
    [entity] = snapshot.environment.entities
    assert entity.settings is not None
    assert entity.state.config.revision == entity.settings.config["1.0.0"].revision


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "f.yml: is empty"),
        ("[1]", "f.yml:1: must be a mapping with a kind"),
        ("name: a\n", "f.yml:1: kind: is missing"),
        ("kind: enviroment\nname: a\n", "did you mean environment"),
        ("kind: environment\nname: Prod\n", "f.yml:2: name: must match"),
        ("kind: environment\nname: a\nsetings: {}\n", "f.yml:3: setings: unknown key"),
        (
            "kind: product\nname: g:a\nreleases:\n  - version: 1.0\n",
            "f.yml:4: releases.0.version: must be text",
        ),
        pytest.param(
            "kind: product\nname: g:a\nreleases:\n  - version: 1.0.0-foo.dirty\n",
            "f.yml:4: releases.0.version: has no order among versions",
            id="T171",
        ),
        (
            "kind: product\nname: g:a\nreleases:\n  - {version: 1.0.0}\n  - {version: 1.0.0}\n",
            "f.yml:5: releases.1.version: is there already",
        ),
        (
            "kind: product\nname: g:a\nrecalls:\n  - {id: r, start: 2.0.0, end: 1.0.0}\n",
            "not newer",
        ),
        pytest.param(
            f"{PRODUCT}---\n{ENVIRONMENT}settings: {{downtime-window: nights}}\n",
            "settings.downtime-window: there is no downtime window of this name",
            id="T211",
        ),
        (ENVIRONMENT, "f.yml:4: entities.a.product: there is no product of this name"),
        ("kind: state\nenvironment: prod\n", "environment: there is no environment of this name"),
        (f"{PRODUCT}---\n{PRODUCT}", "f.yml:7: name: there is another product document of it"),
        (
            "kind: environment\nname: a\n---\nkind: suppressions\nenvironment: a\nsuppressions:\n"
            "  - {id: s, start: 2026-01-05T12:00:00}\n",
            "suppressions.0.start",
        ),
        pytest.param(
            f"{PRODUCT}---\n{PIPELINE.replace('beta', 'RELEASE')}",
            "f.yml:8: stages.0.target: is a channel that releases come to when they are published",
            id="T172",
        ),
        (f"{PRODUCT}---\n{PIPELINE}{PIPELINE}", "duplicate key"),
        (f"{PRODUCT}---\n{PIPELINE}---\n{PIPELINE}", "there is another pipeline document of it"),
        (PIPELINE, "product: there is no product of this name"),
        (f"{PRODUCT}---\n{PIPELINE.replace('1h', '40d')}", "timed.soak: is too long"),
        (f"{PRODUCT}---\n{PIPELINE.replace('timed', 'tmed')}", "f.yml:8: stages.0.tmed: unknown"),
        ("kind: channel\nname: DEV\nlabels: {a: []}\n", "f.yml:2: name: DEV takes every release"),
        ("kind: channel\nname: a\n---\nkind: channel\nname: a\n", "another channel document"),
        (f"{PRODUCT}rollouts: {{stable: 0s}}\n", "f.yml:5: rollouts.stable: must be more than 0"),
        (
            f"{PRODUCT}admissions: [{{version: 2.0.0, channel: a, at: 2026-01-05T12:00:00Z}}]\n",
            "admissions.0.version: is not among the releases",
        ),
        ("kind: environment\nname: a\n---\n- 1\n---\nkind: x\n", "f.yml:6: kind: is no kind"),
        ("kind: environment\nname: a\nname: b\n", "duplicate key"),
    ],
)
def test_refused(text: str, complaint: str) -> None:
    with pytest.raises(SpecError) as raised:
        snapshots(read_documents(text, "f.yml"), NOW)
    assert complaint in str(raised.value)


@pytest.mark.parametrize("text", ["&a [*a]", "!!python/object:os.system x", "a: " + "[" * 500])
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        read_documents(text, "f.yml")
