"""`temporal plan fleet publish` and `recall`: what they send."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.forms.form import read_form
from temporal_plans.loading.text.document import read_yaml
from temporal_plans.loading.text.files import read_text
from temporal_plans.messages.fleets import Publish, ReleasePayload

_V = TypeVar("_V", bound=Value)


def publication(
    version: str,
    files: Sequence[Path],
    manifest: Path | None,
    channels: Sequence[str],
    by: str,
    reason: str,
) -> Publish:
    """Return the request that publishes a release. Raises SpecError for files that can't be read,
    or that a release can't have."""
    given: dict[str, Any] = {}
    if manifest is not None:
        given = _manifest(manifest)
    own = [*cast(Iterable[str], given.get("channels", ())), *channels]
    document = {**given, "version": version, "channels": list(dict.fromkeys(own))}
    release = _read(Release, document, manifest.name if manifest else "release")
    texts = {path.name: read_text(path) for path in files}
    payload = _read(ReleasePayload, {"files": texts}, "files")
    return Publish(release=release, payload=payload, by=by, reason=reason)


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
