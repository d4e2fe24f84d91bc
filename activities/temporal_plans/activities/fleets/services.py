"""Activities that carry out changes of entities that are services."""

from temporalio import activity
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.fleets.installations import Installations
from temporal_plans.activities.fleets.kinds.record import as_texts
from temporal_plans.activities.fleets.releases import Releases
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.values.refusal import RefusedError
from temporal_plans.messages.fleets.installations import Installation


class InstallationActivities:
    """``installations`` drives the services."""

    def __init__(self, releases: Releases, installations: Installations) -> None:
        self._releases = releases
        self._installations = installations

    @activity.defn(name="deploy_installation")
    async def deploy_installation(self, one: Installation) -> None:
        """Deploy the service of an entity with a release. Raises ApplicationError (Refused, not
        retryable) when it can't be deployed."""
        async with heartbeats():
            payload = await self._releases.of_installation(one)
            values = {
                **as_texts(one.environment_config),
                **as_texts(one.config),
                "ENVIRONMENT": one.environment,
                "ENTITY": one.entity,
                "VERSION": one.version or "",
            }
            try:
                await self._installations.deploy(one.name, payload.files, values, one.reason)
            except RefusedError as error:
                raise refusal_error(error.refusal) from None

    @activity.defn(name="await_installation")
    async def await_installation(self, one: Installation) -> None:
        """Wait until the service of an entity is deployed. Raises ApplicationError (not retryable)
        when its deployment is in ERROR."""
        async with heartbeats():
            if why := await self._installations.wait(one.name):
                raise ApplicationError(why, type="NotDeployed", non_retryable=True)

    @activity.defn(name="restart_installation")
    async def restart_installation(self, one: Installation) -> None:
        """Restart the service of an entity, and wait until it runs again. Raises ApplicationError
        (Refused, not retryable) when it can't be restarted."""
        async with heartbeats():
            try:
                await self._installations.restart(one.name, one.reason)
            except RefusedError as error:
                raise refusal_error(error.refusal) from None

    @activity.defn(name="remove_installation")
    async def remove_installation(self, one: Installation) -> None:
        """Uninstall the service of an entity."""
        async with heartbeats():
            await self._installations.remove(one.name, one.reason)
