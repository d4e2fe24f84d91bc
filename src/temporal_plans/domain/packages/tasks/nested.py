"""The task kind ``KudoOperator``."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from temporal_plans.domain.packages.tasks.task import PackageTask
from temporal_plans.domain.packages.value import Text
from temporal_plans.domain.values.refusal import Reason


class NestedTask(PackageTask):
    """Install another package as a service of its own, or change it, and wait for its plan."""

    kind: Literal["KudoOperator"] = "KudoOperator"
    package: Text = Field(
        default="", description="A folder or archive, relative to this package, or an address."
    )
    app_version: Text = Field(default="", description="The version of its application.")
    operator_version: Text = Field(default="", description="The version of the package.")
    instance_name: Text = Field(
        default="", description="The name of its service; else NAME-PACKAGE."
    )
    parameter_file: Text = Field(
        default="", description="The template of its parameters: a YAML mapping."
    )

    @property
    def parameter_template(self) -> str:
        return self.parameter_file

    def faults(self) -> Iterator[Reason]:
        if not self.package:
            yield Reason(field="package", problem="is missing", fix="name a folder or an archive")
