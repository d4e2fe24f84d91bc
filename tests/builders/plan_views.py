"""Plans as they are shown, for tests of what shows them."""

from datetime import UTC, datetime, timedelta

from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PhaseView, PlanView, StepView

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """That long after START."""
    return START + timedelta(seconds=seconds)


def step(
    name: str,
    status: Status,
    *,
    message: str = "",
    attempt: int = 0,
    forced: bool = False,
    started: datetime | None = None,
    finished: datetime | None = None,
) -> StepView:
    return StepView(
        id=f"id-of-{name}",
        name=name,
        kind="pod",
        status=status,
        message=message,
        attempt=attempt,
        forced=forced,
        started=started,
        finished=finished,
    )


def phase(name: str, strategy: str, status: Status, *steps: StepView) -> PhaseView:
    return PhaseView(id=f"id-of-{name}", name=name, strategy=strategy, status=status, steps=steps)


def plan(
    status: Status,
    *phases: PhaseView,
    name: str = "deploy",
    errors: tuple[str, ...] = (),
    waiting: tuple[str, ...] = (),
) -> PlanView:
    return PlanView(
        id=f"hello-world/{name}",
        name=name,
        service="hello-world",
        strategy="serial",
        status=status,
        errors=errors,
        waiting=waiting,
        phases=phases,
    )


def reference_plan(*, errors: tuple[str, ...] = ()) -> PlanView:
    """The tree of behaviour 11.1."""
    return plan(
        Status.IN_PROGRESS,
        phase(
            "hello",
            "serial",
            Status.COMPLETE,
            step("hello-0:[server]", Status.COMPLETE),
            step("hello-1:[server]", Status.COMPLETE),
        ),
        phase(
            "world",
            "serial-canary",
            Status.WAITING,
            step("world-0:[server]", Status.WAITING),
            step("world-1:[server]", Status.WAITING),
        ),
        errors=errors,
    )
