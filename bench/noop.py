"""The work of every step here: none, so that all that is measured is the engine."""

from temporalio import activity


@activity.defn
async def noop() -> None:
    return None
