"""Verbs for pools and their agents."""

from collections.abc import Sequence

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.client.errors import PlansError, PoolNotFound
from temporal_plans.client.temporal.workflow_errors import (
    EndedBeforeAnswer,
    NoSuchWorkflow,
    WorkflowIsClosed,
)
from temporal_plans.client.verbs.base import LIST_LIMIT, RUNNING, Verbs
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.messages.addresses import pool_id
from temporal_plans.messages.pools import AgentView, DeregisterRequest, DeregisterResult, PoolStatus


class PoolVerbs(Verbs):
    """Pools, and the agents in them."""

    async def pools(self) -> list[str]:
        """Return the names of all pools."""
        running = await self._gateway.list(f"WorkflowType = 'Pool' AND {RUNNING}", LIST_LIMIT)
        return sorted(run.id.removeprefix("pool/") for run in running)

    async def pool(self, name: str = "default") -> PoolStatus:
        """Return a pool's agents, reservations and waiting requirements. Raises PoolNotFound."""
        try:
            return await self._gateway.query(pool_id(name), "status", PoolStatus, open_only=True)
        except (NoSuchWorkflow, WorkflowIsClosed):
            raise PoolNotFound(name, await self.pools()) from None

    async def show_pools(self) -> dict[str, PoolStatus | PlansError]:
        """Return all pools by name; for a pool that does not answer, the error."""

        async def shown(name: str) -> PoolStatus | PlansError:
            try:
                return await self.pool(name)
            except PlansError as error:
                return error

        names = await self.pools()
        return dict(zip(names, await gather_bounded(map(shown, names)), strict=True))

    async def silent_agents(self) -> dict[str, str]:
        """Return the states of all agents that are not ALIVE, by id."""
        agents = await self._agents()
        return {
            view.info.id: view.state.value for view in agents if view.state is not AgentState.ALIVE
        }

    async def remove_agent(
        self, agent: str, *, pool: str = "default", force: bool = False
    ) -> DeregisterResult:
        """Remove an agent from its pool permanently.

        ``force`` removes its reservations as well: their tasks are GONE_BY_OPERATOR, and their pods
        are replaced. Raises PoolNotFound; Refused for an unknown agent, and without ``force`` for
        an agent with reservations.
        """
        request = DeregisterRequest(agent=agent, force=force)
        try:
            return await self._gateway.update(
                pool_id(pool), "deregister", request, DeregisterResult
            )
        except (NoSuchWorkflow, WorkflowIsClosed, EndedBeforeAnswer):
            raise PoolNotFound(pool, await self.pools()) from None

    async def _all_pools(self) -> Sequence[PoolStatus]:
        """Return the pools that answer: a pool that does not must not hide the others."""
        answers = (await self.show_pools()).values()
        return [one for one in answers if isinstance(one, PoolStatus)]

    async def _agents(self) -> Sequence[AgentView]:
        return [agent for pool in await self._all_pools() for agent in pool.agents]
