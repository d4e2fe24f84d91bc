"""`temporal plan fleet publish` and `recall`: what they send."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import typer

from temporal_plans.cli.inputs.package_deployment import verified_tree
from temporal_plans.cli.inputs.sources import existing, is_package
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.forms.form import read_form
from temporal_plans.loading.text.document import read_yaml
from temporal_plans.loading.text.files import read_text
from temporal_plans.messages.fleets.payloads import ReleasePackage, ReleasePayload
from temporal_plans.messages.fleets.products import Publish

_V = TypeVar("_V", bound=Value)


class Publication(NamedTuple):
    """The request that publishes a release, and what must be in the content store before."""

    publish: Publish
    contents: tuple[bytes, ...] = ()


def publication(
    version: str,
    files: Sequence[str],
    manifest: Path | None,
    channels: Sequence[str],
    by: str,
    reason: str,
) -> Publication:
    """Return what publishes a release. Raises SpecError for files that can't be read, or that a
    release can't have, and typer.BadParameter."""
    given: dict[str, Any] = {}
    if manifest is not None:
        given = _manifest(manifest)
    own = given.get("channels", [])
    if isinstance(own, list):  # anything else is refused below
        own = list(dict.fromkeys([*cast(list[str], own), *channels]))
    document = {**given, "version": version, "channels": own}
    release = _read(Release, document, manifest.name if manifest else "release")
    if any(map(is_package, files)):
        if len(files) > 1:
            raise typer.BadParameter("a release carries one package, and no other files")
        payload, contents = _package(files[0])
    else:
        texts = {path.name: read_text(path) for path in map(existing, files)}
        payload, contents = _read(ReleasePayload, {"files": texts}, "files"), ()
    publish = Publish(release=release, payload=payload, by=by, reason=reason)
    return Publication(publish, contents)


def _package(source: str) -> tuple[ReleasePayload, tuple[bytes, ...]]:
    """Return the payload of a package with those nested in it, and their archives."""
    tree = verified_tree(source)
    package, nested = tree.root.package, tree.root.package.nested.contents
    kept = ReleasePackage(
        name=package.name,
        version=package.operator.operator_version,
        digest=tree.root.digest,
        nested=nested,
    )
    archives = tuple(each.archive for each in tree.packages.values())
    return ReleasePayload(package=kept), archives


def recall_of(fields: Mapping[str, Any]) -> Recall:
    """Return a recall of its fields. Raises SpecError."""
    return _read(Recall, fields, "recall")


def _manifest(path: Path) -> dict[str, Any]:
    document = read_yaml(read_text(path), source=path.name, scalars="typed")
    problems = list(document.problems)
    if not isinstance(document.value, dict):
        text = "must be a mapping with the fields of a release"
        problems.append(Reason(field="", problem=text))
    if problems:
        raise SpecError(problems, source=path.name)
    return cast(dict[str, Any], document.value)


def _read(kind: type[_V], document: Mapping[str, Any], source: str) -> _V:
    form = read_form(kind, dict(document))
    if form.value is None or form.problems:
        raise SpecError(form.problems, source=source)
    return form.value
