"""Tokens that distinguish the starts of a child workflow under the same id.

A signal names a workflow, not its run. A signal to a child that has just ended would reach the
child that is started next under its id, and could block that one permanently.
"""

from temporalio import workflow


def new_token() -> str:
    """Return a token for a child that is about to be started."""
    return workflow.uuid4().hex[:12]
