"""A package: the operator, its parameters and its templates."""

import re
from collections.abc import Collection, Iterator, Mapping

from pydantic import Field

from temporal_plans.domain.packages.nesting import Nested
from temporal_plans.domain.packages.parameters import (
    Decode,
    Group,
    Parameter,
    immutable_faults,
    seen_by_templates,
    value_faults,
)
from temporal_plans.domain.packages.plans import (
    DEPLOY,
    PackagePhase,
    PackagePlan,
    PackageStep,
    found,
    unknown,
)
from temporal_plans.domain.packages.tasks import AnyTask
from temporal_plans.domain.packages.value import ENTRIES_LIMIT, PackageValue, Text
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.names import DNS_LABEL_LIMIT
from temporal_plans.domain.values.refusal import Reason

OPERATOR_FILE, PARAMETERS_FILE, TEMPLATES_FOLDER = "operator.yaml", "params.yaml", "templates"

API_VERSION = "kudo.dev/v1beta1"


_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def package_name_fault(name: str) -> str | None:
    """Return why a text can't name a package; None when it can. Objects in the cluster have the
    name in theirs, and the archive has it in its file's."""
    if not _NAME.fullmatch(name) or len(name) > DNS_LABEL_LIMIT:
        return f"a name has at most {DNS_LABEL_LIMIT} small letters, digits, - and ."
    return None


class Maintainer(PackageValue):
    """A person who maintains the package."""

    name: Text = ""
    email: Text = ""


class Operator(PackageValue):
    """The file ``operator.yaml``."""

    api_version: Text = Field(default=API_VERSION, description=f"`{API_VERSION}`, or absent.")
    name: Text = Field(default="", description="The name of the package.")
    description: Text = Field(default="", description="What it is.")
    operator_version: Text = Field(default="", description="The version of the package.")
    app_version: Text = Field(default="", description="The version of the application in it.")
    kudo_version: Text = Field(default="", description="Read, checked, and without effect.")
    kubernetes_version: Text = Field(
        default="", description="The lowest version of Kubernetes that it works with."
    )
    maintainers: tuple[Maintainer, ...] = Field(default=(), description="Who maintains it.")
    url: Text = Field(default="", description="Where to read more.")
    namespace_manifest: Text = Field(
        default="", description="The template of the namespace, where one is created."
    )
    tasks: tuple[AnyTask, ...] = Field(
        max_length=ENTRIES_LIMIT, default=(), description="The tasks that steps refer to."
    )
    plans: dict[str, PackagePlan] = Field(
        max_length=ENTRIES_LIMIT,
        default={},
        description=f"The plans by name; `{DEPLOY}` must be one.",
    )


class Package(CompactValue):
    """A package as it was read. ``templates`` has the text of each template by its key: the path
    below ``templates/``. ``nested`` is known of a package that was read from the content store."""

    operator: Operator
    groups: tuple[Group, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    templates: dict[str, str] = {}
    nested: Nested = Nested()

    @property
    def name(self) -> str:
        return self.operator.name

    @property
    def archive_name(self) -> str:
        """The name of the file of its archive: `NAME-APPVERSION_VERSION.tgz`."""
        operator = self.operator
        version = "_".join(filter(None, [operator.app_version, operator.operator_version]))
        return f"{self.name}-{version}.tgz"

    def plan(self, name: str) -> PackagePlan:
        """Return the plan of this name. Raises RefusedError with names that resemble it."""
        plan = self.operator.plans.get(name)
        if plan is None:
            raise unknown("plan", name, self.operator.plans)
        return plan

    def phase(self, plan: str, phase: str) -> PackagePhase:
        """Return a phase of a plan. Raises RefusedError."""
        return self.plan(plan).phase(phase)

    def step(self, plan: str, phase: str, step: str) -> PackageStep:
        """Return a step of a phase of a plan. Raises RefusedError."""
        return self.phase(plan, phase).step(step)

    def task(self, name: str) -> AnyTask:
        """Return the task of this name, the last if there are several. Raises RefusedError."""
        return found(reversed(self.operator.tasks), name, "task")

    def template(self, key: str) -> str:
        """Return the text of a template. Raises RefusedError with keys that resemble it."""
        text = self.templates.get(key)
        if text is None:
            raise unknown("template", key, self.templates)
        return text

    def parameter_values(self, given: Mapping[str, str], decode: Decode) -> dict[str, object]:
        """Return `.Params` of its templates, with the given texts and the defaults. Raises
        ValueError for a text that can't be decoded; ``parameter_faults`` finds it first."""
        return seen_by_templates(self.parameters, given, decode)

    def parameter_faults(self, given: Mapping[str, str], decode: Decode) -> Iterator[Reason]:
        """Yield every reason against installing it with the given texts and the defaults."""
        return value_faults(self.parameters, given, decode)

    def immutable_faults(
        self, before: Mapping[str, str], after: Mapping[str, str]
    ) -> Iterator[Reason]:
        """Yield a reason for each immutable parameter that the given texts would change."""
        return immutable_faults(self.parameters, before, after)

    def used_tasks(self) -> Collection[str]:
        """Return the names of the tasks that a step of any plan refers to."""
        plans = self.operator.plans.values()
        return {name for plan in plans for _, step in plan.steps() for name in step.tasks}
