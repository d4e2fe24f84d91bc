"""The activity that judges configurations, by the built-in rules and developers' own."""

import asyncio
from collections.abc import Sequence

from temporalio import activity

from temporal_plans.activities.heartbeat import heartbeats
from temporal_plans.domain.change_check import ConfigValidator
from temporal_plans.domain.deployable import problems
from temporal_plans.domain.plan_customizer import PlanCustomizer
from temporal_plans.messages.service import ChangeCheck, ChangeProblems


class ConfigurationActivities:
    """``validators`` and ``customizers`` are what developers registered."""

    def __init__(
        self,
        validators: Sequence[ConfigValidator] = (),
        customizers: Sequence[PlanCustomizer] = (),
    ) -> None:
        self._validators = validators
        self._customizers = customizers

    @activity.defn(name="check_change")
    async def check_change(self, check: ChangeCheck) -> ChangeProblems:
        """Every reason why the configuration can't be deployed; none when it can."""
        async with heartbeats():
            found = await asyncio.to_thread(  # developers' rules may take their time
                problems,
                check.before,
                check.after,
                check.plans,
                check.rollout,
                deployed_once=check.deployed_once,
                validators=self._validators,
                customizers=self._customizers,
            )
        return ChangeProblems(problems=found)
