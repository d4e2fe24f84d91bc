"""The objects that keep what Pipe tasks made."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.domain.packages.pipes.artefact import artefact, for_step_run, is_of_step_run
from temporal_plans.domain.packages.pipes.env_file import ENTRIES_LIMIT, read_env_file
from temporal_plans.domain.packages.tasks.pipe import PipeFile
from temporal_plans.domain.values.refusal import SpecError

SECRET, CONFIG_MAP = "Secret", "ConfigMap"


def file(kind: str) -> PipeFile:
    return PipeFile(file="/made/in/cert.pem", kind=kind, key="cert")


def env_file(kind: str) -> PipeFile:
    return PipeFile(env_file="/made/settings", kind=kind, key="settings")


@pytest.mark.parametrize(
    ("made", "content", "rest"),
    [
        pytest.param(
            file(SECRET),
            b"\x00\xff",
            {"type": "Opaque", "data": {"cert.pem": "AP8="}},
            id="secret",
        ),
        pytest.param(
            file(CONFIG_MAP), b"\x00\xff", {"binaryData": {"cert.pem": "AP8="}}, id="config-map"
        ),
        pytest.param(
            env_file(SECRET),
            b"A=1\nB=x=y\n",
            {"type": "Opaque", "data": {"A": "MQ==", "B": "eD15"}},
            id="secret-of-env-file",
        ),
        pytest.param(
            env_file(CONFIG_MAP),
            b"A=1\nB=x=y\n",
            {"data": {"A": "1", "B": "x=y"}},
            id="config-map-of-env-file",
        ),
        pytest.param(
            file(SECRET), b"", {"type": "Opaque", "data": {"cert.pem": ""}}, id="empty-file"
        ),
    ],
)
def test_a_file_becomes_an_object(made: PipeFile, content: bytes, rest: dict[str, Any]) -> None:
    head = {"apiVersion": "v1", "kind": made.kind, "metadata": {"name": "a.b"}}
    assert artefact(made, "a.b", content) == {**head, **rest}


def test_an_object_says_for_which_run_of_the_step_it_was_made() -> None:
    made = artefact(file(SECRET), "a", b"")
    marked = for_step_run({**made, "metadata": {"name": "a", "annotations": {"b": "c"}}}, "token")
    assert marked["metadata"] == {
        "name": "a",
        "annotations": {"b": "c", "temporal-plans/step-run": "token"},
    }
    assert is_of_step_run(marked, "token")
    assert not is_of_step_run(marked, "other")
    assert not is_of_step_run(made, "token")
    assert not is_of_step_run(None, "token")
    assert not is_of_step_run(for_step_run(made, ""), "")


@pytest.mark.parametrize(
    ("content", "values"),
    [
        pytest.param(b"", {}, id="empty"),
        pytest.param(b"\xef\xbb\xbfA=1", {"A": "1"}, id="byte-order-mark"),
        pytest.param(b"# a\n\n  \n  # b\nA=1\n", {"A": "1"}, id="comments-and-blank-lines"),
        pytest.param(b"  A=1\r\nB=\r\n", {"A": "1", "B": ""}, id="line-ends-of-windows"),
        pytest.param(b"A= x # y ", {"A": " x # y "}, id="a-value-is-the-rest-of-the-line"),
        pytest.param(b"a.b-c_D=1", {"a.b-c_D": "1"}, id="all-characters-of-names"),
        pytest.param("A=ä".encode(), {"A": "ä"}, id="utf-8"),
    ],
)
def test_an_env_file_is_read(content: bytes, values: dict[str, str]) -> None:
    assert read_env_file(content) == values


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        pytest.param(b"A=1\nsecret", "line 2", "has no =", id="no-equals"),
        pytest.param(
            b"1A=secret",
            "line 1",
            "has a name that can't be one of an environment variable",
            id="digit",
        ),
        pytest.param(
            b"A B=secret",
            "line 1",
            "has a name that can't be one of an environment variable",
            id="white-space",
        ),
        pytest.param(
            b"..=secret",
            "line 1",
            "has a name that can't be one of an environment variable",
            id="dots",
        ),
        pytest.param(
            b"=secret",
            "line 1",
            "has a name that can't be one of an environment variable",
            id="no-name",
        ),
        pytest.param(b"A=1\nA=secret", "line 2", "has the name of an earlier line", id="twice"),
        pytest.param(b"A=secret\xff", "line 1", "is not UTF-8", id="bytes"),
    ],
)
def test_an_env_file_is_refused_without_its_content(
    content: bytes, line: str, problem: str
) -> None:
    with pytest.raises(SpecError) as refused:
        read_env_file(content)
    (reason,) = refused.value.reasons
    assert (reason.field, reason.problem, reason.value) == (line, problem, None)
    assert "secret" not in str(refused.value)


def test_an_env_file_has_a_limit() -> None:
    lines = [f"A{number}=" for number in range(ENTRIES_LIMIT + 1)]
    assert len(read_env_file("\n".join(lines[1:]).encode())) == ENTRIES_LIMIT
    with pytest.raises(SpecError, match="has more than 1000 names"):
        read_env_file("\n".join(lines).encode())


@given(st.binary())
def test_any_content_is_read_or_refused(content: bytes) -> None:
    with suppress(SpecError):
        assert len(read_env_file(content)) <= content.count(b"=")
