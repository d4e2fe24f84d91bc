"""Telling one start of a child workflow from the next of the same id.

A signal names a workflow, not its run. One that was meant for a child that had just ended would
reach the child that is started in its place, and hold that back for ever.
"""

from temporalio import workflow


def new_token() -> str:
    """For a child that is to be started now."""
    return workflow.uuid4().hex[:12]
