"""What carries services of entities out: the worker's plugin gives one that drives its client."""

from collections.abc import Mapping
from typing import Protocol


class Installations(Protocol):
    """Deploys, follows and removes services by name. Every call may be repeated."""

    async def deploy(
        self, name: str, files: Mapping[str, str], values: Mapping[str, str], reason: str
    ) -> None:
        """Deploy the ``svc.yml`` among the files under a name, with values for its template. Raises
        SpecError for a file that can't be used, and RefusedError where the change is refused."""
        ...

    async def wait(self, name: str) -> str:
        """Wait until a service is deployed, for the whole time. Return why it can't be; empty when
        it is."""
        ...

    async def remove(self, name: str, reason: str) -> None:
        """Uninstall a service, and wait until it is gone; nothing where there is none."""
        ...
