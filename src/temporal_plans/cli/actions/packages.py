"""What the commands about operator packages do."""

from collections.abc import Collection, Sequence
from hashlib import sha256
from importlib.resources import files as resources
from pathlib import Path

import typer

from temporal_plans.cli.terminal.output import print_json, print_line, print_lines, written
from temporal_plans.cli.terminal.package_lines import findings, plan_trees, summary
from temporal_plans.domain.packages.checks import CHECKS
from temporal_plans.domain.packages.checks.style import STYLES
from temporal_plans.domain.packages.findings import Finding, Severity, Verification, of
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.archive import write_archive
from temporal_plans.loading.packages.folder import read_folder, visible
from temporal_plans.loading.packages.limits import SIZE_LIMIT, too_large
from temporal_plans.loading.packages.reader import ReadPackage, read_files, read_package
from temporal_plans.loading.packages.verification import verify

_STARTER = "starter_package"


def verify_package(source: str, *, styles: Collection[str], json: bool) -> int:
    """Verify a package and print the result; return the exit code. Raises SpecError when it can't
    be read, unless the result is printed as JSON."""
    checks = (*CHECKS, *(STYLES[name] for name in styles))
    try:
        read = read_package(source)
    except SpecError as error:
        if not json:
            raise
        return _print_result(source, None, _unreadable(error))
    result = verify(read, checks=checks)
    if json:
        return _print_result(source, read.package, result)
    print_line(summary(read.package))
    print_lines(findings(result))
    return 0 if result.valid else 1


def _unreadable(error: SpecError) -> Verification:
    return Verification(errors=tuple(of(one, Severity.ERROR, "") for one in error.reasons))


def _print_result(source: str, package: Package | None, result: Verification) -> int:
    print_json(
        {
            "source": source,
            "name": package.name if package else None,
            "version": package.operator.operator_version if package else None,
            "app_version": package.operator.app_version if package else None,
            "valid": result.valid,
            "errors": _finding_values(result.errors),
            "warnings": _finding_values(result.warnings),
        }
    )
    return 0 if result.valid else 1


def _finding_values(found: Sequence[Finding]) -> list[dict[str, object]]:
    keys = ("check", "file", "line", "field", "problem", "value", "fix")
    return [{key: value for key in keys for value in [written(one)[key]]} for one in found]


def validate_package(path: Path) -> int:
    """Print what a package is, its plans, its parameters and what verification finds; return the
    exit code. Raises SpecError when it can't be read."""
    from temporal_plans.cli.terminal.package_lines import parameter_table

    read = read_package(path)
    print_line(f"{path.name or path}: {summary(read.package)}")
    print_line()
    print_lines(plan_trees(read.package))
    if read.package.parameters:
        print_line("\nParameters:")
        print_lines(parameter_table(read.package))
    result = verify(read)
    print_lines(findings(result))
    return 0 if result.valid else 1


def package_facts(path: Path) -> dict[str, object]:
    """Return what ``validate --json`` says of a package. Raises SpecError when it can't be read."""
    read = read_package(path)
    result = verify(read)
    return {
        "name": read.package.name,
        "version": read.package.operator.operator_version,
        "plans": plan_values(read.package),
        "parameters": list(read.package.parameters),
        "problems": _finding_values(result.errors),
        "warnings": _finding_values(result.warnings),
    }


def plan_values(package: Package) -> list[dict[str, object]]:
    """Return the plans for programs."""
    return [{"name": name, **written(plan)} for name, plan in package.operator.plans.items()]


def create_package(folder: Path, name: str) -> None:
    """Write a small package into a new folder. Raises SpecError when there is something in it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        problem = Reason(field=str(folder), problem="exists", fix="name a new folder")
        raise SpecError([problem])
    starter = resources("temporal_plans.cli") / _STARTER
    (folder / "templates").mkdir(parents=True, exist_ok=True)
    for place in ("", "templates"):
        for file in (starter / place if place else starter).iterdir():
            if file.is_file():
                text = file.read_text(encoding="utf-8").replace("name: NAME", f"name: {name}")
                (folder / place / file.name).write_text(text, encoding="utf-8")
    print_line(f"{folder}: written. Next: temporal plan package verify {folder}")


def pack_package(folder: Path, output: Path, *, overwrite: bool) -> None:
    """Write the archive of a package that is valid. Raises SpecError."""
    files = read_folder(folder, visible)
    read = read_files(files, str(folder))
    refuse_invalid(read)
    target = output / read.package.archive_name
    if target.resolve().is_relative_to(folder.resolve()):
        raise typer.BadParameter(
            f"{target} is in the package; name a folder outside", param_hint="--output"
        )
    if target.exists() and not overwrite:
        raise SpecError([Reason(field=str(target), problem="exists", fix="use --overwrite")])
    data = write_archive(files)
    if len(data) > SIZE_LIMIT:
        raise SpecError([too_large("")], source=str(target))
    try:
        target.write_bytes(data)
    except OSError as error:
        problem = Reason(field="", problem=error.strerror or str(error))
        raise SpecError([problem], source=str(target)) from error
    print_line(f"{target}: {len(files)} files, sha256 {sha256(data).hexdigest()}")


def refuse_invalid(read: ReadPackage) -> None:
    """Raise SpecError with every error of a package that is not valid."""
    result = verify(read)
    if not result.valid:
        raise SpecError([one.as_reason() for one in result.errors], source=read.source)
