"""Tests plans with your own activities, strategies and step kinds on a real Temporal server.

async with PlanEnvironment(activities=[freeze, dump], step_kinds={"soak": soak}) as plans:
    running = await plans.start(BACKUP, {"SNAPSHOT": "s-1"})
    await running.until(Status.WAITING, phase="sign-off")
    await running.proceed(phase="sign-off")
    assert (await running.at_rest()).complete

Nothing is simulated: the server is Temporal's dev server, and the worker has ``PlansPlugin``.
``save_histories`` and ``check_replays`` find out whether changed code replays what runs.
"""

from temporal_plans.testing.environment import PlanEnvironment
from temporal_plans.testing.histories import ReplayFailed, check_replays
from temporal_plans.testing.running_plan import NotReached, RunningPlan

__all__ = ["NotReached", "PlanEnvironment", "ReplayFailed", "RunningPlan", "check_replays"]
