"""Tasks of a kind that is not built in."""

from typing import Any, Literal

from pydantic import Field

from temporal_plans.domain.packages.tasks.task import PackageTask
from temporal_plans.domain.packages.value import Text


class CustomTask(PackageTask):
    """A task of a kind that developers register, or of an unknown kind. In a file ``kind`` is what
    is ``type`` here."""

    kind: Literal["custom"] = "custom"
    type: Text = Field(default="", description="The name of the kind.")
    spec: dict[str, Any] = Field(default={}, description="What the kind defines.")
