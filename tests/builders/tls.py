"""Certificates, and servers that want them."""

import ssl
from pathlib import Path
from typing import NamedTuple

import trustme


class Pair(NamedTuple):
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority with files in ``folder``."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self.path = folder / f"{name}.pem"
        self._authority.cert_pem.write_to_path(self.path)

    def client(self, name: str) -> Pair:
        """A certificate for a client."""
        issued = self._authority.issue_cert(name)
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        issued.cert_chain_pems[0].write_to_path(pair.certificate)
        issued.private_key_pem.write_to_path(pair.key)
        return pair

    def server(self, name: str = "127.0.0.1", *, mutual: bool = False) -> ssl.SSLContext:
        """What a server of HTTP/2 has; ``mutual``: it wants certificates of this authority."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._authority.issue_cert(name).configure_cert(context)
        context.set_alpn_protocols(["h2"])
        if mutual:
            context.verify_mode = ssl.CERT_REQUIRED
            self._authority.configure_trust(context)
        return context
