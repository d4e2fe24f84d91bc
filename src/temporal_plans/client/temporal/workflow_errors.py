"""Why a call to a workflow has no answer."""

from temporal_plans.client.temporal.executions import Ended


class NoSuchWorkflow(Exception):
    """No workflow of this id is known to the server, open or closed."""


class WorkflowIsClosed(Exception):
    """The workflow has ended. ``ended`` is None when the server did not report how."""

    def __init__(self, ended: Ended | None = None) -> None:
        super().__init__(ended)
        self.ended = ended


class WorkflowIsOpen(Exception):
    """A workflow with this id is already running."""


class WorkflowIsEnding(Exception):
    """The workflow accepts no more updates, because it is about to end."""


class EndedBeforeAnswer(Exception):
    """The workflow accepted the update, and ended before it answered."""
