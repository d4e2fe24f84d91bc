"""Certificates, tokens and kubeconfigs of a control plane, made in its folder."""

import json
from pathlib import Path

import trustme

TOKENS = {"admin": "system:masters", "programs": "system:masters", "nobody": "tests"}
"""Users and the group of each. A token is the user's name with ``-token``: only this machine can
connect. ``nobody`` may do nothing until a test gives it a role."""


class Credentials:
    """The files in ``folder`` that the programs of a control plane are started with."""

    def __init__(self, folder: Path, server: str) -> None:
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
        lines = [f'{_token(user)},{user},{user},"{group}"' for user, group in TOKENS.items()]
        self.tokens.write_text("\n".join(lines) + "\n")
        self.tokens.chmod(0o600)

    def kubeconfig(self, user: str) -> Path:
        """Write the kubeconfig of a user of ``TOKENS`` and return its file."""
        return self.kubeconfig_of(user, _token(user))

    def kubeconfig_of(self, user: str, token: str) -> Path:
        """Write a kubeconfig with a token and return its file."""
        cluster = {"server": self._server, "certificate-authority": str(self.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
            "current-context": "tests",
        }
        file = self._folder / f"{user}.kubeconfig"
        file.write_text(json.dumps(content, indent=2))
        file.chmod(0o600)
        return file


def _token(user: str) -> str:
    return f"{user}-token"
