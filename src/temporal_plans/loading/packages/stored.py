"""Packages in the content store: an archive of the package's own files, and one more file with the
digests of the packages nested in it, so that one digest stands for all of them.

The archive is a plain tar: compressed ones differ with the version of zlib, and then the same
package would be another content from the next machine. The store compresses what it keeps.
"""

import json
from collections.abc import Mapping

from pydantic import ValidationError

from temporal_plans.domain.packages.nesting import Nested
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.archive import read_archive, read_tar, write_tar
from temporal_plans.loading.packages.folder import of_package
from temporal_plans.loading.packages.reader import read_files

NESTED_FILE = "nested.json"

_GZIP = b"\x1f\x8b"


def stored_archive(files: Mapping[str, bytes], nested: Nested) -> bytes:
    """Return the archive of a package's files. Equal packages give equal bytes."""
    kept = {path: content for path, content in files.items() if of_package(path)}
    if nested.tasks:
        written = nested.model_dump(mode="json")
        kept[NESTED_FILE] = json.dumps(written, sort_keys=True).encode()
    return write_tar(kept)


def stored_package(archive: bytes, digest: str) -> Package:
    """Return the package in an archive of the content store, compressed or not. Raises
    SpecError."""
    source = f"package {digest[:12]}"
    read_it = read_archive if archive.startswith(_GZIP) else read_tar
    files = read_it(archive, source)
    read = read_files(files, source)
    if read.faults:
        raise SpecError([fault.as_reason() for fault in read.faults], source=source)
    return read.package.but(nested=_nested(files.get(NESTED_FILE), source))


def _nested(content: bytes | None, source: str) -> Nested:
    if content is None:
        return Nested()
    try:
        return Nested.model_validate_json(content)
    except ValidationError as error:
        fix = "deploy the package again"
        reason = Reason(field=NESTED_FILE, problem="is damaged", fix=fix)
        raise SpecError([reason], source=source) from error
