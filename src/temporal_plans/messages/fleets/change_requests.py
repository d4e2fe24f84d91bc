"""Changes that need an approval."""

from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime

from temporal_plans.domain.fleets.approvals import ChangeKind
from temporal_plans.domain.fleets.names import EntityName, ShortName, Text
from temporal_plans.domain.fleets.standing import EntityStanding
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.fleets.requests import FleetRequest


class RequestStatus(StrEnum):
    """``APPROVED``: enough have approved it, and it is held."""

    PENDING = "pending"
    APPROVED = "approved"
    APPLYING = "applying"
    APPLIED = "applied"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    FAILED = "failed"


OPEN_REQUESTS = frozenset({RequestStatus.PENDING, RequestStatus.APPROVED})


class Approval(CompactValue):
    """The approval of a change request by a person."""

    by: str
    reason: str = ""
    at: AwareDatetime


class PlannedChange(CompactValue):
    """How an entity would stand after a change, by a dry decision."""

    entity: EntityName
    standing: EntityStanding


class ChangeRequest(CompactValue):
    """A change that needs an approval. ``verb`` and ``wanted`` are the request that it stands for,
    which is forgotten at its end; ``base`` tells the declaration that it was made for from others.
    ``kinds``: why it needs an approval. ``held``: it is not carried out, even when it is approved.
    ``planned``: the entities that would stand otherwise; ``others`` more are not listed. ``closed``
    says how it ended."""

    id: ShortName
    subject: Text
    kinds: tuple[ChangeKind, ...]
    by: str = ""
    reason: str = ""
    at: AwareDatetime
    expires_at: AwareDatetime
    verb: str
    wanted: dict[str, Any] = {}
    base: str = ""
    needed: int = 1
    approvals: tuple[Approval, ...] = ()
    held: bool = False
    status: RequestStatus = RequestStatus.PENDING
    planned: tuple[PlannedChange, ...] = ()
    others: int = 0
    closed: Approval | None = None

    @property
    def open(self) -> bool:
        return self.status in OPEN_REQUESTS


class ApproveChange(FleetRequest):
    """Update ``approve``: a change request is approved, and carried out when that was the last
    approval that it needs."""

    id: ShortName


class RejectChange(FleetRequest):
    """Update ``reject``: a change request is not carried out. Its author withdraws it."""

    id: ShortName


class HoldChange(FleetRequest):
    """Update ``hold``: a change request is not carried out while it is held."""

    id: ShortName
    held: bool = True


class ChangeRequests(CompressibleValue):
    """Answer of the query ``requests``, newest first."""

    requests: tuple[ChangeRequest, ...] = ()
