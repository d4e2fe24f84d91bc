"""Values of parameters as the command ``deploy`` takes them, and sends them."""

from pathlib import Path
from typing import Any

import pytest

from builders.packages import OPERATOR, package_files, write_package
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.loading.packages.structures import decode
from temporal_plans.messages.packages import InstanceInput, PackageDeployResult
from unit.cli.kit import Ran, Run
from unit.fake_gateway import FakeGateway

PARAMETERS = """\
apiVersion: kudo.dev/v1beta1
parameters:
  - {name: SIZE, default: "3"}
  - {name: PASSWORD, secret: true, trigger: deploy}
"""


@pytest.fixture
def folder(tmp_path: Path, gateway: FakeGateway) -> Path:
    done = Outcome(result=Result.DONE, message="done")
    answer = PackageDeployResult(config_id="c1", plan="web/deploy", outcome=done, number=1)
    gateway.begins["deploy"] = answer
    return write_package(tmp_path / "web", package_files(OPERATOR, PARAMETERS))


class Deploy:
    """The command, with files of parameters of these texts."""

    def __init__(self, run: Run, gateway: FakeGateway, folder: Path) -> None:
        self._run, self._gateway, self._folder = run, gateway, folder

    def __call__(self, *files: str, more: tuple[str, ...] = ()) -> Ran:
        options: list[str] = []
        for number, text in enumerate(files):
            path = self._folder.parent / f"values-{number}.yaml"
            path.write_text(text)
            options += ["--parameter-file", str(path)]
        return self._run("deploy", str(self._folder), *options, *more)

    @property
    def sent(self) -> InstanceInput:
        (call,) = [one for one in self._gateway.told if one.name == "deploy"]
        assert isinstance(call.argument, InstanceInput)
        return call.argument


@pytest.fixture
def deploy(run: Run, gateway: FakeGateway, folder: Path) -> Deploy:
    return Deploy(run, gateway, folder)


@pytest.mark.parametrize(
    ("files", "more", "sent"),
    [
        pytest.param([], [], {}, id="none"),
        pytest.param(["SIZE: 5"], [], {"SIZE": "5"}, id="one-file"),
        pytest.param(["SIZE: 5\nA: x", "SIZE: 6"], [], {"SIZE": "6", "A": "x"}, id="later-file"),
        pytest.param(["SIZE: 5"], ["-p", "SIZE=7"], {"SIZE": "7"}, id="command-line"),
        pytest.param(["SIZE: 5"], ["-p", "SIZE-"], {"SIZE": None}, id="unset-on-the-command-line"),
        pytest.param([], ["-p", "SIZE=a=b,c"], {"SIZE": "a=b,c"}, id="first-equals"),
        pytest.param([], ["-p", "SIZE="], {"SIZE": ""}, id="empty-text"),
        pytest.param(["SIZE: 2097152"], [], {"SIZE": "2097152"}, id="million"),
        pytest.param(["SIZE: 9007199254740993"], [], {"SIZE": "9007199254740993"}, id="53-bits"),
        pytest.param(
            ["SIZE: 12345678901234567890"], [], {"SIZE": "12345678901234567890"}, id="big"
        ),
        pytest.param(["SIZE: 0.25"], [], {"SIZE": "0.25"}, id="fraction"),
        pytest.param(["SIZE: '010'"], [], {"SIZE": "010"}, id="text-of-digits"),
        pytest.param(["SIZE: no"], [], {"SIZE": "false"}, id="boolean"),
        pytest.param(["# nothing\n"], [], {}, id="empty-file"),
    ],
)
def test_values_are_texts_and_the_last_has_precedence(
    deploy: Deploy, files: list[str], more: list[str], sent: dict[str, str | None]
) -> None:
    ran = deploy(*files, more=tuple(more))
    assert ran.code == 0, ran
    assert deploy.sent.change.parameters == sent


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("- foo: bar", [{"foo": "bar"}]),
        ("[1, two, 3.5, null]", [1, "two", 3.5, None]),
        ("{a: {b: [c]}}", {"a": {"b": ["c"]}}),
        ("[]", []),
    ],
)
def test_lists_and_mappings_of_a_file_are_yaml_texts(deploy: Deploy, text: str, value: Any) -> None:
    ran = deploy(f"SIZE:\n  {text}\n")
    assert ran.code == 0, ran
    sent = deploy.sent.change.parameters["SIZE"]
    assert sent is not None
    assert decode(sent) == value


@pytest.mark.parametrize(
    ("files", "problems"),
    [
        (["- SIZE"], ["values-0.yaml", "is no mapping"]),
        (["SIZE: [1"], ["values-0.yaml"]),
        (["SIZE:\nA: null"], ["SIZE: is null", "A: is null", "-p NAME- unsets"]),
        (["SIZE: 1", "A:"], ["values-1.yaml", "A: is null"]),
    ],
    ids=["no-mapping", "no-yaml", "null", "second-file"],
)
def test_a_file_that_gives_no_values(
    deploy: Deploy, gateway: FakeGateway, files: list[str], problems: list[str]
) -> None:
    ran = deploy(*files)
    assert ran.code == 1, ran
    assert [text for text in problems if text not in ran.err] == [], ran.err
    assert gateway.told == []


def test_a_file_that_is_not_there(run: Run, folder: Path) -> None:
    ran = run("deploy", str(folder), "--parameter-file", str(folder / "none.yaml"))
    assert ran.code != 0
    assert "none.yaml" in ran.err


@pytest.mark.parametrize("option", ["-p", "--secret-parameter"])
def test_what_is_no_pair_is_a_usage_error(run: Run, folder: Path, option: str) -> None:
    for text in ("SIZE", "=5"):
        ran = run("deploy", str(folder), option, text)
        assert ran.code == 2, ran
        assert text in ran.err


def test_all_wrong_pairs_are_named_at_once(run: Run, folder: Path) -> None:
    ran = run("deploy", str(folder), "-p", "SIZE", "-p", "A=1", "-p", "=5")
    assert ran.code == 2
    assert "'SIZE', '=5': write NAME=VALUE" in ran.err


def test_a_secret_is_a_reference(deploy: Deploy) -> None:
    ran = deploy("SIZE: 5", more=("--secret-parameter", "PASSWORD=shop/password"))
    assert ran.code == 0, ran
    assert deploy.sent.change.parameters == {"SIZE": "5"}
    assert deploy.sent.change.secrets == {"PASSWORD": "shop/password"}
