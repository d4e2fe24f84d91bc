"""The task kind ``Dummy``."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from temporal_plans.domain.packages.tasks.task import PackageTask
from temporal_plans.domain.packages.value import Flag
from temporal_plans.domain.values.refusal import Reason


class DummyTask(PackageTask):
    """Do nothing: succeed, fail, or never end."""

    kind: Literal["Dummy"] = "Dummy"
    done: Flag = Field(default=False, description="Whether it ends. Else its plan never does.")
    want_err: Flag = Field(default=False, description="Whether it fails.")
    fatal: Flag = Field(default=False, description="Whether it fails without a retry.")

    def doubts(self) -> Iterator[Reason]:
        if not (self.done or self.want_err):
            yield Reason(
                field="done",
                problem="is not true: a plan with this task runs until it is stopped",
                fix="write done: true, if the plan is to end",
            )
