"""Values of secret parameters, and where they must not be."""

import base64

import pytest

from temporal_plans.activities.mechanics.secrets import EnvironmentSecrets, SecretLookup
from temporal_plans.activities.packages.secret_values import HiddenValues, secret_values
from temporal_plans.activities.packages.task_problem import TaskProblem


class Failing:
    async def find(self, reference: str) -> bytes | None:
        raise OSError("the value is hunter2")


class Binary:
    async def find(self, reference: str) -> bytes | None:
        return b"\xff"


async def test_values_are_looked_up_by_reference() -> None:
    lookup = SecretLookup([EnvironmentSecrets("", {"DB_PASS": "value"})])
    assert await secret_values({"PASSWORD": "db/pass"}, lookup) == {"PASSWORD": "value"}


@pytest.mark.parametrize(
    ("lookup", "text", "passing"),
    [
        (SecretLookup([]), "parameter P: secret 'r' was not found; .* worker: none", False),
        (SecretLookup([Binary()]), "parameter P: secret 'r' is not UTF-8", False),
        (
            SecretLookup([Failing()]),
            "parameter P: secret 'r' could not be looked up by Failing: OSError",
            True,
        ),
    ],
)
async def test_a_value_may_not_be_there(lookup: SecretLookup, text: str, passing: bool) -> None:
    with pytest.raises(TaskProblem, match=text) as problem:
        await secret_values({"P": "r"}, lookup)
    assert problem.value.passing is passing
    assert "hunter2" not in str(problem.value)


def secret(**more: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it"}, **more}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("spec: value-of-parameter is wrong", "spec: ***** is wrong"),
        (f"data: {base64.b64encode(b'value-of-parameter').decode()}", "data: *****"),
        ("data: texted and kept true", "data: ***** and kept true"),
        ("data: decoded or ZGVjb2RlZA==", "data: ***** or *****"),
        ("data: nested and listed", "data: ***** and *****"),
    ],
)
def test_values_are_hidden(text: str, shown: str) -> None:
    hidden = HiddenValues()
    hidden.add_values(["value-of-parameter"])
    data = {"a": base64.b64encode(b"decoded").decode(), "b": "%%%%", "c": 5}
    hidden.add_objects([secret(stringData={"a": "texted", "b": "1"}, data=data)])
    hidden.add_objects([secret(stringData={"a": {"b": "nested", "c": ["listed"]}})])
    hidden.add_objects([{**secret(data={"a": "kept"}), "kind": "ConfigMap"}, secret(data=None)])
    assert hidden.hide(text) == shown


def test_a_name_tells_a_value_that_is_long() -> None:
    hidden = HiddenValues()
    hidden.add_values(["admin", "long-value"])
    assert hidden.tells("ConfigMap of-long-value")
    assert not hidden.tells("ConfigMap admin-settings")
