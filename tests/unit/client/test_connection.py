"""Where the connection's settings come from, and what is said when they are wrong."""

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio.service import TLSConfig

from temporal_plans.client.temporal.connection import (
    Connection,
    ConnectionSettingsError,
    ServerUnreachableError,
    connect,
)

PROFILES = """
[profile.default]
address = "file:7233"
namespace = "from-file"

[profile.prod]
address = "prod:7233"
api_key = "prod-key"
grpc_meta = { team = "blue", region = "north" }

[profile.prod.tls]
server_name = "temporal.example"
"""


@pytest.fixture(name="environ")
def _environ(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "temporal.toml"
    path.write_text(PROFILES)
    return {"TEMPORAL_CONFIG_FILE": str(path)}


def test_without_any_setting_the_local_server_is_meant(tmp_path: Path) -> None:
    nothing = {"TEMPORAL_CONFIG_FILE": str(tmp_path / "absent.toml")}
    assert Connection().resolve(nothing) == {
        "target_host": "localhost:7233",
        "namespace": "default",
    }


@pytest.mark.parametrize(
    ("variables", "flags", "expected"),
    [
        pytest.param({}, {}, ("file:7233", "from-file"), id="profile"),
        pytest.param(
            {"TEMPORAL_ADDRESS": "env:1"}, {}, ("env:1", "from-file"), id="environment-over-profile"
        ),
        pytest.param(
            {"TEMPORAL_ADDRESS": "env:1", "TEMPORAL_NAMESPACE": "env"},
            {"address": "flag:2"},
            ("flag:2", "env"),
            id="flag-over-environment",
        ),
        pytest.param({}, {"profile": "prod"}, ("prod:7233", "default"), id="profile-by-flag"),
        pytest.param(
            {"TEMPORAL_PROFILE": "prod"}, {}, ("prod:7233", "default"), id="profile-by-environment"
        ),
    ],
)
def test_flags_win_over_environment_over_profile(
    environ: dict[str, str],
    variables: dict[str, str],
    flags: dict[str, Any],
    expected: tuple[str, str],
) -> None:
    config = Connection(**flags).resolve(environ | variables)
    assert (config.get("target_host"), config.get("namespace")) == expected


def test_the_environment_is_the_process_s_own(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TEMPORAL_NAMESPACE", "mine")
    assert Connection().resolve() == {"target_host": "file:7233", "namespace": "mine"}


def test_tls_of_profile_and_flags_is_one_configuration(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("authority")
    connection = Connection(
        profile="prod",
        tls_ca_path=tmp_path / "ca.pem",
        tls_cert_data="certificate",
        tls_key_data=SecretStr("key"),
        grpc_meta={"region": "south"},
    )
    config = connection.resolve(environ)
    assert config.get("tls") == TLSConfig(
        domain="temporal.example",
        server_root_ca_cert=b"authority",
        client_cert=b"certificate",
        client_private_key=b"key",
    )
    assert config.get("rpc_metadata") == {"team": "blue", "region": "south"}
    assert config.get("api_key") == "prod-key"


@pytest.mark.parametrize(
    ("flags", "tls"),
    [
        pytest.param({}, None, id="nothing-said"),
        pytest.param({"tls": True}, TLSConfig(), id="on"),
        pytest.param({"api_key": "key"}, True, id="an-api-key-needs-it"),
        pytest.param({"api_key": "key", "tls": False}, False, id="off-all-the-same"),
        pytest.param({"tls_server_name": "a"}, TLSConfig(domain="a"), id="a-setting-of-it"),
    ],
)
def test_when_tls_is_used(environ: dict[str, str], flags: dict[str, Any], tls: object) -> None:
    assert Connection(**flags).resolve(environ).get("tls") == tls


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param({"profile": "nope"}, "Profile 'nope' not found", id="unknown-profile"),
        pytest.param({"config_file": "/no/such.toml"}, "/no/such.toml is not a file", id="no-file"),
        pytest.param({"address": "http://x:1"}, "not HOST:PORT (found 'http://x:1')", id="a-url"),
        pytest.param({"address": "temporal"}, "address: not HOST:PORT", id="no-port"),
        pytest.param(
            {"tls_ca_path": "/no/ca.pem"}, "/no/ca.pem: No such file", id="no-certificate"
        ),
        pytest.param(
            {"tls_ca_path": "/a", "tls_ca_data": "b"},
            "--tls-ca-path or --tls-ca-data, not both",
            id="path-and-data",
        ),
        pytest.param({"tls_cert_data": "NaN"}, "--tls-key-path: a certificate", id="no-key"),
        pytest.param({"tls_key_data": "NaN"}, "--tls-cert-path: a certificate", id="no-own-cert"),
        pytest.param(
            {"tls_disable_host_verification": True}, "always verifies", id="no-verification"
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    environ: dict[str, str], flags: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConnectionSettingsError) as refused:
        Connection(**flags).resolve(environ)
    assert message in str(refused.value)


def test_a_variable_that_cannot_be_obeyed_is_not_ignored(environ: dict[str, str]) -> None:
    with pytest.raises(ConnectionSettingsError, match="always verifies"):
        Connection().resolve(environ | {"TEMPORAL_TLS_DISABLE_HOST_VERIFICATION": "true"})


@pytest.mark.parametrize(
    "name", ["TEMPORAL_API_KEY", "TEMPORAL_TLS", "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"]
)
def test_an_empty_variable_is_as_good_as_absent(environ: dict[str, str], name: str) -> None:
    absent = {key: value for key, value in environ.items() if key != name}
    assert Connection().resolve(absent | {name: ""}) == Connection().resolve(absent)


def test_an_empty_api_key_does_not_turn_tls_on() -> None:
    environ = {"TEMPORAL_CONFIG_FILE": os.devnull, "TEMPORAL_API_KEY": ""}
    config = Connection().resolve(environ)
    assert (config.get("tls"), config.get("api_key")) == (None, None)


def test_variables_that_are_not_utf_8_are_refused_if_they_matter(environ: dict[str, str]) -> None:
    wrong = os.fsdecode(b"\xff")
    assert Connection().resolve(environ | {"OTHER": wrong}) == Connection().resolve(environ)
    with pytest.raises(ConnectionSettingsError, match="TEMPORAL_NAMESPACE: not UTF-8"):
        Connection().resolve(environ | {"TEMPORAL_NAMESPACE": wrong})


async def test_a_host_that_cannot_exist_is_refused(environ: dict[str, str]) -> None:
    with pytest.raises(ConnectionSettingsError, match="settings of the connection: invalid"):
        await connect(Connection(address="a b:1"), environ=environ)


def test_secrets_are_not_shown() -> None:
    shown = repr(Connection(api_key=SecretStr("hush"), tls_key_data=SecretStr("quiet")))
    assert "hush" not in shown
    assert "quiet" not in shown


async def test_nobody_there_is_told_with_the_address_and_what_to_do(
    environ: dict[str, str], unused_tcp_port: int
) -> None:
    address = f"127.0.0.1:{unused_tcp_port}"
    with pytest.raises(ServerUnreachableError) as unreachable:
        await connect(Connection(address=address), environ=environ)
    message = str(unreachable.value)
    assert f"no Temporal server answers at {address}: the connection was refused" in message
    assert "--address" in message
