"""How a process reaches a cluster."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ClusterAccess:
    """The cluster ``name``, as a kubeconfig and one of its contexts say. Without ``kubeconfig`` by
    the service account of the pod that the process runs in, or as the machine's own kubeconfig
    says."""

    name: str
    kubeconfig: Path | None = None
    context: str | None = None
