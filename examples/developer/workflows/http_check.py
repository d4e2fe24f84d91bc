"""The step kind ``http-check``: waits until a page is as it should be."""

from datetime import timedelta

from activities.site import Page, fetch_page
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.model import Duration, Value
from temporal_plans.workflows.step_context import StepContext


class HttpCheck(Value):
    """Input of the step. The page must answer 200 and contain ``expect``; it is looked at ``every``
    so often, and has failed when it is not right ``within`` that time."""

    url: str
    expect: str = ""
    every: Duration = timedelta(seconds=2)
    within: Duration = timedelta(minutes=1)

    def fault(self, page: Page) -> str:
        if page.status != 200:
            return f"{self.url} answers {page.status or 'nothing'}: {page.text}"
        if self.expect not in page.text:
            return f"{self.url} does not contain {self.expect!r}"
        return ""


async def http_check(step: StepContext) -> None:
    """Looks again and again. However often the worker is restarted meanwhile, the time counts from
    the step's beginning."""
    check = HttpCheck.model_validate(step.input)
    end = workflow.now() + check.within
    while fault := check.fault(await _look(check.url, step.name)):
        if workflow.now() >= end:
            raise ApplicationError(fault, type="CheckFailed")
        step.say(f"{fault}; looks again")
        await workflow.sleep(check.every)


async def _look(url: str, name: str) -> Page:
    return await workflow.execute_activity(
        fetch_page, url, start_to_close_timeout=timedelta(seconds=10), summary=name
    )
