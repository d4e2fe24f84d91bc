"""Resolution of service and plan names of the command line.

The service is that of ``-s`` or TEMPORAL_PLAN_SERVICE, else the only one. A plan is a plan of the
service; without a service it is a workflow id, which may also be given in full:
``hello-world/deploy``.
"""

from temporal_plans.client.errors import Ambiguous, NotFound, PlanNotFound, ServiceNotFound
from temporal_plans.client.plans_client import PlansClient

_CHOOSE = "choose one with -s/--service or TEMPORAL_PLAN_SERVICE"
_NO_SERVICE = "use -s '' for a plan without a service"


async def resolve_service(client: PlansClient, service_option: str | None) -> str:
    """Return the name of the service. Raises ServiceNotFound, Ambiguous."""
    if name := (service_option or "").strip("/"):
        return name
    services = await client.services()
    if not services:
        raise ServiceNotFound
    if len(services) > 1:
        raise Ambiguous(f"there are several services, {_CHOOSE}: {', '.join(services)}")
    return services[0]


async def resolve_plan(client: PlansClient, plan: str, service_option: str | None) -> str:
    """Return the workflow id of the plan. Raises NotFound, Ambiguous."""
    if service_option:
        return await _of_service(client, plan, service_option.strip("/"))
    if await client.exists(plan):
        return plan
    services = [] if service_option == "" else await client.services()
    if len(services) == 1:
        return await _of_service(client, plan, services[0])
    plans = [plan for service in services for plan in await client.plans(service)]
    if plan in {plan.name for plan in plans}:
        raise Ambiguous(
            f"several services have plans, {_CHOOSE}: {', '.join(services)}; {_NO_SERVICE}"
        )
    own = [run.id for run in await client.own_plans()]
    raise PlanNotFound(plan, [*own, *(plan.workflow_id for plan in plans)])


async def _of_service(client: PlansClient, plan: str, service: str) -> str:
    plans = {plan.name: plan.workflow_id for plan in await client.plans(service)}
    if plan in plans.values():
        return plan
    if plan not in plans and await client.exists(plan):
        raise NotFound(
            f"service {service!r} has no plan {plan!r}, but there is one without a service; "
            f"{_NO_SERVICE}"
        )
    if plan not in plans:
        raise PlanNotFound(plan, plans, service=service)
    return plans[plan]
