"""An activity without work, so that only the engine is measured."""

from temporalio import activity


@activity.defn
async def noop() -> None:
    return None
