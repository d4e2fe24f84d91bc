"""A ledger small enough to be handed from one run of a Pool to the next.

Temporal takes 2 MiB as one input. A ledger written out passes that with some 2,400 reservations;
packed (rows instead of objects, ids of resources left out since they follow from their
reservation's, compressed) one of 10,000 is about half of it.
"""

import base64
import json
import zlib
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from pydantic import TypeAdapter

from temporal_plans.domain.cluster import Reservation, ReservedResource
from temporal_plans.domain.evaluation import resource_id
from temporal_plans.domain.ledger import Condemned, Ledger


class _Resource(NamedTuple):
    set: str
    kind: Literal["cpus", "gpus", "memory", "port", "volume"]
    name: str
    value: float
    source: str


class _Row(NamedTuple):
    id: str
    owner: str
    pod: str
    instance: int
    agent: str
    hostname: str
    region: str | None
    zone: str | None
    attributes: dict[str, str]
    created: str
    resources: list[_Resource]


class _Packed(NamedTuple):
    """``rest``: the ledger without what is in rows; ``condemned``: (row, counted)."""

    rest: str
    reservations: list[_Row]
    condemned: list[tuple[_Row, bool]]


_PACKED: TypeAdapter[_Packed] = TypeAdapter(_Packed)


def pack(ledger: Ledger) -> str:
    """A text that ``unpack`` makes the same ledger of."""
    packed = _Packed(
        rest=ledger.but(reservations={}, condemned={}).model_dump_json(),
        reservations=[_row(one) for one in ledger.reservations.values()],
        condemned=[(_row(one.reservation), one.counted) for one in ledger.condemned.values()],
    )
    written = json.dumps(packed, separators=(",", ":")).encode()
    return base64.b85encode(zlib.compress(written, 6)).decode()


def unpack(text: str) -> Ledger:
    """The ledger of a text that ``pack`` made; ValueError for any other."""
    try:
        written = zlib.decompress(base64.b85decode(text))
    except zlib.error as error:
        raise ValueError(f"not a packed ledger: {error}") from error
    packed = _PACKED.validate_json(written)
    reservations = [_reservation(row) for row in packed.reservations]
    condemned = [
        Condemned(reservation=_reservation(row), counted=counted)
        for row, counted in packed.condemned
    ]
    return Ledger.model_validate_json(packed.rest).but(
        reservations={one.key: one for one in reservations},
        condemned={one.reservation.id: one for one in condemned},
    )


def _row(one: Reservation) -> _Row:
    return _Row(
        one.id,
        one.owner,
        one.pod,
        one.index,
        one.agent,
        one.hostname,
        one.region,
        one.zone,
        one.attributes,
        one.created.isoformat(),
        [_Resource(r.set, r.kind, r.name, r.value, r.source) for r in one.resources],
    )


def _reservation(row: _Row) -> Reservation:
    reservation = UUID(row.id)
    return Reservation(
        id=row.id,
        owner=row.owner,
        pod=row.pod,
        index=row.instance,
        agent=row.agent,
        hostname=row.hostname,
        region=row.region,
        zone=row.zone,
        attributes=row.attributes,
        created=datetime.fromisoformat(row.created),
        resources=tuple(
            ReservedResource(
                id=resource_id(reservation, one.set, one.kind, one.name),
                set=one.set,
                kind=one.kind,
                name=one.name,
                value=one.value,
                source=one.source,
            )
            for one in row.resources
        ),
    )
