"""Contents in Temporal: workflows that are started with the bytes.

Nothing has to be installed, and reading needs no worker. The digest makes a put safe: whatever part
is there already has the same bytes.
"""

import asyncio

from pydantic import ValidationError
from temporalio.client import Client
from temporalio.converter import WorkflowSerializationContext
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.contents.errors import ContentDamaged, ContentMissing
from temporal_plans.activities.contents.store import check_content, check_digest, digest_of
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.runs import beginning_of
from temporal_plans.domain.values.complaints import complaints
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.messages.contents import (
    CONTENT_TYPE,
    PART_SIZE,
    ContentHolder,
    ContentPart,
    content_id,
)


class TemporalContents:
    """The ContentStore over a connected client. All calls raise RPCError when the server does not
    answer."""

    def __init__(self, client: Client, *, task_queue: str = PLANS_QUEUE) -> None:
        self._client = client
        self._task_queue = task_queue

    async def put(self, data: bytes) -> str:
        digest = digest_of(data)
        pieces = [data[at : at + PART_SIZE] for at in range(0, len(data), PART_SIZE)] or [b""]
        for number, piece in reversed(list(enumerate(pieces, start=1))):
            await self._put_part(digest, number, len(pieces), piece)
        return digest

    async def get(self, digest: str) -> bytes:
        check_digest(digest)
        first = await self._part(digest, 1)
        others = await gather_bounded(
            self._part(digest, number) for number in range(2, first.parts + 1)
        )
        data = b"".join([_data(digest, part) for part in (first, *others)])
        check_content(digest, data, _terminate(digest, 1))
        return data

    async def hold(self, digest: str, holder: str) -> None:
        check_digest(digest)
        if await self._signal(digest, 1, "hold", holder):
            return
        await self.put(await self.get(digest))  # it has ended, and its history may be there
        if not await self._signal(digest, 1, "hold", holder):
            raise ContentMissing(digest, "was terminated just now")

    async def release(self, digest: str, holder: str) -> None:
        check_digest(digest)
        await self._signal(digest, 1, "release", holder)

    async def _put_part(self, digest: str, number: int, parts: int, piece: bytes) -> None:
        """Keep a part that is open, else start it: a signal costs less than the bytes."""
        holder = "" if number == 1 else content_id(digest)
        if await self._signal(digest, number, "hold", holder):
            return
        part = await asyncio.to_thread(
            ContentPart.of, piece, part=number, parts=parts, holder=holder
        )
        await self._client.start_workflow(
            CONTENT_TYPE,
            part,
            id=content_id(digest, number),
            task_queue=self._task_queue,
            start_signal="hold",
            start_signal_args=[ContentHolder(holder=holder)],
            static_summary=f"part {number} of {parts}, {len(piece):,} bytes",
        )

    async def _signal(self, digest: str, number: int, signal: str, holder: str) -> bool:
        """Signal a part. Return False when it is not open."""
        handle = self._client.get_workflow_handle(content_id(digest, number))
        try:
            await handle.signal(signal, ContentHolder(holder=holder))
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True

    async def _part(self, digest: str, number: int) -> ContentPart:
        """Read a part from the first event of its newest run, open or closed."""
        workflow_id = content_id(digest, number)
        what = "is not in the store" if number == 1 else f"lacks its part {number}"
        try:
            began = await beginning_of(self._client, workflow_id)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise ContentMissing(digest, what) from None
            raise
        if began is None:
            raise ContentMissing(digest, what)
        context = WorkflowSerializationContext(self._client.namespace, workflow_id)
        converter = self._client.data_converter.with_context(context)
        try:
            [part] = await converter.decode(began.input.payloads, [ContentPart])
        except Exception as error:  # what a codec of the user's own raises, too
            why = f"part {number} can't be read ({_problems(error)})"
            raise ContentDamaged(digest, why, _terminate(digest, number)) from error
        if not isinstance(part, ContentPart):
            raise ContentDamaged(digest, f"part {number} is null", _terminate(digest, number))
        return part


def _data(digest: str, part: ContentPart) -> bytes:
    try:
        return part.data()
    except ValueError as error:
        why = f"part {part.part} {error}"
        raise ContentDamaged(digest, why, _terminate(digest, part.part)) from error


def _problems(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(map(str, complaints(error, ContentPart)))
    return str(error)


def _terminate(digest: str, number: int) -> str:
    return f"terminate the workflow {content_id(digest, number)}"
