"""Service files from the field, and our own examples over the same ground, and their plans.

The files from the field are not part of this repository; without them those tests are skipped.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from repository import ROOT
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.domain.services.backend_support import unsupported
from temporal_plans.domain.services.generation import generate
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.loading.plans import load_plan
from temporal_plans.loading.services.service import load_service, load_service_text
from temporal_plans.loading.text.env_file import parse_env_file

EXAMPLES = ROOT / "examples"
CORPUS = Path(os.environ.get("TEMPORAL_PLANS_CORPUS", ROOT / "../shared/corpus")) / "dcos"

corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus is not here (TEMPORAL_PLANS_CORPUS)"
)

Shape = dict[str, tuple[str, dict[str, tuple[str, list[str]]]]]
"""Plans by name: strategy, and phases by name: strategy, and step names."""


def shape(plans: tuple[PlanSpec, ...]) -> Shape:
    return {
        plan.name: (
            plan.strategy.name,
            {
                phase.name: (phase.strategy.name, [step.name for step in phase.steps])
                for phase in plan.phases
            },
        )
        for plan in plans
    }


def instances(pod: str, count: int, *steps: str) -> list[str]:
    return [f"{pod}-{index}:[{step}]" for index in range(count) for step in steps]


def serial(**phases: tuple[str, list[str]]) -> tuple[str, dict[str, tuple[str, list[str]]]]:
    """A serial plan; ``_`` in phase names is written ``-``."""
    return "serial", {name.replace("_", "-"): phase for name, phase in phases.items()}


def load_corpus(name: str, **values: str) -> ServiceSpec:
    env_file = "cassandra.env" if name.startswith("cassandra") else "helloworld.env"
    env = parse_env_file((CORPUS / env_file).read_text()) | values
    # Config templates of these services are not among the files.
    return load_service_text((CORPUS / name).read_text(), env, source=name, templates=str)


HELLO = instances("hello", 1, "server")
WORLD = instances("world", 2, "server")


def sidecars() -> Shape:
    plans: Shape = {
        "deploy": serial(
            server_deploy=("dependency", instances("hello", 2, "server")),
            once_deploy=("dependency", instances("hello", 2, "once")),
        )
    }
    for task in ("sidecar", "sidecar-parameterized", "sidecar-toxic"):
        phases = {f"{task}-deploy": ("dependency", instances("hello", 2, task))}
        plans[task] = ("serial", phases)
    return plans


CORPUS_PLANS: dict[str, Shape] = {
    "svc.yml": {"deploy": serial(hello=("serial", HELLO), world=("serial", WORLD))},
    "canary.yml": {
        "deploy": serial(
            hello_deploy=("parallel-canary", HELLO), world_deploy=("serial-canary", WORLD)
        )
    },
    "finish_state.yml": {
        "deploy": serial(
            hello_deploy=("dependency", instances("hello", 2, "server")),
            world_server_deploy=("dependency", instances("world", 1, "server")),
            world_finish_deploy=("dependency", instances("world", 1, "finish")),
        )
    },
    "multistep_plan.yml": {
        "deploy": serial(
            hello_deploy=("serial", instances("hello", 1, "first", "second")),
            world_deploy=("serial", WORLD),
        )
    },
    "nonessential_tasks.yml": {
        "deploy": serial(hello=("serial", instances("hello", 1, "essential, nonessential")))
    },
    "plan.yml": {
        "deploy": serial(hello_deploy=("parallel", HELLO), world_deploy=("parallel", WORLD)),
        **{
            f"manual-plan-{number}": (
                "serial",
                {
                    f"manual-plan-{number}-phase": (
                        "serial",
                        instances(f"custom-pod-{letter}", 1, "simple-task"),
                    )
                },
            )
            for number, letter in enumerate("ABC")
        },
    },
    "sidecar.yml": sidecars(),
    "update_plan.yml": {"deploy": ("parallel", {"hello-deploy": ("parallel", HELLO)})},
}


@corpus
@pytest.mark.parametrize(("name", "expected"), CORPUS_PLANS.items(), ids=CORPUS_PLANS.keys())
def test_corpus_plans(name: str, expected: Shape) -> None:
    spec = load_corpus(name)
    assert shape(generate(spec)) == expected
    assert list(shape(generate(spec))) == list(expected)
    assert unsupported(spec) == ()


@corpus
def test_corpus_update_takes_the_place_of_deploy() -> None:
    plans = generate(load_corpus("update_plan.yml"), completed_before=True)
    assert shape(plans) == {"deploy": serial(hello_update=("serial", HELLO))}


EACH = "[[first],[second],[third]]"
ALL = "[[first,second,third]]"
PAIR = "[[first],[second,third]]"


@corpus
@pytest.mark.parametrize(
    ("strategy", "steps", "names"),
    [
        pytest.param(strategy, steps, names, id=f"{strategy}-{label}")
        for strategy in ("serial", "parallel")
        for label, steps, names in (
            ("each", EACH, ("first", "second", "third")),
            ("all", ALL, ("first, second, third",)),
            ("pair", PAIR, ("first", "second, third")),
        )
    ],
)
def test_corpus_custom_steps(strategy: str, steps: str, names: tuple[str, ...]) -> None:
    spec = load_corpus("custom_steps.yml", DEPLOY_STRATEGY=strategy, DEPLOY_STEPS=steps)
    (phase,) = generate(spec)[0].phases
    assert [step.name for step in phase.steps] == instances("hello", 2, *names)
    assert phase.strategy.name == ("serial" if strategy == "serial" else "dependency")
    for position, step in enumerate(phase.steps):
        earlier = phase.steps[position - position % len(names) : position]
        expected = tuple(other.name for other in earlier) if strategy == "parallel" else ()
        assert step.depends_on == expected


@corpus
def test_corpus_values_reach_the_service() -> None:
    spec = load_corpus("svc.yml")
    assert (spec.name, spec.principal, spec.user) == (
        "hello-world",
        "hello-world-principal",
        "nobody",
    )
    hello = spec.pod("hello")
    assert hello.placement == '[["hostname", "UNIQUE"]]'
    assert (hello.rlimits[0].soft, hello.rlimits[0].hard) == (128000, 128000)
    task = hello.task("server")
    assert task.env == {"SLEEP_DURATION": "1000", "PACKAGE_VERSION_TO_FORCE_UPDATE": "1.0.0"}
    assert hello.resource_set(task.resource_set).memory == 252
    world = spec.pod("world").task("server")
    assert [volume.path for volume in spec.pod("world").resource_sets[0].volumes] == [
        "world-container-path1",
        "world-container-path2",
    ]
    assert "terminated () {\n" in world.cmd


@corpus
def test_corpus_cassandra() -> None:
    spec = load_corpus("cassandra-svc.yml")
    plans = {plan.name: plan for plan in generate(spec)}
    assert list(plans) == [
        "deploy",
        "replace",
        "repair",
        "cleanup",
        "backup-s3",
        "restore-s3",
        "backup-azure",
        "restore-azure",
    ]
    assert shape((plans["deploy"],)) == {
        "deploy": serial(
            node_deploy=("serial", instances("node", 3, "server")),
            keyspace_deploy=("serial", ["node-0:[init_system_keyspaces]"]),
        )
    }
    snapshots = plans["backup-s3"].phases[1]
    assert (snapshots.name, snapshots.strategy.name) == ("create-snapshots", "dependency")
    server = spec.pod("node").task("server")
    assert [config.template for config in server.configs] == [
        "cassandra.yaml",
        "jvm_CMS.options",
        "metrics-reporter-config.yaml",
        "cassandra-rackdc.properties",
    ]
    assert server.env["CASSANDRA_NUM_TOKENS"] == "256"
    assert unsupported(spec) == ()


# --- our own examples ----------------------------------------------------------------------------


def load_example(path: str, env: Mapping[str, str] | None = None) -> Shape:
    spec = load_service(EXAMPLES / path, env or {})
    assert unsupported(spec) == ()
    plans = generate(spec)
    assert not any(s.errors for plan in plans for phase in plan.phases for s in phase.steps)
    return shape(plans)


def test_hello_world() -> None:
    env = parse_env_file((EXAMPLES / "hello-world/hello-world.env").read_text())
    assert load_example("hello-world/svc.yml", env) == {
        "deploy": serial(hello=("serial", HELLO), world=("serial", WORLD))
    }


def test_filestore() -> None:
    env = parse_env_file((EXAMPLES / "frameworks/filestore/filestore.env").read_text())
    plans = load_example("frameworks/filestore/svc.yml", env)
    assert list(plans["deploy"][1].items())[1] == (
        "name",
        (
            "serial",
            [
                "name-0:[format]",
                "name-0:[node, monitor]",
                "name-1:[copy]",
                "name-1:[node, monitor]",
            ],
        ),
    )
    assert list(plans) == ["deploy", "check"]


def test_broker() -> None:
    env = parse_env_file((EXAMPLES / "frameworks/broker/broker.env").read_text())
    plans = load_example("frameworks/broker/svc.yml", env)
    assert plans == {
        "deploy": serial(
            registry=("serial", instances("registry", 1, "server")),
            broker=("serial", instances("broker", 3, "server")),
        ),
        "rebalance": serial(rebalance=("serial", instances("broker", 3, "rebalance"))),
    }


EXAMPLE_PLANS: dict[str, Shape] = {
    "canary": {
        "deploy": serial(
            web=("serial-canary", instances("web", 3, "server")),
            cache=("parallel-canary", instances("cache", 3, "server")),
        )
    },
    "custom-steps": {
        "deploy": serial(
            node=(
                "serial",
                [
                    "node-0:[format]",
                    "node-0:[server, metrics]",
                    "node-1:[server, metrics]",
                    "node-2:[server, metrics]",
                ],
            )
        )
    },
    "multistep": {
        "deploy": serial(
            store=("dependency", instances("store", 2, "bootstrap", "server")),
            front=("max-parallel", instances("front", 2, "server")),
        )
    },
    "finish": {
        "deploy": serial(
            server=("parallel", instances("server", 2, "server")),
            install=("serial", instances("job", 1, "install")),
            index=("serial", instances("job", 1, "index")),
        )
    },
    "nonessential": {"deploy": serial(app=("serial", instances("app", 1, "server, reporter")))},
    "sidecar": {
        "deploy": serial(database=("dependency", instances("database", 2, "server"))),
        "backup": serial(backup=("serial", instances("database", 2, "backup"))),
        "clean": serial(clean=("dependency", instances("database", 2, "clean"))),
    },
}


@pytest.mark.parametrize(("name", "expected"), EXAMPLE_PLANS.items(), ids=EXAMPLE_PLANS.keys())
def test_example_services(name: str, expected: Shape) -> None:
    assert load_example(f"services/{name}.yml") == expected


def test_every_example_service_is_tested() -> None:
    assert {path.stem for path in (EXAMPLES / "services").glob("*.yml")} == set(EXAMPLE_PLANS)


@pytest.mark.parametrize("name", sorted(path.name for path in (EXAMPLES / "plans").glob("*.yml")))
def test_example_plans(name: str) -> None:
    plan = load_plan(EXAMPLES / "plans" / name, strategies=NAMES, step_kinds=())
    assert f"{plan.name}.yml" == name
