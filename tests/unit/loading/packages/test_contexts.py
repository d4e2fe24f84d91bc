"""What a package's templates see by their use, and the six packages from the field.

Those are not part of this repository; without them their test is skipped.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from repository import ROOT
from temporal_plans.domain.packages.package import Operator, Package
from temporal_plans.domain.packages.parameters import Parameter
from temporal_plans.domain.packages.plans import PackagePhase, PackagePlan, PackageStep
from temporal_plans.domain.packages.tasks.apply import ApplyTask
from temporal_plans.domain.packages.tasks.nested import NestedTask
from temporal_plans.domain.packages.tasks.pipe import PipeFile, PipeTask
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.loading.packages.contexts import Installation, render_package
from temporal_plans.loading.packages.reader import load_package
from temporal_plans.loading.packages.templates import StepPlace

CORPUS = Path(os.environ.get("TEMPORAL_PLANS_CORPUS", ROOT / "../shared/corpus")) / "kudo"

PLACE = StepPlace("deploy", "main", "first")

PACKAGE = Package(
    operator=Operator(
        name="op",
        operator_version="1.2.3",
        app_version="9",
        namespace_manifest="namespace.yaml",
        tasks=(
            ApplyTask(name="apply", resources=("step.yaml",)),
            NestedTask(name="nested", package="child", parameter_file="child.yaml"),
            PipeTask(
                name="make", pod="pod.yaml", pipe=(PipeFile(file="/x", kind="Secret", key="cert"),)
            ),
        ),
        plans={
            "deploy": PackagePlan(
                phases=(PackagePhase(name="main", steps=(PackageStep(name="s", tasks=("make",)),)),)
            )
        },
    ),
    parameters=(
        Parameter(name="COUNT", type="integer", default="3"),
        Parameter(name="SIZES", type="array", default="[1, 2000000]"),
        Parameter(name="TOKEN"),
    ),
    templates={
        "child.yaml": "{{ .Name }} {{ .Params }}{{ .Params.COUNT }}",
        "namespace.yaml": "{{ .Namespace }} {{ .Params }}",
        "pod.yaml": "{{ .AppVersion }}",
        "step.yaml": "{{ .StepName }} {{ .Params.COUNT }} {{ .Params.SIZES }} {{ .Pipes.cert }}",
        "unused.yaml": "{{ .PlanName }}",
        "wrong.yaml": "{{ fail .Params.TOKEN }}",
    },
)


def test_each_template_sees_what_its_use_gives_it() -> None:
    installation = Installation(PACKAGE, "inst", "ns1", {"COUNT": "5"})
    keys = ["step.yaml", "child.yaml", "namespace.yaml", "unused.yaml"]
    rendered = render_package(installation, keys, PLACE)
    assert list(rendered.items()) == [
        ("step.yaml", "first 5 [1 2e+06] inst.deploy.main.s.make.cert"),
        ("child.yaml", "inst map[COUNT:5 SIZES:[1 2e+06] TOKEN:]5"),
        ("namespace.yaml", "ns1 map[COUNT:5]"),
        ("unused.yaml", "deploy"),
    ]


def test_given_artefacts_replace_the_computed_ones() -> None:
    installation = Installation(PACKAGE, "inst", "ns1")
    rendered = render_package(installation, ["step.yaml"], PLACE, {"cert": "mine"})
    assert rendered == {"step.yaml": "first 3 [1 2e+06] mine"}


def test_a_parameter_file_and_a_namespace_see_no_step() -> None:
    package = PACKAGE.but(
        templates={"child.yaml": "{{ .PlanName }}", "namespace.yaml": "{{ .Pipes.cert }}"}
    )
    rendered = render_package(Installation(package, "inst", "ns1"), list(package.templates), PLACE)
    assert [str(each) for each in rendered.values()] == [
        "child.yaml:1:4: there is no .PlanName; only a step's templates have it",
        "namespace.yaml:1:4: there is no .Pipes; only a step's templates have it",
    ]


def test_the_values_of_secret_parameters_stay_out_of_errors() -> None:
    installation = Installation(PACKAGE, "inst", "ns1", {"TOKEN": "hush-hush"}, {"TOKEN"})
    reason = render_package(installation, ["wrong.yaml"], PLACE)["wrong.yaml"]
    assert isinstance(reason, Reason)
    assert "hush-hush" not in str(reason)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here (TEMPORAL_PLANS_CORPUS)")
@pytest.mark.parametrize(
    "name", ["cowsay", "first-operator", "kafka", "mysql", "rabbitmq", "zookeeper"]
)
def test_packages_from_the_field_render_byte_for_byte(name: str) -> None:
    golden: dict[str, Any] = json.loads((CORPUS / "golden" / f"{name}.json").read_text("utf-8"))
    context, expected = golden["context"], golden["templates"]
    rendered = render_package(
        Installation(load_package(CORPUS / name), context["Name"], context["Namespace"]),
        list(expected),
        StepPlace(context["PlanName"], context["PhaseName"], context["StepName"]),
        context["Pipes"],
    )
    sums = {
        key: hashlib.sha256(text.encode()).hexdigest() if isinstance(text, str) else str(text)
        for key, text in rendered.items()
    }
    assert sums == {key: facts["sha256"] for key, facts in expected.items()}
