"""How much a workflow carries from run to run: what does not fit into a payload would fail its
workflow task again and again."""

from collections.abc import Callable

from pydantic import BaseModel
from temporalio import workflow

from temporal_plans.domain.values.compressed import PAYLOAD_LIMIT
from temporal_plans.domain.values.refusal import Code, Refusal

ROOM = 1_600_000
"""Bytes, compressed, up to which more is taken. What happens by itself needs the rest."""

_GROWTH = 3
"""How many bytes of what is carried follow from one of the history, at most."""

_EVENTS_BETWEEN_TRIES = 500


class Room:
    """Measures what a workflow carries, when its history has grown so much that it may be full.

    ``carried`` makes the input of the next run, ``code`` is that of refusals. Those are for
    validators, which are not replayed: sizes differ a little between versions of zlib.
    """

    def __init__(self, carried: Callable[[], BaseModel], code: Code = Code.INVALID) -> None:
        self._carried = carried
        self._code = code
        self._size = 0
        self._measured_at = 0
        self._next_try = 0

    def refusal(self, kind: str, request: BaseModel) -> Refusal | None:
        """Return why there is no room for what a request adds."""
        own = size_of(request)
        if self._most(own) <= ROOM:
            return None
        self._measure(self._carried())
        if self._size + own <= ROOM:
            return None
        text = (
            f"the {kind} is full: it carries {self._size} bytes, compressed, the request has {own},"
            f" and {ROOM} fit"
        )
        fix = f"remove what it does not need any more, or make several {kind}s of it"
        return Refusal.of(self._code, text, field=kind, fix=fix)

    def continue_as_new(self) -> None:
        """Begin the next run, unless its input does not fit: then this run goes on, since people
        may make it smaller, and it is tried again later."""
        input = self._carried()
        if self._most(0) > PAYLOAD_LIMIT:
            self._measure(input)
        if self._most(0) <= PAYLOAD_LIMIT:
            workflow.continue_as_new(input)
        self._next_try = workflow.info().get_current_history_length() + _EVENTS_BETWEEN_TRIES

    @property
    def full(self) -> bool:
        """Whether it could not continue as new, and it is not time to try again."""
        return workflow.info().get_current_history_length() < self._next_try

    def _most(self, more: int) -> int:
        """Return how much it may carry by now, at most, with ``more`` bytes of a request."""
        grown = workflow.info().get_current_history_size() - self._measured_at
        return self._size + _GROWTH * (grown + more)

    def _measure(self, input: BaseModel) -> None:
        self._size = size_of(input)
        self._measured_at = workflow.info().get_current_history_size()


def size_of(value: BaseModel) -> int:
    """Return how many bytes a value has as a payload."""
    return len(value.model_dump_json().encode())
