"""The activity that checks configurations by the built-in and the developer's rules."""

from collections.abc import Sequence

from temporalio import activity

from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.services.bounded_check import bounded_check
from temporal_plans.domain.services.change_check import ConfigValidator
from temporal_plans.domain.services.deployable import option_problems, problems
from temporal_plans.domain.services.plan_customizer import PlanCustomizer
from temporal_plans.messages.services import ChangeCheck, ChangeProblems


class ConfigurationActivities:
    """``validators`` and ``customizers`` are the developer's own."""

    def __init__(
        self,
        validators: Sequence[ConfigValidator] = (),
        customizers: Sequence[PlanCustomizer] = (),
    ) -> None:
        self._validators = validators
        self._customizers = customizers

    @activity.defn(name="check_change")
    async def check_change(self, check: ChangeCheck) -> ChangeProblems:
        """Return all reasons why the configuration can't be deployed; none when it can."""
        async with heartbeats():
            return await bounded_check(lambda: self._check(check))

    def _check(self, check: ChangeCheck) -> ChangeProblems:
        found = problems(
            check.before,
            check.after,
            check.plans,
            deployed_once=check.deployed_once,
            validators=self._validators,
            customizers=self._customizers,
        )
        if found:
            return ChangeProblems(problems=found)
        wrong_options = option_problems(
            check.after,
            check.plans,
            check.rollout,
            deployed_once=check.deployed_once,
            customizers=self._customizers,
        )
        return ChangeProblems(problems=wrong_options, options=bool(wrong_options))
