"""What is installed: a package by its definition, the values that were given, and where."""

from datetime import timedelta
from typing import Annotated, Literal
from weakref import WeakValueDictionary

from pydantic import AfterValidator, Field

from temporal_plans.domain.packages.nesting import NESTED_LIMIT, Digest
from temporal_plans.domain.packages.package import Operator, Package
from temporal_plans.domain.packages.parameters import Parameter
from temporal_plans.domain.packages.plans import PackagePlan
from temporal_plans.domain.packages.value import ENTRIES_LIMIT
from temporal_plans.domain.values.model import CompactValue, Duration, Name

DEFINITION_LIMIT = 400_000
"""Characters of a definition as JSON: an owner's whole state has to fit into one payload."""

GIVEN_LIMIT = 200_000
"""Characters of all given values together."""

LOOK_INTERVAL_MINIMUM = timedelta(seconds=1)


class PackageDefinition(CompactValue):
    """The part of a package that decisions about it need: its operator file and the definitions of
    its parameters, without texts for people and without templates. ``content`` is the digest of the
    whole package in the content store, ``contents`` are those of the packages nested in it."""

    content: str = Field(pattern=r"^[0-9a-f]{64}$")
    operator: Operator
    parameters: tuple[Parameter, ...] = Field(default=(), max_length=ENTRIES_LIMIT)
    contents: tuple[Digest, ...] = Field(default=(), max_length=NESTED_LIMIT)

    @property
    def name(self) -> str:
        return self.operator.name

    @property
    def version(self) -> str:
        """The versions as people read them: ``1.3.2``, or ``1.3.2 (application 2.5.1)``."""
        about = self.operator.app_version
        own = self.operator.operator_version
        return f"{own} (application {about})" if about else own

    @property
    def plans(self) -> dict[str, PackagePlan]:
        return self.operator.plans

    @property
    def by_name(self) -> dict[str, Parameter]:
        """The parameters by name."""
        return {one.name: one for one in self.parameters}


_definitions: WeakValueDictionary[str, PackageDefinition] = WeakValueDictionary()


def _shared(definition: PackageDefinition) -> PackageDefinition:
    """Return the equal definition that is in memory already, or this one: a worker may have
    hundreds of instances of a package, and two hundred parameters take 230 kB."""
    known = _definitions.get(definition.content)
    if known is not None and known == definition:
        return known
    _definitions[definition.content] = definition
    return definition


SharedDefinition = Annotated[PackageDefinition, AfterValidator(_shared)]
"""A definition that all values with an equal one have in common."""


def definition_of(package: Package, content: str) -> PackageDefinition:
    """Return the definition of a package whose digest is ``content``."""
    return PackageDefinition(
        content=content,
        operator=package.operator.but(description="", maintainers=(), url=""),
        parameters=tuple(
            one.but(display_name="", description="", hint="", group="", advanced=False)
            for one in package.parameters
        ),
        contents=package.nested.contents,
    )


class Switches(CompactValue):
    """Settings of an instance: most say where it keeps to what its package was written for,
    although there is a better rule.

    ``absent_strategy``: what a plan or phase without a strategy has; ``failed_cleanup``: whether an
    uninstall waits for help, or ends, when the plan ``cleanup`` failed; ``unknown_parameters``: a
    given value of a parameter that the package lacks is refused, or left out; ``look_interval``:
    the time between looks at the objects while no plan runs, None for that of the workers.
    """

    absent_strategy: Literal["parallel", "serial"] = "parallel"
    failed_cleanup: Literal["block", "end"] = "block"
    unknown_parameters: Literal["refuse", "ignore"] = "refuse"
    look_interval: Annotated[Duration, Field(ge=LOOK_INTERVAL_MINIMUM)] | None = None


class Installation(CompactValue):
    """What is installed, or is to be: the content of an instance's configuration.

    ``instance`` is its name in templates and labels. ``given`` are texts of parameters by name.
    ``secrets`` are references to values, by the name of the parameter: another value has another
    reference. No parameter is in both. ``create_namespace``: a plan creates it where it lacks.
    """

    package: SharedDefinition
    instance: Name
    cluster: Name
    namespace: Name
    given: dict[str, str] = {}
    secrets: dict[str, str] = {}
    create_namespace: bool = False
    switches: Switches = Switches()

    def masked(self, name: str) -> bool:
        """Return whether the value of a parameter must not be shown."""
        definition = self.package.by_name.get(name)
        return name in self.secrets or (definition is not None and definition.secret)
