"""Activities that carry out changes of entities that are operator packages."""

from collections.abc import Mapping
from typing import Any, cast

from temporalio import activity
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.fleets.installations import PackageChange, PackageInstallations
from temporal_plans.activities.fleets.kinds.record import as_texts
from temporal_plans.activities.fleets.releases import Releases
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.values.refusal import Code, Refusal, RefusedError
from temporal_plans.messages.fleets.installations import Installation
from temporal_plans.messages.fleets.payloads import PACKAGE_FILE

SECRET_KEY = "secret"  # in a configuration: {PASSWORD: {secret: FILE}}
"""A value with this key alone names a file of the cluster's worker, which has the value."""


class PackageInstallationActivities:
    """``installations`` drives the packages."""

    def __init__(self, releases: Releases, installations: PackageInstallations) -> None:
        self._releases = releases
        self._installations = installations

    @activity.defn(name="check_package")
    async def check_package(self, one: Installation) -> None:
        """Check whether an entity can have a release, before anything changes. Raises
        ApplicationError (Refused, not retryable)."""
        async with heartbeats():
            refusal = await self._installations.check(await self._change(one))
        if refusal is not None:
            raise refusal_error(refusal)

    @activity.defn(name="deploy_package")
    async def deploy_package(self, one: Installation) -> None:
        """Deploy the package of a release as the service of an entity. Raises ApplicationError
        (Refused, not retryable)."""
        async with heartbeats():
            change = await self._change(one)
            try:
                await self._installations.deploy(change)
            except RefusedError as error:
                raise refusal_error(error.refusal) from None

    @activity.defn(name="await_package")
    async def await_package(self, one: Installation) -> None:
        """Wait until the package of an entity is installed. Raises ApplicationError (not retryable)
        when its plan is in ERROR."""
        async with heartbeats():
            if why := await self._installations.wait(one.name):
                raise ApplicationError(why, type="NotDeployed", non_retryable=True)

    async def _change(self, one: Installation) -> PackageChange:
        payload = await self._releases.of_installation(one)
        if payload.package is None:
            text = f"the release {one.version} of {one.product} carries no package"
            raise refusal_error(Refusal.of(Code.NOT_FOUND, text, field=PACKAGE_FILE))
        own = {name: value for name, value in one.config.items() if not _is_secret(value)}
        return PackageChange(
            name=one.name,
            instance=one.entity,
            digest=payload.package.digest,
            parameters=as_texts(own),
            secrets=_secrets(one.config),
            offered={
                **as_texts(one.environment_config),
                "ENVIRONMENT": one.environment,
                "ENTITY": one.entity,
                "VERSION": one.version or "",
            },
            cluster=one.cluster or "",
            namespace=one.namespace or "",
            downgrade=one.downgrade,
            reason=one.reason,
        )


def _is_secret(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    written = cast(dict[str, Any], value)
    return set(written) == {SECRET_KEY} and isinstance(written[SECRET_KEY], str)


def _secrets(config: Mapping[str, Any]) -> dict[str, str]:
    return {name: value[SECRET_KEY] for name, value in config.items() if _is_secret(value)}
