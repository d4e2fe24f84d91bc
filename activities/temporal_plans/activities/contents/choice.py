"""Which content store the processes of a place use."""

import os
from collections.abc import Mapping

from temporalio.client import Client

from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.activities.contents.temporal_contents import TemporalContents
from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.messages.addresses import PLANS_QUEUE

VARIABLE = "TEMPORAL_PLANS_CONTENTS"


class ContentStoreError(UserFacingError):
    """The content store that the environment names can't be used."""

    usage = True


def content_store(
    client: Client, environ: Mapping[str, str] | None = None, *, task_queue: str = PLANS_QUEUE
) -> ContentStore:
    """Return the store that ``TEMPORAL_PLANS_CONTENTS`` names: Temporal itself when it is unset or
    empty, else the place of a URL for fsspec (``s3://bucket/prefix``, ``gs://…``, a folder). All
    workers and clients of a namespace must have the same. Raises ContentStoreError."""
    url = (os.environ if environ is None else environ).get(VARIABLE, "").strip()
    if not url:
        return TemporalContents(client, task_queue=task_queue)
    try:
        from temporal_plans.activities.contents.file_contents import FileContents
    except ImportError as error:
        raise ContentStoreError(
            f"{VARIABLE}: needs fsspec (found {url!r}); pip install 'temporal-plans[contents]'"
        ) from error
    try:
        return FileContents(url)
    except (ImportError, ValueError, OSError) as error:  # a package for the place lacks, or a typo
        raise ContentStoreError(
            f"{VARIABLE}: can't be used: {error} (found {url!r}); install what fsspec names, or"
            " correct the URL"
        ) from error
