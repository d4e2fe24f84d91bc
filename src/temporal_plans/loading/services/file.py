"""The schema of ``svc.yml`` (behaviour 12.4 to 12.7, plans 5.2): the form and each single value.

Rules that concern several fields are in ``loading.services.rules``. Null means "not given", so a
template may leave a value empty. Units: cpus and gpus in cores, memory and sizes in MB, times in
seconds.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

from temporal_plans.domain.services.service_name import length_problem, separator_problem
from temporal_plans.loading.forms.fields import (
    Shape,
    Shell,
    Text,
    field_error,
)
from temporal_plans.loading.services.sections.plans import PlanSectionFile
from temporal_plans.loading.services.sections.pods import PodFile
from temporal_plans.loading.services.sections.value import FileValue


class SchedulerFile(FileValue):
    """Settings of the service as a whole."""

    principal: Text | None = Field(
        default=None,
        description="The name under which resources are reserved. When absent:"
        " `<name>-principal`."
        " Without effect on agents.",
    )
    zookeeper: Text = Field(
        default="master.mesos:2181",
        description="The address of a coordination service. Without effect: none is used.",
    )
    user: Text = Field(
        default="root",
        description="The user that all tasks run as. An agent that is not root runs them as its own"
        " user, and the tasks' statuses say so. It can't change later.",
        examples=["nobody"],
    )
    shell: Shell | None = Field(
        default=None,
        description="The shell of all commands and checks: `bash`, `sh`, `auto` (bash where the"
        " machine has it, else sh) or an absolute path. When absent: the agent's, `auto` unless it"
        " was set. A launch fails on a machine without it.",
        examples=["bash"],
    )


def _service_name(name: str) -> str:
    for reason in (*length_problem(name), *separator_problem(name)):
        raise field_error(reason.problem, reason.fix)
    return name


_FOLDER = "[A-Za-z0-9_][A-Za-z0-9._-]*"

ServiceName = Annotated[
    Text,
    Shape(
        f"/?{_FOLDER}(?:/{_FOLDER})*",
        "must be letters, digits and . _ -, in folders separated by /; no folder is empty or begins"
        " with . or -",
        "for example database or /team/database",
    ),
    AfterValidator(_service_name),
]
"""A name that is used in workflow ids, in DNS names and as argument of commands."""


class ServiceFile(FileValue):
    """A service: pods of tasks on agents, and the plans that deploy and operate them."""

    name: ServiceName = Field(
        description="The service's name, which may have folders. At most 63 characters without"
        " slashes; it can't change later.",
        examples=["hello-world", "/team/database"],
    )
    web_url: Text | None = Field(
        default=None,
        description="The address of the service's own web page. Kept with the configuration.",
        examples=["http://example.org/hello"],
    )
    scheduler: SchedulerFile = Field(
        default=SchedulerFile(), description="Settings that apply to the whole service."
    )
    pods: Annotated[dict[str, PodFile], Field(min_length=1)] = Field(
        description="The service's pods by type, in the order in which they are deployed."
    )
    plans: dict[str, PlanSectionFile] | None = Field(
        default=None,
        description="The service's plans by name. When absent: one plan `deploy`, with a phase for"
        " each pod and a step for each instance. When given: only these, and `deploy` must be one"
        " of them. `update` replaces `deploy` once a deployment has been complete. The names"
        " `recovery` and `decommission` are reserved.",
    )
