"""What is deployed, from a service file and the values given with it."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from temporal_plans.cli.files import FileKind, environment, expect, rendered
from temporal_plans.client.services import Deployment
from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.recovery_policy import RecoveryPolicy
from temporal_plans.messages.service import Rollout


def deployment(
    path: Path,
    given: Iterable[str] | None,
    files: Iterable[Path] | None,
    *,
    pool: str | None = None,
    rollout: Rollout | None = None,
    by: str = "",
    reason: str = "",
) -> Deployment:
    """The service in a file. Its values also say how failed tasks are tried again and when pods are
    replaced (reference 3.9, 6.5). Raises SpecError, typer.BadParameter."""
    expect(path, FileKind.SERVICE)
    values = environment(path, given, files)
    backoff, recovery = _policies(values)
    return Deployment(
        spec=rendered(path, values),
        pool=pool,
        backoff=backoff,
        recovery=recovery,
        rollout=rollout or Rollout(),
        by=by,
        reason=reason,
    )


def _policies(values: Mapping[str, str]) -> tuple[Backoff, RecoveryPolicy]:
    """Raises SpecError with the problems of both."""
    problems: list[Problem] = []
    backoff, recovery = Backoff(), RecoveryPolicy()
    try:
        backoff = Backoff.from_environment(values)
    except SpecError as error:
        problems += error.problems
    try:
        recovery = RecoveryPolicy.from_environment(values)
    except SpecError as error:
        problems += error.problems
    if problems:
        raise SpecError(problems, source="values")
    return backoff, recovery
