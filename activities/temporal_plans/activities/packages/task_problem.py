"""Why a task can't go on."""

from temporal_plans.domain.packages.inventory import ObjectRef


class TaskProblem(Exception):
    """A task failed. ``passing`` is whether the same may succeed later: it is tried again. Else the
    step reads ERROR. ``about`` is the object in question."""

    def __init__(
        self, reason: str, *, passing: bool = False, about: ObjectRef | None = None
    ) -> None:
        super().__init__(reason)
        self.passing = passing
        self.about = about
