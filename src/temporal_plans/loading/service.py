"""Loading a service file: template, text, form, rules, plans; every problem at once.

The stages are those of reference 12.1. A template without its values, or a text that is no YAML,
ends the loading there: everything after would be noise.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.generation import WRITABLE_STRATEGIES
from temporal_plans.domain.generation import problems as plan_problems
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.loading.convert import to_service
from temporal_plans.loading.document import Document, read_yaml
from temporal_plans.loading.form import read_form
from temporal_plans.loading.mustache import render
from temporal_plans.loading.rules import rule_problems
from temporal_plans.loading.service_file import ServiceFile

Templates = Callable[[str], str]
"""The text of a config template by its file name. Raises OSError or KeyError when it can't be had;
the ``__getitem__`` of a dict will do."""

Backend = Callable[[ServiceSpec], Iterable[Problem]]
"""What a service asks for that a backend can't give: ``backend_support.unsupported`` for agents."""

_TEXT_CHANGING_TAGS = ("{{#", "{{^", "{{/", "{{!", "{{=")
"""With these, lines of the rendered text are not those of the file."""


def load_service(
    path: Path,
    env: Mapping[str, str],
    *,
    strategies: Collection[str] = WRITABLE_STRATEGIES,
    backend: Backend | None = None,
) -> ServiceSpec:
    """The service in a file; its config templates are read from the same directory.

    ``env`` are the values for the template; its ``TASKCFG_*`` reach the tasks (reference 12.3).
    ``strategies`` are those that plans may name, for developers who add their own.
    ``backend`` refuses what it can't do, together with all other problems; without one every sound
    service loads, whatever may run it.

    Raises SpecError with all problems of the file, or when it can't be read.
    """
    return load_service_text(
        read_text(path),
        env,
        source=path.name,
        templates=lambda name: (path.parent / name).read_text(encoding="utf-8"),
        strategies=strategies,
        backend=backend,
    )


def load_service_text(
    text: str,
    env: Mapping[str, str],
    *,
    source: str = "svc.yml",
    templates: Templates,
    strategies: Collection[str] = WRITABLE_STRATEGIES,
    backend: Backend | None = None,
) -> ServiceSpec:
    """The service in a text, see ``load_service``. ``source`` is the text's name in messages."""
    rendered = render(text, env, strict=True, name=source)
    lines_hold = _lines_hold(text, rendered)
    document = _read(rendered, lines_hold, source)
    form = read_form(ServiceFile, document.value)
    found = [*document.problems, *form.problems]
    if form.value is None:
        raise SpecError(found, source=source)
    texts, missing = _read_templates(form.value, templates)
    spec = to_service(form.value, env, texts)
    checks = [*rule_problems(form.value), *missing, *plan_problems(spec, strategies)]
    checks += backend(spec) if backend else ()
    found += [problem for problem in checks if form.genuine(problem)]
    if found:
        raise SpecError(_in_order(found, lines_hold, document), source=source)
    return spec


def _read(rendered: str, lines_hold: bool, source: str) -> Document:
    try:
        return read_yaml(rendered, scalars="text", source=source)
    except SpecError as error:
        if lines_hold:
            raise
        raise SpecError(map(_of_rendered, error.problems), source=source) from error


def _of_rendered(problem: Problem) -> Problem:
    """A syntax error where the template moved the lines: still better than no line at all."""
    if problem.line is None:
        return problem
    where = f"line {problem.line} of the rendered text"
    return problem.but(message=f"{problem.message} ({where})", line=None)


def read_text(path: Path) -> str:
    """A file's text. Raises SpecError when there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecError([Problem(path="", message=reason)], source=str(path)) from error
    except UnicodeDecodeError as error:
        raise SpecError([Problem(path="", message="is not UTF-8")], source=str(path)) from error


def _read_templates(
    file: ServiceFile, templates: Templates
) -> tuple[dict[str, str], list[Problem]]:
    texts: dict[str, str] = {}
    problems: list[Problem] = []
    for path, name in _template_names(file):
        try:
            if name not in texts:
                texts[name] = templates(name)
        except (OSError, KeyError, UnicodeDecodeError) as error:
            reason = _reason(error)
            problems.append(
                Problem(
                    path=path,
                    message=f"the template can't be read: {reason}",
                    value=name,
                    fix="put the file beside the service file",
                )
            )
    return texts, problems


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else "there is none"


def _template_names(file: ServiceFile) -> Iterator[tuple[str, str]]:
    for pod_name, pod in file.pods.items():
        for task_name, task in pod.tasks.items():
            for name, config in task.configs.items():
                path = f"pods.{pod_name}.tasks.{task_name}.configs.{name}.template"
                yield path, config.template


def _lines_hold(text: str, rendered: str) -> bool:
    """Whether a line of the rendered text has the same number in the file."""
    plain = not any(tag in text for tag in _TEXT_CHANGING_TAGS)
    return plain and text.count("\n") == rendered.count("\n")


def _in_order(problems: list[Problem], lines_hold: bool, document: Document) -> list[Problem]:
    """In the order of the file, with lines where they are true."""
    placed = [(problem.line or document.line(problem.path), problem) for problem in problems]
    placed.sort(key=lambda entry: entry[0] or 0)
    return [problem.but(line=line if lines_hold else None) for line, problem in placed]
