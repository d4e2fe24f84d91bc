"""Packages nested in packages: what is found where, and what all of them are in the store."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders.packages import package_files, write_package
from temporal_plans.domain.packages.nesting import NESTED_LIMIT
from temporal_plans.domain.packages.pipes.pod import pod_faults
from temporal_plans.domain.packages.tasks.pipe import PipeTask
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.packages.archive import write_archive
from temporal_plans.loading.packages.contexts import Installation, render_package
from temporal_plans.loading.packages.limits import SIZE_LIMIT
from temporal_plans.loading.packages.nested import PackageTree, load_tree
from temporal_plans.loading.packages.objects import read_objects
from temporal_plans.loading.packages.stored import NESTED_FILE, stored_archive, stored_package
from temporal_plans.loading.packages.templates import StepPlace

STORE = Path(__file__).parents[4] / "examples" / "packages" / "store"

OPERATOR = """\
name: {name}
operatorVersion: "{version}"
kubernetesVersion: "1.25"
tasks:
{tasks}
plans:
  deploy: {{}}
"""


def files(name: str, version: str = "1.0.0", more: str = "", **nested: str) -> dict[str, bytes]:
    """The files of a package with a nested one at each path, by the name of the task."""
    tasks = [
        f"  - {{name: {task}, kind: KudoOperator, spec: {{package: '{path}'{more}}}}}"
        for task, path in nested.items()
    ]
    tasks.append("  - {name: nothing, kind: Dummy, spec: {done: true}}")
    operator = OPERATOR.format(name=name, version=version, tasks="\n".join(tasks))
    return package_files(operator=operator)


def below(folder: str, content: Mapping[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{path}": data for path, data in content.items()}


def names(tree: PackageTree) -> list[str]:
    """The names of all packages, in the order in which they are to be stored."""
    return [each.package.name for each in tree.packages.values()]


def refusal(source: Path) -> list[str]:
    with pytest.raises(SpecError) as refused:
        load_tree(source)
    return [str(reason) for reason in refused.value.reasons]


def test_a_package_without_others_is_itself(tmp_path: Path) -> None:
    tree = load_tree(write_package(tmp_path))
    assert list(tree.packages.values()) == [tree.root]
    assert tree.root.digest == hashlib.sha256(tree.root.archive).hexdigest()
    assert stored_package(tree.root.archive, tree.root.digest) == tree.root.package
    assert tree.root.package.nested.tasks == {}


def test_nested_packages_are_in_the_folder_beside_it_and_in_archives(tmp_path: Path) -> None:
    write_package(tmp_path / "web", files("web", a="./a", b="../b", c="./packed/c.tgz"))
    write_package(tmp_path / "web/a", files("a"))
    write_package(tmp_path / "b", files("b", d="./in/d"))
    write_package(tmp_path / "b/in/d", files("d"))
    (tmp_path / "web/packed").mkdir()
    inner = files("c", e="./e") | below("e", files("e"))
    (tmp_path / "web/packed/c.tgz").write_bytes(write_archive(inner))
    tree = load_tree(tmp_path / "web")
    assert names(tree) == ["a", "d", "b", "e", "c", "web"]
    found = {each.package.name: each for each in tree.packages.values()}
    assert found["web"].package.nested.tasks == {
        name: found[name].digest for name in ("a", "b", "c")
    }
    assert found["web"].package.nested.contents == tuple(
        found[name].digest for name in ("a", "d", "b", "e", "c")
    )
    assert found["b"].package.nested.tasks == {"d": found["d"].digest}
    for each in tree.packages.values():
        assert stored_package(each.archive, each.digest) == each.package


def test_the_same_packages_have_the_same_digest_from_everywhere(tmp_path: Path) -> None:
    content = files("web", a="./a") | below("a", files("a"))
    folder = write_package(tmp_path / "web", {**content, "README.md": b"other"})
    archive = tmp_path / "web.tgz"
    archive.write_bytes(write_archive(content))
    assert load_tree(folder).root.digest == load_tree(archive).root.digest


def test_another_nested_package_makes_another_digest(tmp_path: Path) -> None:
    folder = write_package(tmp_path, files("web", a="./a") | below("a", files("a")))
    before = load_tree(folder).root.digest
    write_package(folder / "a", files("a", "1.0.1"))
    assert load_tree(folder).root.digest != before


def test_what_two_packages_share_is_there_once(tmp_path: Path) -> None:
    content = files("web", a="./a", b="./b", again="./a")
    content |= below("a", files("a", c="../c")) | below("b", files("b", c="../c"))
    folder = write_package(tmp_path, content | below("c", files("c")))
    tree = load_tree(folder)
    assert names(tree) == ["c", "a", "b", "web"]
    tasks = tree.root.package.nested.tasks
    assert tasks["a"] == tasks["again"]
    assert len(tree.root.package.nested.contents) == 3


def test_a_nested_package_may_be_the_one_around_in_an_archive(tmp_path: Path) -> None:
    content = below("outer", files("outer", a="../inner")) | below("inner", files("inner"))
    archive = tmp_path / "all.tgz"
    archive.write_bytes(write_archive(files("top", o="./outer") | content))
    assert names(load_tree(archive)) == ["inner", "outer", "top"]


@pytest.mark.parametrize(
    ("a", "b", "circle"),
    [
        pytest.param({"a": "./a"}, {"a": "."}, "web 1.0.0 -> a 1.0.0 -> web 1.0.0", id="two"),
        pytest.param({"a": "./"}, {}, "web 1.0.0 -> web 1.0.0", id="itself"),
    ],
)
def test_a_package_can_not_contain_itself(
    tmp_path: Path, a: dict[str, str], b: dict[str, str], circle: str
) -> None:
    inner = below("a", files("a", **{name: f"../{path}" for name, path in b.items()}))
    write_package(tmp_path, files("web", **a) | inner)
    (reason,) = refusal(tmp_path)
    assert "would contain itself" in reason
    assert circle in reason


def test_a_copy_of_a_package_in_itself_is_a_cycle_as_well(tmp_path: Path) -> None:
    write_package(tmp_path, files("web", a="./copy") | below("copy", files("web")))
    (reason,) = refusal(tmp_path)
    assert reason.startswith("operator.yaml: tasks.a.spec.package: would contain itself")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("cache", "is the name of a package in a repository"),
        ("cache.tgz", "is the name of a package in a repository"),
        ("./none", "No such file or directory"),
        ("./broken.tgz", "is not a .tgz archive"),
        ("./templates/app.yaml", "is not a .tgz archive"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, path: str, problem: str) -> None:
    write_package(tmp_path, files("web", a=path))
    (tmp_path / "broken.tgz").write_bytes(b"broken")
    (reason,) = refusal(tmp_path)
    assert reason.startswith("operator.yaml: tasks.a.spec.package: ")
    assert problem in reason


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("../secret", "leaves the archive"),
        ("./a/../../secret", "leaves the archive"),
        ("/etc/package", "leaves the archive"),
        ("./none", "is not in the archive"),
    ],
)
def test_an_archive_reaches_nothing_of_the_machine(tmp_path: Path, path: str, problem: str) -> None:
    write_package(tmp_path / "secret", files("secret"))
    archive = tmp_path / "in" / "web.tgz"
    archive.parent.mkdir()
    archive.write_bytes(write_archive(files("web", a=path)))
    (reason,) = refusal(archive)
    assert problem in reason


def test_all_faults_of_all_packages_are_found_at_once(tmp_path: Path) -> None:
    write_package(tmp_path, files("web", a="./a", b="./b", c="./c"))
    write_package(tmp_path / "a", files("a", d="./d"))
    write_package(tmp_path / "c", {"operator.yaml": b"plans: ["})
    found = refusal(tmp_path)
    assert len(found) == 4
    assert found[0].startswith(f"{tmp_path}/a: operator.yaml: tasks.d.spec.package: No such file")
    assert found[1].startswith("operator.yaml: tasks.b.spec.package: No such file")
    assert found[2].startswith(f"{tmp_path}/c: params.yaml: is missing")
    assert found[3].startswith(f"{tmp_path}/c: operator.yaml: ")


@pytest.mark.parametrize(
    ("more", "problems"),
    [
        (", operatorVersion: '1.0.0'", []),
        (", operatorVersion: '2.0.0'", ["has the operatorVersion 1.0.0, and the task wants 2.0.0"]),
        (", appVersion: '8'", ["has the appVersion , and the task wants 8"]),
    ],
)
def test_the_versions_of_a_task_are_those_of_the_package(
    tmp_path: Path, more: str, problems: list[str]
) -> None:
    write_package(tmp_path, files("web", more=more, a="./a") | below("a", files("a")))
    if not problems:
        assert names(load_tree(tmp_path)) == ["a", "web"]
        return
    (reason,) = refusal(tmp_path)
    assert problems[0] in reason


def test_there_are_limits(tmp_path: Path) -> None:
    many = {f"t{number}": f"./p{number}" for number in range(NESTED_LIMIT + 1)}
    write_package(tmp_path, files("web", **many))
    for number in range(NESTED_LIMIT + 1):
        write_package(tmp_path / f"p{number}", files(f"p{number}"))
    (reason,) = refusal(tmp_path)
    assert f"is nested with more than {NESTED_LIMIT} packages" in reason
    write_package(tmp_path, files("web", **dict(list(many.items())[:-1])))
    assert len(load_tree(tmp_path).packages) == NESTED_LIMIT + 1


def test_a_package_fits_into_the_store(tmp_path: Path) -> None:
    write_package(tmp_path, files("web") | {"templates/a.yaml": bytes(SIZE_LIMIT - 2000)})
    (reason,) = refusal(tmp_path)
    assert "has more than 10 MB" in reason


@pytest.mark.parametrize("content", [b"", b"[]", b'{"tasks": {"a": "../x"}}'])
def test_a_damaged_list_of_nested_packages_is_refused(content: bytes) -> None:
    archive = write_archive({**package_files(), NESTED_FILE: content})
    with pytest.raises(SpecError, match=r"nested\.json: is damaged"):
        stored_package(archive, "0" * 64)


def test_a_list_of_nested_packages_in_a_folder_means_nothing(tmp_path: Path) -> None:
    folder = write_package(tmp_path / "web", {**package_files(), NESTED_FILE: b"{}"})
    assert load_tree(folder).root.archive == stored_archive(
        package_files(), load_tree(folder).root.package.nested
    )


def test_the_example_has_a_cache_and_a_pod_that_makes_a_password() -> None:
    tree = load_tree(STORE)
    assert names(tree) == ["cache", "store"]
    package = tree.root.package
    task = package.task("password")
    assert isinstance(task, PipeTask)
    installation = Installation(package, "shop", "prod")
    place = StepPlace("deploy", "store", "password")
    text = render_package(installation, [task.pod], place)[task.pod]
    assert isinstance(text, str)
    [pod] = read_objects(text).objects
    assert list(pod_faults(pod, task.pipe)) == []
