"""Leases of assets: which step may work on a pod instance's tasks (behaviour 4.2, design 4).

An asset is one task of one pod instance. Two steps never hold the same asset at a time. A holder
keeps its assets until it returns them; of the waiting requests, the lower ``priority`` is first
(deploy before recovery before decommission before the others), then the earlier.

Rules for editors: a request may not overtake a better request that it conflicts with, even where
all of its own assets are free, so that a lease of many tasks is never starved by leases of few.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from temporal_plans.domain.values.model import CompactValue, WorkflowId

Key = tuple[str, int]
"""The holder of a lease: the phase's workflow id and the step's index."""

Asset = tuple[str, int, str]
"""Pod type, instance index, task name."""


class Lease(CompactValue):
    """A step's right, held or requested, to work on a pod instance's tasks (behaviour 4.2).
    ``phase`` is the phase's workflow id.

    ``ticket`` tells a request from an earlier one of the same step that was returned since.
    """

    plan: str
    phase: WorkflowId
    step: int
    pod: str
    index: int
    tasks: tuple[str, ...]
    priority: int = 0
    ticket: int = 0

    @property
    def key(self) -> Key:
        return self.phase, self.step

    def same(self, other: "Lease") -> bool:
        """Whether the leases are equal, tickets aside."""
        return self.but(ticket=other.ticket) == other

    @property
    def assets(self) -> Iterator[Asset]:
        return ((self.pod, self.index, task) for task in self.tasks)

    def conflicts(self, other: "Lease") -> bool:
        """Whether two steps want a task of the same pod instance (behaviour 1.3)."""
        return (
            (self.pod, self.index) == (other.pod, other.index)
            and self.key != other.key
            and not set(self.tasks).isdisjoint(other.tasks)
        )


class LeaseState(CompactValue):
    """The leases that are held, and those that wait, in order of arrival."""

    held: tuple[Lease, ...] = ()
    wanted: tuple[Lease, ...] = ()


class Settlement(NamedTuple):
    """The leases after a change, and the answers to send.

    ``grants``: the leases that are held from now on, those of other phases included. A held lease
    that was requested again is among them, so that a phase may always repeat its request.
    ``held``: for every lease of the request that must wait, the phase that holds the assets.
    """

    state: LeaseState
    grants: list[Lease]
    held: dict[Key, str]


def request(
    state: LeaseState,
    wants: Iterable[Lease],
    returns: Iterable[int],
    phase: str,
    ended: bool,
) -> Settlement:
    """Carry out a phase's request and its returns.

    Leases for another phase than ``phase`` are ignored: no phase would ever return them.
    ``returns`` are the steps of ``phase`` that return what they hold and withdraw what they
    requested; ``ended`` does so for all its steps. Returns come first, so a step may return and
    request at once. A repeated request for the same lease keeps it, or its place in the queue, and
    only takes the newest ticket; a request for other tasks than before returns the old lease.
    """
    returned = set(returns)
    requested = {want.key: want for want in wants if want.phase == phase}

    def staying(leases: Iterable[Lease]) -> Iterator[Lease]:
        for lease in leases:
            if lease.phase == phase and (ended or lease.step in returned):
                continue
            want = requested.get(lease.key, lease)
            if want.same(lease):
                yield want

    held, wanted = list(staying(state.held)), list(staying(state.wanted))
    known = {lease.key for lease in held} | {lease.key for lease in wanted}
    wanted += [want for key, want in requested.items() if key not in known]
    repeated = [lease for lease in held if lease.key in requested]
    settled = _settle(held, wanted)
    return Settlement(
        state=settled.state,
        grants=repeated + settled.grants,
        held={key: holder for key, holder in settled.held.items() if key in requested},
    )


def drop_plan(state: LeaseState, plan: str) -> Settlement:
    """Return all leases of a plan and withdraw its requests; ``held`` of the result is empty."""
    settled = _settle(
        [lease for lease in state.held if lease.plan != plan],
        [lease for lease in state.wanted if lease.plan != plan],
    )
    return settled._replace(held={})


def other_holder(state: LeaseState, owner: WorkflowId, assets: Collection[Asset]) -> WorkflowId:
    """Return the phase that holds one of these assets, when that is neither ``owner`` nor the phase
    of the step ``owner``; empty without one."""
    held = ((asset, lease.phase) for lease in state.held for asset in lease.assets)
    others = (
        phase
        for asset, phase in held
        if asset in assets and not f"{owner}/".startswith(f"{phase}/")
    )
    return next(others, "")


def _settle(held: list[Lease], wanted: list[Lease]) -> Settlement:
    """Grant what can be granted. ``held`` of the result names the holder for every waiting
    lease."""
    if not wanted:
        return Settlement(state=LeaseState(held=tuple(held)), grants=[], held={})
    taken: dict[Asset, str] = {asset: lease.phase for lease in held for asset in lease.assets}
    granted: dict[Key, Lease] = {}
    waiting: dict[Key, str] = {}
    for want in sorted(wanted, key=lambda want: want.priority):  # stable: then by arrival
        holder = next((taken[asset] for asset in want.assets if asset in taken), None)
        if holder is None:
            granted[want.key] = want
        else:
            waiting[want.key] = holder
        for asset in want.assets:
            taken.setdefault(asset, want.phase)
    state = LeaseState(
        held=(*held, *granted.values()),
        wanted=tuple(want for want in wanted if want.key in waiting),
    )
    return Settlement(state=state, grants=list(granted.values()), held=waiting)
