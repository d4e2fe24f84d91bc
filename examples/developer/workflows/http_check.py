"""The step kind ``http-check``: waits until a page has the expected content."""

from datetime import timedelta

from activities.site import Page, fetch_page
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.sdk import Duration, StepContext, Value


class HttpCheck(Value):
    """Input of the step. The page must have the status 200 and contain ``expect``. It is checked at
    the interval ``every``; the step fails when the page is wrong after the time ``within``."""

    url: str
    expect: str = ""
    every: Duration = timedelta(seconds=2)
    within: Duration = timedelta(minutes=1)

    def fault(self, page: Page) -> str:
        """Return the difference from the expected page; empty when there is none."""
        if page.status != 200:
            return f"{self.url} answers {page.status or 'nothing'}: {page.text}"
        if self.expect not in page.text:
            return f"{self.url} does not contain {self.expect!r}"
        return ""


async def http_check(step: StepContext) -> None:
    """Check the page until it is right. The time counts from the start of the step, also when the
    worker restarts meanwhile."""
    check = HttpCheck.model_validate(step.input)
    end = workflow.now() + check.within
    while fault := check.fault(await _fetch(check.url, step.name)):
        if workflow.now() >= end:
            raise ApplicationError(fault, type="CheckFailed")
        step.say(f"{fault}; retrying")
        await workflow.sleep(check.every)


async def _fetch(url: str, name: str) -> Page:
    return await workflow.execute_activity(
        fetch_page, url, start_to_close_timeout=timedelta(seconds=10), summary=name
    )
