"""Whether a prepared launch may still be recorded.

Minutes may pass while a launch is prepared: meanwhile its pod may have been removed or leased to
another step, or its agent lost. Such an outdated launch is refused here.
"""

from collections.abc import Iterator
from typing import NamedTuple

from temporal_plans.domain.plans.leases import LeaseState, other_holder
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.goal_override import GoalOverride
from temporal_plans.domain.services.launch import LaunchIntent
from temporal_plans.domain.services.launchable import Launchable
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.values.refusal import Code, Refusal


class LaunchSituation(NamedTuple):
    """The facts about a service that the check needs. ``configuration`` is the one to launch,
    ``target`` the one in force; ``launchable`` are the tasks that the plans in force launch;
    ``cancelled``: the step belongs to a cancelled recovery."""

    configuration: Configuration
    target: Configuration
    book: TaskBook
    leases: LeaseState
    launchable: Launchable
    cancelled: bool


def launch_refusal(intent: LaunchIntent, service: LaunchSituation) -> Refusal | None:
    """Return why the launch is refused; None when it may be recorded. With the code AGENT_LOST the
    step asks the pool again; with any other code the launch is over."""
    return next(_refusals(intent, service), None)


def _refusals(intent: LaunchIntent, service: LaunchSituation) -> Iterator[Refusal]:
    configuration = service.configuration
    if intent.pod not in {pod.type for pod in configuration.spec.pods}:
        text = f"no pod {intent.pod} in configuration {configuration.number}"
        yield Refusal.of(Code.NOT_FOUND, text)
        return
    for name in _names(intent):
        if service.book.overrides.get(name) is GoalOverride.DECOMMISSIONED:
            yield Refusal.of(Code.DECOMMISSIONING, f"task {name} is being decommissioned")
    if configuration.id != service.target.id:
        yield from _no_longer_wanted(intent, service)
    if service.cancelled:
        text = f"{intent.step} was cancelled: its pod no longer needs it"
        yield Refusal.of(Code.SUPERSEDED, text)
    assets = [(intent.pod, intent.index, launch.task) for launch in intent.tasks]
    if holder := other_holder(service.leases, intent.owner, assets):
        yield Refusal.of(
            Code.SUPERSEDED, f"{intent.step} has lost the lease of its pod to {holder}"
        )
    if service.book.agent_lost_since(intent):
        text = f"agent {intent.reservation.agent} was lost after {intent.reserved}"
        yield Refusal.of(Code.AGENT_LOST, text)
    if newer := service.book.newer_launch(intent):
        yield Refusal.of(Code.SUPERSEDED, f"{intent.step} has launched {newer} since then")


def _no_longer_wanted(intent: LaunchIntent, service: LaunchSituation) -> Iterator[Refusal]:
    """Yield refusals for parts that the target no longer has: another configuration took effect
    while the launch was prepared, and its removals did not include this launch."""
    counts = {pod.type: pod.count for pod in service.target.spec.pods}
    if intent.index >= counts.get(intent.pod, 0):
        text = f"pod {intent.pod}-{intent.index} is no longer in the target configuration"
        yield Refusal.of(Code.NOT_WANTED, text)
    for launch, name in zip(intent.tasks, _names(intent), strict=True):
        if not service.launchable.has(intent.pod, intent.index, launch.task):
            yield Refusal.of(Code.NOT_WANTED, f"task {name} is no longer launched by any plan")


def _names(intent: LaunchIntent) -> list[str]:
    return [task_instance_name(intent.pod, intent.index, one.task) for one in intent.tasks]
