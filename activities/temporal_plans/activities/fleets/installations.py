"""What carries services of entities out: the worker's plugin gives one that drives its client."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from temporal_plans.domain.values.refusal import Reason, Refusal


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

    async def restart(self, name: str, reason: str) -> None:
        """Restart the pods of a service, one after the other, each when the tasks of the one before
        have reached their goals again. A repeated call restarts all of them. Raises RefusedError
        where there is no such service, or it refuses."""
        ...

    async def remove(self, name: str, reason: str) -> None:
        """Uninstall a service, and wait until it is gone; nothing where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class PackageChange:
    """An operator package that is to be installed under a name, or to replace what is installed.

    ``instance`` is its name in templates. ``digest`` is that of the archive in the content store.
    ``parameters`` and ``secrets`` (names of files of the cluster's worker) are all that it is to
    have, and it must have parameters of these names; ``offered`` are values that it takes where it
    has such a parameter. Empty texts: the default place. ``downgrade``: its version may fall.
    """

    name: str
    instance: str
    digest: str
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    offered: Mapping[str, str] = field(default_factory=dict[str, str])
    cluster: str = ""
    namespace: str = ""
    downgrade: bool = False
    reason: str = ""


class PackageInstallations(Protocol):
    """Deploys and follows operator packages. Every call may be repeated."""

    async def faults(self, digest: str, nested: Sequence[str]) -> Sequence[Reason]:
        """Return why the package of a digest, with those nested in it, can't be published."""
        ...

    async def check(self, change: PackageChange) -> Refusal | None:
        """Return why a change would be refused, whatever runs. Changes nothing."""
        ...

    async def deploy(self, change: PackageChange) -> None:
        """Carry a change out, when no plan of the service is in the way any more. Raises
        RefusedError."""
        ...

    async def wait(self, name: str) -> str:
        """Wait until the plan of the last change is COMPLETE, for the whole time. Return why it
        can't be; empty when it is."""
        ...
