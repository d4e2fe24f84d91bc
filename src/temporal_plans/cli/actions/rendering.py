"""``package render``: what the templates of a package give."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from temporal_plans.cli.terminal.output import (
    print_error,
    print_json,
    print_line,
    print_note,
    print_text,
)
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.values.refusal import Reason, RefusedError, SpecError
from temporal_plans.loading.packages.contexts import Installation, render_package
from temporal_plans.loading.packages.reader import load_package
from temporal_plans.loading.packages.structures import decode
from temporal_plans.loading.packages.templates import StepPlace


@dataclass(frozen=True)
class RenderOptions:
    """The options of the command. Empty texts, and no templates: what the package says."""

    source: str
    templates: Collection[str] = ()
    output: Path | None = None
    name: str = ""
    namespace: str = "default"
    plan: str = "deploy"
    phase: str = ""
    step: str = ""
    pipes: Mapping[str, str] = field(default_factory=dict[str, str])
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


def render_templates(options: RenderOptions, *, json: bool = False) -> int:
    """Render templates of a package; print them, or write them to a folder. Return the exit code:
    1 when a template can't be rendered, whose reason is printed beside what the others give.

    Raises SpecError for a package that can't be read, and for parameters that it does not have;
    RefusedError for an unknown template.
    """
    package = load_package(options.source)
    if faults := list(package.parameter_faults(options.parameters, decode)):
        raise SpecError(faults, source=options.source)
    keys = list(dict.fromkeys(options.templates)) or sorted(package.templates)
    for key in keys:
        package.template(key)
    rendered = render_package(
        Installation(package, options.name or package.name, options.namespace, options.parameters),
        keys,
        _place(package, options),
        options.pipes,
    )
    texts = {key: text for key, text in rendered.items() if isinstance(text, str)}
    problems = [problem for problem in rendered.values() if isinstance(problem, Reason)]
    if options.output is not None:
        _write(texts, options.output)
    if json:
        print_json({"package": package.name, "templates": texts, "problems": problems})
    elif options.output is None:
        _print(texts, alone=len(options.templates) == 1)
    else:
        for key in texts:
            print_line(str(options.output / key))
    if problems and not json:
        print_error("\n".join(map(str, problems)))
    return 1 if problems else 0


def _place(package: Package, options: RenderOptions) -> StepPlace:
    """Return the step to render for: what is not named is the first. An unknown name is a note,
    because the texts are those that the step would give if there were one."""
    phase, step = options.phase, options.step
    try:
        plan = package.plan(options.plan)
        phase = phase or next((each.name for each in plan.phases), "")
        steps = plan.phase(phase).steps if phase else ()
        step = step or next((each.name for each in steps), "")
        if phase and step:
            plan.phase(phase).step(step)
    except RefusedError as unknown:
        print_note(f"The package has no such step: {unknown}")
    return StepPlace(options.plan, phase, step)


def _print(texts: Mapping[str, str], *, alone: bool) -> None:
    """Print the text of a template that was asked for alone as it is, and several as the documents
    of one YAML stream, each led by its template."""
    if alone:
        for text in texts.values():
            print_text(text)
        return
    for number, (key, text) in enumerate(texts.items()):
        lead = "---\n" if number else ""
        end = "" if not text or text.endswith("\n") else "\n"
        print_text(f"{lead}# templates/{key}\n{text}{end}")


def _write(texts: Mapping[str, str], folder: Path) -> None:
    """Write the texts below a folder. Raises SpecError for what can't be written."""
    for key, text in texts.items():
        parts = PurePosixPath(key).parts
        if ".." in parts or PurePosixPath(key).is_absolute():
            fix = "name it by a path below templates/"
            raise SpecError([Reason(field=key, problem="leads out of the folder", fix=fix)])
        path = folder.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        except OSError as error:
            problem = error.strerror or str(error)
            fix = "name another folder with --output"
            raise SpecError([Reason(field=str(path), problem=problem, fix=fix)]) from error
