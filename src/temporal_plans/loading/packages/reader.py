"""Reads the files of a package into a ``Package``, leniently, and says what it found on the way.

Lenient as the files' users expect: unknown keys are ignored, of two equal keys the last has
precedence. Both are findings, which ``verify`` reports.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from temporal_plans.domain.packages.findings import Finding, Severity, error, of
from temporal_plans.domain.packages.package import (
    API_VERSION,
    OPERATOR_FILE,
    PARAMETERS_FILE,
    TEMPLATES_FOLDER,
    Operator,
    Package,
)
from temporal_plans.domain.packages.parameters import Parameters
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.forms.form import read_form
from temporal_plans.loading.packages.archive import read_archive
from temporal_plans.loading.packages.download import download, is_address
from temporal_plans.loading.packages.folder import read_folder
from temporal_plans.loading.packages.written import (
    doubts,
    indexed,
    locator,
    operator_form,
    parameters_form,
    with_names,
)
from temporal_plans.loading.text.document import Document, read_yaml

_TEMPLATE_SUFFIX = ".yaml"
_Model = TypeVar("_Model", bound=Operator | Parameters)


@dataclass(frozen=True, slots=True)
class ReadPackage:
    """A package with what was found while it was read. ``faults`` made parts of it unreadable;
    ``findings`` did not. ``documents`` are the package's own files, for lines."""

    package: Package
    source: str
    faults: tuple[Finding, ...] = ()
    findings: tuple[Finding, ...] = ()
    documents: Mapping[str, Document] = field(default_factory=dict[str, Document])

    def placed(self, finding: Finding) -> Finding:
        """Return a finding with its line, where one is known."""
        document = self.documents.get(finding.file)
        if finding.line is not None or document is None:
            return finding
        return finding.but(line=document.line(indexed(document.value, finding.field)))


def load_package(source: str | Path) -> Package:
    """Return the package in a folder, an archive, or at an http address.

    Raises SpecError with every fault that makes a part of it unreadable; ``verification.verify``
    finds more.
    """
    read = read_package(source)
    if read.faults:
        raise SpecError([fault.as_reason() for fault in read.faults], source=read.source)
    return read.package


def read_package(source: str | Path) -> ReadPackage:
    """Read a package from a folder, an archive, or an http address, as far as it can be read.

    Raises SpecError when it is none: no such path, a hostile or damaged archive, one of its two
    files missing or not YAML.
    """
    return read_files(package_files(source), str(source))


def package_files(source: str | Path) -> dict[str, bytes]:
    """Return the files of a package by path. Raises SpecError."""
    text = str(source)
    if is_address(text):
        return read_archive(download(text), text)
    path = Path(source)
    if path.is_dir():
        return read_folder(path)
    try:
        return read_archive(path.read_bytes(), text)
    except OSError as error:
        problem = error.strerror or str(error)
        fix = "name a folder with operator.yaml, a .tgz archive, or the http address of one"
        raise SpecError([Reason(field="", problem=problem, fix=fix)], source=text) from error


def read_files(files: Mapping[str, bytes], source: str) -> ReadPackage:
    """Read a package from its files by path; see ``read_package``."""
    texts, problems = _texts(files)
    documents: dict[str, Document] = {}
    for name in (OPERATOR_FILE, PARAMETERS_FILE):
        if name in texts:
            try:
                documents[name] = _document(texts[name], name)
            except SpecError as fault:
                problems += [
                    of(reason, Severity.ERROR, name).as_reason() for reason in fault.reasons
                ]
    if problems:
        raise SpecError(problems, source=source)
    return _read(documents, _templates(texts), source)


def _texts(files: Mapping[str, bytes]) -> tuple[dict[str, str], list[Reason]]:
    """Return the texts of the package's files, and the reasons against it."""
    texts: dict[str, str] = {}
    problems = [_missing(name, files) for name in _FILES if name not in files]
    if OPERATOR_FILE in files and not files[OPERATOR_FILE].strip():
        problems.append(Reason(field=OPERATOR_FILE, problem="is empty", fix="name its plans"))
    for name in (*_FILES, *filter(_is_template, files)):
        try:
            texts[name] = files.get(name, b"").decode()
        except UnicodeDecodeError:
            problems.append(Reason(field=name, problem="is not UTF-8", fix="write it in UTF-8"))
    return texts, problems


_FILES = (OPERATOR_FILE, PARAMETERS_FILE)


def _missing(name: str, files: Collection[str]) -> Reason:
    elsewhere = min((path for path in files if path.endswith(f"/{name}")), default=None)
    fix = "a package has operator.yaml and params.yaml at its root"
    return Reason(field=name, problem="is missing", value=elsewhere, fix=fix)


def _is_template(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return path.startswith(f"{TEMPLATES_FOLDER}/") and bool(folder) and _TEMPLATE_SUFFIX in name


def _templates(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of templates by key: the path behind the last ``templates/``."""
    return {
        path.rpartition(f"{TEMPLATES_FOLDER}/")[2]: text
        for path, text in sorted(texts.items())
        if path not in _FILES
    }


def _document(text: str, name: str) -> Document:
    if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
        return Document({}, {})
    return read_yaml(text, scalars="yaml-1.1", source=name)


def _read(documents: Mapping[str, Document], templates: dict[str, str], source: str) -> ReadPackage:
    operator = _part(Operator, documents[OPERATOR_FILE], OPERATOR_FILE, operator_form)
    parameters = _part(Parameters, documents[PARAMETERS_FILE], PARAMETERS_FILE, parameters_form)
    package = Package(
        operator=operator.value,
        groups=parameters.value.groups,
        parameters=parameters.value.parameters,
        templates=templates,
    )
    return ReadPackage(
        package,
        source,
        (*operator.faults, *parameters.faults),
        (*operator.findings, *parameters.findings),
        documents,
    )


@dataclass(frozen=True, slots=True)
class _Part(Generic[_Model]):
    """A file of the package as a model."""

    value: _Model
    faults: tuple[Finding, ...]
    findings: tuple[Finding, ...]


def _part(
    model: type[_Model], document: Document, name: str, form_of: Callable[[object], object]
) -> _Part[_Model]:
    form = read_form(model, form_of(document.value), locate=locator(document.value), lenient=True)
    if form.value is None:
        raise SpecError([one.but(field=f"{name}: {one.field}") for one in form.problems])
    faults = [_placed(one, Severity.ERROR, name, document) for one in form.problems]
    faults += _version_fault(form.value.api_version, name)
    named = [one.but(field=with_names(document.value, one.field)) for one in document.problems]
    findings = [_placed(one, Severity.ERROR, name, document) for one in named]
    remarks = [*form.ignored, *doubts(document, name)]
    findings += [_placed(one, Severity.WARNING, name, document) for one in remarks]
    return _Part(form.value, tuple(faults), tuple(findings))


def _placed(reason: Reason, severity: Severity, name: str, document: Document) -> Finding:
    line = reason.line or document.line(indexed(document.value, reason.field))
    return of(reason.but(line=line), severity, name)


def _version_fault(version: str, name: str) -> Iterator[Finding]:
    if version not in ("", API_VERSION):
        fix = f"write {API_VERSION}"
        yield error(name, "apiVersion", "is unknown", value=version, fix=fix)
