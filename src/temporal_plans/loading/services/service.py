"""Loads a service file: template, text, form, rules, plans; reports all problems at once.

The stages are those of behaviour 12.1. A template with missing values, or a text that is not YAML,
ends the loading: all later problems would follow from that.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from temporal_plans.domain.plans.strategies import IN_SERVICES
from temporal_plans.domain.services.generation import problems as plan_problems
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.forms.form import read_form
from temporal_plans.loading.services.convert import to_service
from temporal_plans.loading.services.file import ServiceFile
from temporal_plans.loading.services.rules import rule_problems
from temporal_plans.loading.text.document import Document, read_yaml
from temporal_plans.loading.text.files import read_text
from temporal_plans.loading.text.mustache import render

Templates = Callable[[str], str]
"""Returns the text of a config template by its file name. Raises OSError or KeyError when it can't
be read; the ``__getitem__`` of a dict can be used."""

Backend = Callable[[ServiceSpec], Iterable[Reason]]
"""Returns the settings of a service that a backend does not support: for agents
``backend_support.unsupported``."""

UnknownKey = Callable[[Reason], None]
"""Receives a key of the file that is unknown and ignored."""

_TEXT_CHANGING_TAGS = ("{{#", "{{^", "{{/", "{{!", "{{=")
"""Tags that may change the line numbers of the rendered text."""


def load_service(
    path: Path,
    env: Mapping[str, str],
    *,
    strategies: Collection[str] = IN_SERVICES,
    backend: Backend | None = None,
    on_unknown_key: UnknownKey | None = None,
) -> ServiceSpec:
    """Load the service in a file; its config templates are read from the same directory.

    ``env`` has the values for the template; its ``TASKCFG_*`` are passed to the tasks (behaviour
    12.3). ``strategies`` are the names that plans may use, for developers who add their own.
    ``backend`` adds its problems with settings that it does not support; without it every valid
    service loads. ``on_unknown_key`` receives each key that is unknown, and ignored; without it an
    unknown key is a problem.

    Raises SpecError with all problems of the file, or when it can't be read.
    """
    return load_service_text(
        read_text(path),
        env,
        source=path.name,
        templates=lambda name: (path.parent / name).read_text(encoding="utf-8"),
        strategies=strategies,
        backend=backend,
        on_unknown_key=on_unknown_key,
    )


def load_service_text(
    text: str,
    env: Mapping[str, str],
    *,
    source: str = "svc.yml",
    templates: Templates,
    strategies: Collection[str] = IN_SERVICES,
    backend: Backend | None = None,
    on_unknown_key: UnknownKey | None = None,
) -> ServiceSpec:
    """Load the service in a text; see ``load_service``. ``source`` is its name in messages.
    Raises SpecError."""
    rendered = render(text, env, strict=True, name=source)
    keeps_lines = _keeps_lines(text, rendered)
    document = _read(rendered, keeps_lines, source)
    form = read_form(ServiceFile, document.value, lenient=on_unknown_key is not None)
    found = [*document.problems, *form.problems]
    if form.value is None:
        raise SpecError(found, source=source)

    specs: list[ServiceSpec] = []

    def rules(file: ServiceFile) -> list[Reason]:
        texts, missing = _read_templates(file, templates)
        spec = to_service(file, env, texts)
        specs.append(spec)
        checks = [*rule_problems(file), *missing, *plan_problems(spec, strategies)]
        return [*checks, *(backend(spec) if backend else ())]

    found += form.check(rules)
    if found:
        raise SpecError(_in_order(found, keeps_lines, document), source=source)
    if on_unknown_key is not None:
        for key in _in_order([*form.ignored], keeps_lines, document):
            on_unknown_key(key)
    return specs[0]


def _read(rendered: str, keeps_lines: bool, source: str) -> Document:
    try:
        return read_yaml(rendered, scalars="text", source=source)
    except SpecError as error:
        if keeps_lines:
            raise
        raise SpecError(map(_with_rendered_line, error.reasons), source=source) from error


def _with_rendered_line(problem: Reason) -> Reason:
    """Return a syntax error with the line of the rendered text, where the file's is not known."""
    if problem.line is None:
        return problem
    where = f"line {problem.line} of the rendered text"
    return problem.but(problem=f"{problem.problem} ({where})", line=None)


def _read_templates(file: ServiceFile, templates: Templates) -> tuple[dict[str, str], list[Reason]]:
    texts: dict[str, str] = {}
    problems: list[Reason] = []
    for path, name in _template_names(file):
        try:
            if name not in texts:
                texts[name] = templates(name)
        except (OSError, KeyError, UnicodeDecodeError) as error:
            reason = _reason(error)
            problems.append(
                Reason(
                    field=path,
                    problem=f"the template can't be read: {reason}",
                    value=name,
                    fix="put the file into the service file's directory",
                )
            )
    return texts, problems


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else "no such template"


def _template_names(file: ServiceFile) -> Iterator[tuple[str, str]]:
    for pod_name, pod in file.pods.items():
        for task_name, task in pod.tasks.items():
            for name, config in task.configs.items():
                path = f"pods.{pod_name}.tasks.{task_name}.configs.{name}.template"
                yield path, config.template


def _keeps_lines(text: str, rendered: str) -> bool:
    """Return whether lines of the rendered text have the same numbers in the file."""
    plain = not any(tag in text for tag in _TEXT_CHANGING_TAGS)
    return plain and text.count("\n") == rendered.count("\n")


def _in_order(problems: list[Reason], keeps_lines: bool, document: Document) -> list[Reason]:
    """Return the problems in the order of the file, with their lines if these are known."""
    placed = [(problem.line or document.line(problem.field), problem) for problem in problems]
    placed.sort(key=lambda entry: entry[0] or 0)
    return [problem.but(line=line if keeps_lines else None) for line, problem in placed]
