"""Certificates, tokens and kubeconfigs of a control plane, made in its folder."""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path

import trustme

USERS: Mapping[str, str] = {"admin": "system:masters", "programs": "system:masters"}
"""Users and the group of each."""


class Credentials:
    """The files in ``folder`` that the programs of a control plane are started with. ``users`` are
    more users, each with its group, which may do nothing until it is given a role."""

    def __init__(self, folder: Path, server: str, users: Mapping[str, str]) -> None:
        self._users = {**USERS, **users}
        self._tokens = {user: secrets.token_hex(16) for user in self._users}
        self.authority = folder / "authority.pem"
        self.certificate = folder / "server.pem"
        self.key = folder / "server.key"
        self.tokens = folder / "tokens.csv"
        self._folder = folder
        self._server = server

    def make(self) -> None:
        """Write all files; what is there is replaced."""
        authority = trustme.CA()
        served = authority.issue_cert("127.0.0.1", "localhost")
        authority.cert_pem.write_to_path(self.authority)
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in served.cert_chain_pems))
        self.key.write_bytes(served.private_key_pem.bytes())
        self.key.chmod(0o600)
        lines = [
            f'{self._tokens[user]},{user},{user},"{group}"' for user, group in self._users.items()
        ]
        self.tokens.touch(0o600)
        self.tokens.write_text("\n".join(lines) + "\n")

    def kubeconfig(self, user: str) -> Path:
        """Write the kubeconfig of a user and return its file."""
        return self.kubeconfig_of(user, self._tokens[user])

    def kubeconfig_of(self, user: str, token: str) -> Path:
        """Write a kubeconfig with a token and return its file."""
        cluster = {"server": self._server, "certificate-authority": str(self.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "local", "context": {"cluster": "local", "user": user}}],
            "current-context": "local",
        }
        file = self._folder / f"{user}.kubeconfig"
        file.touch(0o600)
        file.write_text(json.dumps(content, indent=2))
        return file
