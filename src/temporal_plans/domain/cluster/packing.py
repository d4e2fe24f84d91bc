"""Packing of a ledger, so that one run of a Pool can pass it to the next.

Temporal takes 2 MiB as one input. A ledger as plain JSON passes that with some 2,400 reservations;
packed (rows instead of objects, ids of resources left out since they follow from their
reservation's, compressed) one of 10,000 is about half of it.
"""

import json
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from pydantic import TypeAdapter

from temporal_plans.domain.cluster.evaluation import resource_id
from temporal_plans.domain.cluster.ledger import Ledger, PendingDestroy
from temporal_plans.domain.cluster.reservations import Reservation, ReservedResource
from temporal_plans.domain.values.compressed import compress, expand


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
    queue: str
    hostname: str
    region: str | None
    zone: str | None
    attributes: dict[str, str]
    created: str
    resources: list[_Resource]


class _Packed(NamedTuple):
    """``rest``: the ledger without what is in rows; ``to_destroy``: (row, counted)."""

    rest: str
    reservations: list[_Row]
    to_destroy: list[tuple[_Row, bool]]


_PACKED: TypeAdapter[_Packed] = TypeAdapter(_Packed)


def pack(ledger: Ledger) -> str:
    """Return a text from which ``unpack`` makes the same ledger."""
    packed = _Packed(
        rest=ledger.but(reservations={}, to_destroy={}).model_dump_json(),
        reservations=[_row(one) for one in ledger.reservations.values()],
        to_destroy=[(_row(one.reservation), one.counted) for one in ledger.to_destroy.values()],
    )
    written = json.dumps(packed, separators=(",", ":")).encode()
    return compress(written)


def unpack(text: str) -> Ledger:
    """Return the ledger of a text made by ``pack``; ValueError for any other text."""
    packed = _PACKED.validate_json(expand(text))
    reservations = [_reservation(row) for row in packed.reservations]
    to_destroy = [
        PendingDestroy(reservation=_reservation(row), counted=counted)
        for row, counted in packed.to_destroy
    ]
    return Ledger.model_validate_json(packed.rest).but(
        reservations={one.key: one for one in reservations},
        to_destroy={one.reservation.id: one for one in to_destroy},
    )


def _row(one: Reservation) -> _Row:
    return _Row(
        one.id,
        one.owner,
        one.pod,
        one.index,
        one.agent,
        one.queue,
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
        queue=row.queue,
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
