"""``PlansClient``: all operations on services, plans and the cluster, with typed results.

The command line and every other front end talk to Temporal only through this class. It combines the
groups of verbs, a module each.
"""

from temporalio.client import Client

from temporal_plans.client.temporal.gateway import Gateway
from temporal_plans.client.temporal.temporal_gateway import TemporalGateway
from temporal_plans.client.verbs.contents import ContentVerbs
from temporal_plans.client.verbs.explaining import ExplainVerbs
from temporal_plans.client.verbs.promotions import PromotionVerbs
from temporal_plans.client.verbs.schedules import ScheduleVerbs
from temporal_plans.client.verbs.takeover import TakeoverVerbs
from temporal_plans.client.verbs.tasks import TaskVerbs


class PlansClient(
    TaskVerbs, ExplainVerbs, ContentVerbs, PromotionVerbs, ScheduleVerbs, TakeoverVerbs
):
    """All verbs, over a connected client (``connect``).

    Every verb may raise ``ServerUnreachableError``, and ``WorkerUnreachable`` when a workflow must
    answer. A plan is addressed by its workflow id: ``<service>/<plan>``, or the result of ``run``.
    """

    def __init__(self, client: Client | None = None, *, gateway: Gateway | None = None) -> None:
        """Use a client or, in tests, another gateway."""
        if gateway is None:
            if client is None:
                raise TypeError("PlansClient needs a client or a gateway")
            gateway = TemporalGateway(client)
        super().__init__(gateway)
