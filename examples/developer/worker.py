"""The worker of this project: it runs plans, and the workflows and activities that they use.

The connection is configured as that of the ``temporal`` CLI (TEMPORAL_ADDRESS ...).
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from activities.site import build_site, fetch_page, install_site, prune_builds, record_release
from temporalio.worker import Worker
from workflows.close_release import CloseRelease
from workflows.house_rules import asked_first, readiness_checked, smoke_tested
from workflows.http_check import http_check
from workflows.zones import zone_by_zone

from temporal_plans.sdk import PlansPlugin, connect

STRATEGIES = {"zone-by-zone": zone_by_zone}
STEP_KINDS = {"http-check": http_check}
WORKFLOWS = [CloseRelease]
ACTIVITIES: Sequence[Callable[..., Any]] = [
    build_site,
    fetch_page,
    install_site,
    prune_builds,
    record_release,
]


async def main() -> None:
    plugin = PlansPlugin(
        strategies=STRATEGIES,
        step_kinds=STEP_KINDS,
        config_validators=[readiness_checked],
        plan_customizers=[smoke_tested],
        recoverers=[asked_first],
    )
    client = await connect(plugins=[plugin])
    with ThreadPoolExecutor() as executor:
        await Worker(
            client,
            task_queue="plans",
            workflows=WORKFLOWS,
            activities=ACTIVITIES,
            activity_executor=executor,
        ).run()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
