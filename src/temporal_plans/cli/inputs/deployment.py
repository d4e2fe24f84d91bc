"""Deployments from a service file and its values."""

from collections.abc import Mapping

from temporal_plans.cli.inputs.files import (
    FileKind,
    ServiceFileOptions,
    environment,
    expect,
    rendered,
)
from temporal_plans.client.verbs.services import Deployment
from temporal_plans.domain.owners.rollout import Rollout
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.values.refusal import Reason, SpecError


def deployment(
    file: ServiceFileOptions,
    *,
    pool: str | None = None,
    rollout: Rollout | None = None,
    by: str = "",
    reason: str = "",
) -> Deployment:
    """Return the deployment of a service file. Its values also set how failed tasks are retried and
    when pods are replaced (behaviour 3.9, 6.5). Raises SpecError, typer.BadParameter."""
    expect(file.path, FileKind.SERVICE)
    values = environment(file)
    backoff, recovery = _policies(values)
    return Deployment(
        spec=rendered(file, values),
        pool=pool,
        backoff=backoff,
        recovery=recovery,
        rollout=rollout or Rollout(),
        by=by,
        reason=reason,
    )


def _policies(values: Mapping[str, str]) -> tuple[Backoff, RecoveryPolicy]:
    """Return both policies. Raises SpecError with the problems of both."""
    problems: list[Reason] = []
    backoff, recovery = Backoff(), RecoveryPolicy()
    try:
        backoff = Backoff.from_environment(values)
    except SpecError as error:
        problems += error.reasons
    try:
        recovery = RecoveryPolicy.from_environment(values)
    except SpecError as error:
        problems += error.reasons
    if problems:
        raise SpecError(problems, source="values")
    return backoff, recovery
