"""A service's state small enough to be handed from one run of it to the next.

Temporal takes 2 MiB as one input, and a state written out passes that with some 1,100 pods; names
and ids repeat in it, so that compressed it is about a tenth.
"""

import base64
import zlib

from temporal_plans.messages.service import ServiceState

PLAIN = 300_000
"""Characters up to which a state stays readable."""


def packed(state: ServiceState) -> str:
    """A text that ``unpacked`` makes the same state of; empty for a state that is small anyway."""
    text = state.model_dump_json()
    if len(text) <= PLAIN:
        return ""
    return base64.b85encode(zlib.compress(text.encode(), level=6)).decode("ascii")


def unpacked(text: str) -> ServiceState:
    """The state of a text made by ``packed``. Raises ValueError."""
    try:
        return ServiceState.model_validate_json(zlib.decompress(base64.b85decode(text)))
    except (ValueError, zlib.error) as error:
        raise ValueError(f"this is no packed state: {error}") from error
