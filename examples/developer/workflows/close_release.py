"""An ordinary workflow, independent of plans."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.site import Release, prune_builds, record_release

KEEP = 3  # releases
TIMEOUT = timedelta(seconds=30)


@workflow.defn
class CloseRelease:
    """Records a release and removes old builds."""

    @workflow.run
    async def run(self, release: Release) -> list[str]:
        await workflow.execute_activity(record_release, release, start_to_close_timeout=TIMEOUT)
        return await workflow.execute_activity(
            prune_builds, args=[release, KEEP], start_to_close_timeout=TIMEOUT
        )
