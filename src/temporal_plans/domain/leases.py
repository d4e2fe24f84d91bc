"""Leases of assets: who may work on a pod instance's tasks (reference 4.2, DESIGN 4).

An asset is one task of one pod instance. Two steps never hold the same one at a time. Who holds an
asset keeps it until it is given back; among those who wait, the lower ``priority`` is first (deploy
before recovery before decommission before the others), then who came first.

Rules for editors: a want may not overtake a better one that it conflicts with, even where all of
its own assets are free, so that a lease of many tasks is never starved by leases of few.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from temporal_plans.domain.model import CompactValue, WorkflowId

Key = tuple[str, int]
"""Whose lease it is: the phase's workflow id and the step's index."""

Asset = tuple[str, int, str]
"""Pod type, instance index, task name."""


class Lease(CompactValue):
    """Who works on a pod instance's tasks: an asset (reference 4.2). ``phase`` is the workflow.

    ``ticket`` tells a want from an earlier one of the same step that was given back since.
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
        """The same lease, whatever the ticket."""
        return self.but(ticket=other.ticket) == other

    @property
    def assets(self) -> Iterator[Asset]:
        return ((self.pod, self.index, task) for task in self.tasks)

    def conflicts(self, other: "Lease") -> bool:
        """Same pod instance and a task in common (reference 1.3)."""
        return (
            (self.pod, self.index) == (other.pod, other.index)
            and self.key != other.key
            and not set(self.tasks).isdisjoint(other.tasks)
        )


class LeaseState(CompactValue):
    """The lease book: who holds what, and who waits in order of arrival."""

    held: tuple[Lease, ...] = ()
    wanted: tuple[Lease, ...] = ()


class Settlement(NamedTuple):
    """The book after a change, and who is to be told.

    ``grants``: the leases that may be worked under now, those of other phases included. One that
    was asked for again while it is held is among them, so that a phase may always ask again.
    ``held``: for every want of the request that must wait, the phase in whose way it is.
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
    """What a phase asks for and gives back, carried out.

    ``returns`` are the steps of ``phase`` that give back what they hold and withdraw what they
    want; ``ended`` does so for all its steps. That is done first, so a step may give back and want
    in one request. Asking again for the same lease keeps it, or its place among those who wait,
    and only takes the newest ticket; asking for other tasks than before gives the old lease back
    and wants the new one.
    """
    gone = set(returns)
    asked = {want.key: want for want in wants}

    def staying(leases: Iterable[Lease]) -> Iterator[Lease]:
        for lease in leases:
            if lease.phase == phase and (ended or lease.step in gone):
                continue
            want = asked.get(lease.key, lease)
            if want.same(lease):
                yield want

    held, wanted = list(staying(state.held)), list(staying(state.wanted))
    known = {lease.key for lease in held} | {lease.key for lease in wanted}
    wanted += [want for key, want in asked.items() if key not in known]
    again = [lease for lease in held if lease.key in asked]
    settled = _settle(held, wanted)
    return Settlement(
        state=settled.state,
        grants=again + settled.grants,
        held={key: holder for key, holder in settled.held.items() if key in asked},
    )


def drop_plan(state: LeaseState, plan: str) -> Settlement:
    """Everything that a plan holds and wants, given back. Nobody asked, so ``held`` is empty."""
    settled = _settle(
        [lease for lease in state.held if lease.plan != plan],
        [lease for lease in state.wanted if lease.plan != plan],
    )
    return settled._replace(held={})


def other_holder(state: LeaseState, owner: WorkflowId, assets: Collection[Asset]) -> WorkflowId:
    """The phase that works on one of these assets, when that is neither ``owner`` nor the phase of
    the step ``owner``; empty without one."""
    held = ((asset, lease.phase) for lease in state.held for asset in lease.assets)
    others = (
        phase
        for asset, phase in held
        if asset in assets and not f"{owner}/".startswith(f"{phase}/")
    )
    return next(others, "")


def _settle(held: list[Lease], wanted: list[Lease]) -> Settlement:
    """Grant what can be granted. ``held`` of the result names the blocker of every want left."""
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
