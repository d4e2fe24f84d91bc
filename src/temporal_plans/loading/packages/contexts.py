"""What the templates of a package see, by their use: of a step, of a nested package, of the
namespace."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from temporal_plans.domain.packages.artefacts import artefacts
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.loading.packages.structures import decode
from temporal_plans.loading.packages.templates import (
    RenderLimits,
    StepPlace,
    TemplateContext,
    render_each,
)


@dataclass(frozen=True)
class Installation:
    """A package as it is installed. ``name`` is that of the instance, ``given`` the texts of
    parameters, ``secrets`` the names of those whose values must not stand in an error."""

    package: Package
    name: str
    namespace: str
    given: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: Collection[str] = ()

    def of_step(self, place: StepPlace, pipes: Mapping[str, str] | None = None) -> TemplateContext:
        """Return what the templates of a step's tasks see. ``pipes`` are names of artefacts by key
        that replace the computed ones. Raises ValueError for a parameter that can't be decoded."""
        known = artefacts(self.package, place.plan, self.name)
        return self._context(self._params(), place, {**known, **(pipes or {})})

    def of_nested(self) -> TemplateContext:
        """Return what the parameter file of a nested package sees: no step, and no artefacts.
        Raises ValueError for a parameter that can't be decoded."""
        return self._context(self._params())

    def of_namespace(self) -> TemplateContext:
        """Return what the manifest of a namespace sees: of the parameters only the given ones, as
        texts."""
        return self._context(dict(self.given))

    def _params(self) -> dict[str, object]:
        return self.package.parameter_values(self.given, decode)

    def _context(
        self,
        params: Mapping[str, object],
        place: StepPlace | None = None,
        pipes: Mapping[str, str] | None = None,
    ) -> TemplateContext:
        operator = self.package.operator
        return TemplateContext(
            name=self.name,
            namespace=self.namespace,
            operator_name=operator.name,
            operator_version=operator.operator_version,
            app_version=operator.app_version,
            params=params,
            place=place,
            pipes=pipes or {},
            secrets=self.secrets,
        )


def render_package(
    installation: Installation,
    keys: Collection[str],
    place: StepPlace,
    pipes: Mapping[str, str] | None = None,
    limits: RenderLimits | None = None,
) -> dict[str, str | Reason]:
    """Return for each template, by key, its text or why it can't be rendered.

    A template that is only the parameter file of a nested package, or the manifest of the
    namespace, sees what it sees when the package is installed. ``keys`` must be templates of the
    package. Raises ValueError for a parameter that can't be decoded.
    """
    package = installation.package
    tasks = package.operator.tasks
    of_steps = {key for task in tasks for key in task.templates}
    nested = {task.parameter_template for task in tasks} - of_steps
    namespace = {package.operator.namespace_manifest} - of_steps - nested
    groups = (
        ([key for key in keys if key in nested], installation.of_nested),
        ([key for key in keys if key in namespace], installation.of_namespace),
        (
            [key for key in keys if key not in nested | namespace],
            lambda: installation.of_step(place, pipes),
        ),
    )
    rendered: dict[str, str | Reason] = {}
    for members, context in groups:
        if members:
            templates = {key: package.template(key) for key in members}
            rendered |= render_each(templates, context(), limits)
    return {key: rendered[key] for key in keys}
