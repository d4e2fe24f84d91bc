"""The clusters of a worker, from the options of the command line."""

from collections.abc import Sequence
from pathlib import Path

import typer

from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.domain.values.names import name_fault

_OPTION = "--kubernetes"


def cluster_access(texts: Sequence[str]) -> tuple[ClusterAccess, ...]:
    """Return the clusters of texts ``NAME[=KUBECONFIG[:CONTEXT]]``. Raises typer.BadParameter for
    another text, a name twice, and a kubeconfig that is not there."""
    found = tuple(_access(text) for text in texts)
    names = [access.name for access in found]
    for name in names:
        if names.count(name) > 1:
            raise typer.BadParameter(f"{name!r} twice; write each cluster once", param_hint=_OPTION)
    return found


def _access(text: str) -> ClusterAccess:
    name, equals, where = text.partition("=")
    if fault := name_fault(name):
        raise typer.BadParameter(f"{text!r}: {fault}", param_hint=_OPTION)
    if not equals:
        return ClusterAccess(name)
    path, colon, context = where.partition(":")
    if not path or (colon and not context):
        raise typer.BadParameter(
            f"{text!r}: must be NAME, NAME=KUBECONFIG or NAME=KUBECONFIG:CONTEXT",
            param_hint=_OPTION,
        )
    kubeconfig = Path(path).expanduser()
    if not kubeconfig.is_file():
        raise typer.BadParameter(f"{text!r}: no file {path}", param_hint=_OPTION)
    return ClusterAccess(name, kubeconfig, context or None)
