"""Which service and which plan somebody means.

The service is said (``-s``, or TEMPORAL_PLAN_SERVICE), else it is the only one that there is. A
plan is the service's; without a service it is a workflow id, which may also be given in full:
``hello-world/deploy``.
"""

from temporal_plans.client.errors import Ambiguous, NotFound, PlanNotFound, ServiceNotFound
from temporal_plans.client.plans_client import PlansClient

_SAY_WHICH = "say which with -s/--service or TEMPORAL_PLAN_SERVICE"
_OR_NONE = "-s '' means a plan without a service"


async def the_service(client: PlansClient, said: str | None) -> str:
    """The name of the service. Raises ServiceNotFound, Ambiguous."""
    if name := (said or "").strip("/"):
        return name
    services = await client.services()
    if not services:
        raise ServiceNotFound
    if len(services) > 1:
        raise Ambiguous(f"there are several services, {_SAY_WHICH}: {', '.join(services)}")
    return services[0]


async def the_plan(client: PlansClient, text: str, said: str | None) -> str:
    """The workflow id of the plan. Raises NotFound, Ambiguous."""
    if said:
        return await _of_service(client, text, said.strip("/"))
    if await client.exists(text):
        return text
    services = [] if said == "" else await client.services()
    if len(services) == 1:
        return await _of_service(client, text, services[0])
    plans = [plan for service in services for plan in await client.plans(service)]
    if text in {plan.name for plan in plans}:
        raise Ambiguous(
            f"several services have plans, {_SAY_WHICH}: {', '.join(services)}; {_OR_NONE}"
        )
    own = [run.id for run in await client.own_plans()]
    raise PlanNotFound(text, [*own, *(plan.workflow_id for plan in plans)])


async def _of_service(client: PlansClient, text: str, service: str) -> str:
    plans = {plan.name: plan.workflow_id for plan in await client.plans(service)}
    if text in plans.values():
        return text
    if text not in plans and await client.exists(text):
        raise NotFound(f"service {service!r} has no plan {text!r}, but {_OR_NONE}, and one has it")
    if text not in plans:
        raise PlanNotFound(text, plans, service=service)
    return plans[text]
