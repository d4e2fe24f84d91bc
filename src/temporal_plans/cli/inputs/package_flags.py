"""The options of a deployment that concern packages only, and the request that they make."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from temporal_plans.domain.packages.installation import Switches


@dataclass(frozen=True)
class PackageFlags:
    """The options for packages; empty or None: what is in force stays."""

    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter of a package; NAME- unsets it; repeatable.",
        ),
    ] = None
    parameter_file: Annotated[
        list[Path] | None,
        typer.Option(
            "--parameter-file",
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="A YAML mapping of a package's parameters, below -p; repeatable.",
        ),
    ] = None
    secret_parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--secret-parameter",
            metavar="NAME=FILE",
            help="A parameter whose value is in a file of the cluster's worker (its --secrets); "
            "repeatable.",
        ),
    ] = None
    cluster: Annotated[
        str,
        typer.Option("--cluster", metavar="NAME", help="The cluster of a package. [default: main]"),
    ] = ""
    kube_namespace: Annotated[
        str,
        typer.Option(
            "--kube-namespace",
            metavar="NAME",
            help="The package's namespace in the cluster. [default: default]",
        ),
    ] = ""
    instance: Annotated[
        str,
        typer.Option(
            "--instance",
            metavar="NAME",
            help="`.Name` in a package's templates. [default: the service's name]",
        ),
    ] = ""
    create_namespace: Annotated[
        bool,
        typer.Option(
            "--create-namespace", help="Create the package's namespace if the cluster lacks it."
        ),
    ] = False
    allow_downgrade: Annotated[
        bool, typer.Option("--allow-downgrade", help="Also to a lower version of a package.")
    ] = False
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--setting",
            metavar="NAME=VALUE",
            help="A setting of a package: look-interval=30s, failed-cleanup=end, "
            "unknown-parameters=ignore, absent-strategy=serial; repeatable.",
        ),
    ] = None

    @property
    def given(self) -> list[str]:
        """The names of the options that are given, as they are typed."""
        options = {
            "--param": self.param,
            "--parameter-file": self.parameter_file,
            "--secret-parameter": self.secret_parameter,
            "--cluster": self.cluster,
            "--kube-namespace": self.kube_namespace,
            "--instance": self.instance,
            "--create-namespace": self.create_namespace,
            "--allow-downgrade": self.allow_downgrade,
            "--setting": self.setting,
        }
        return [name for name, value in options.items() if value]

    def parameters(self) -> dict[str, str | None]:
        """Return the texts of parameters by name, None for those to unset: those of the files in
        order, then the single ones. Raises SpecError, typer.BadParameter."""
        values: dict[str, str | None] = {}
        for path in self.parameter_file or ():
            values |= _from_file(path)
        return values | _single(self.param or ())

    def settings(self) -> "Switches":
        """Return the settings, of which only those that are given are set
        (``model_fields_set``). Raises SpecError, typer.BadParameter."""
        from temporal_plans.cli.inputs.pairs import pairs
        from temporal_plans.domain.packages.installation import Switches
        from temporal_plans.domain.values.refusal import SpecError
        from temporal_plans.loading.forms.form import read_form

        form = read_form(Switches, pairs(self.setting or [], "--setting"))
        if form.problems or form.value is None:
            raise SpecError(form.problems, source="--setting")
        return form.value


def _from_file(path: Path) -> dict[str, str]:
    from temporal_plans.loading.packages.parameter_file import given_texts
    from temporal_plans.loading.text.files import read_text

    return given_texts(read_text(path), source=path.name)


def _single(texts: Iterable[str]) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    wrong: list[str] = []
    for text in texts:
        name, equals, value = text.partition("=")
        if equals and name.strip():
            values[name.strip()] = value
        elif not equals and text.endswith("-") and len(text) > 1:
            values[text[:-1].strip()] = None
        else:
            wrong.append(repr(text))
    if wrong:
        raise typer.BadParameter(f"{', '.join(wrong)}: write NAME=VALUE, or NAME- to unset it")
    return values
