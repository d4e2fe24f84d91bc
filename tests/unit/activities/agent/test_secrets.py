"""Looking secrets up."""

from pathlib import Path

import pytest

from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.sandbox.secrets import Secrets
from temporal_plans.activities.mechanics.secrets import (
    EnvironmentSecrets,
    FileSecrets,
    FunctionSecrets,
    InvalidSecretProvider,
    SecretProvider,
    secret_provider,
)


def own_function(reference: str) -> str | None:
    return {"a": "from a function"}.get(reference)


async def own_coroutine(reference: str) -> bytes | None:
    return b"from a coroutine" if reference == "a" else None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secrets" / "db").mkdir(parents=True)
    (tmp_path / "secrets" / "db" / "password").write_bytes(b"p\xff")
    (tmp_path / "outside").write_text("no secret")
    return tmp_path / "secrets"


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("db/password", b"p\xff"),
        ("/db/password", b"p\xff"),
        ("db", None),
        ("db/password/x", None),
        ("../outside", None),
        ("none", None),
    ],
)
async def test_files(folder: Path, reference: str, value: bytes | None) -> None:
    assert await FileSecrets(folder).find(reference) == value


@pytest.mark.parametrize(
    ("provider", "reference", "value"),
    [
        (EnvironmentSecrets("S_", {"S_DB_PASS_WORD": "x"}), "db/pass-word", b"x"),
        (EnvironmentSecrets("S_", {"DB": "x"}), "db", None),
        (FunctionSecrets(own_function), "a", b"from a function"),
        (FunctionSecrets(own_function), "b", None),
        (FunctionSecrets(own_coroutine), "a", b"from a coroutine"),
    ],
    ids=["variable", "no variable", "function", "function without", "coroutine"],
)
async def test_providers(provider: SecretProvider, reference: str, value: bytes | None) -> None:
    assert await provider.find(reference) == value


async def test_the_first_that_has_it_wins() -> None:
    providers = [EnvironmentSecrets("", {"A": "1"}), EnvironmentSecrets("", {"A": "2", "B": "3"})]
    secrets = Secrets(providers)
    assert await secrets.resolve("a", field="f") == b"1"
    assert await secrets.resolve("b", field="f") == b"3"


async def test_an_error_of_a_provider_is_told_without_its_text() -> None:
    def leaky(reference: str) -> str:
        raise ConnectionError("token=s3cr3t")

    with pytest.raises(TaskRefused) as caught:
        await Secrets([FunctionSecrets(leaky)]).resolve("a", field="pods.p.secrets.x")
    assert str(caught.value) == (
        "pods.p.secrets.x: secret 'a' could not be looked up by FunctionSecrets: ConnectionError"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("file:/run/secrets", FileSecrets),
        ("env:S_", EnvironmentSecrets),
        ("env:", EnvironmentSecrets),
        ("python:os.path:basename", FunctionSecrets),
    ],
)
def test_forms(text: str, kind: type[object]) -> None:
    assert isinstance(secret_provider(text), kind)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "vault:x",
        "file:",
        "python:",
        "python:os",
        "python:no.such:f",
        "python:os:no",
        "python:os:sep",
    ],
)
def test_forms_that_are_refused(text: str) -> None:
    with pytest.raises(InvalidSecretProvider, match="write file:<directory>"):
        secret_provider(text)
