"""Spans in workflow code: plan > phase > step, one trace a plan.

They are OpenTelemetry's, through its API alone. Nothing happens unless the process has a tracer
provider that knows about replay (``temporal_plans.worker.telemetry`` sets one, and so may a
developer, with ``temporalio.contrib.opentelemetry.create_tracer_provider``): any other would make
the spans again at every replay. The SDK's ``OpenTelemetryPlugin`` on the client carries a span over
to child workflows and activities.

A span is exported when it ends, so that a step under way does not show yet, and one whose workflow
is terminated never does.
"""

from collections.abc import Generator
from contextlib import contextmanager

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from opentelemetry import trace
    from opentelemetry.util.types import AttributeValue
    from temporalio.contrib.opentelemetry import ReplaySafeTracerProvider


@contextmanager
def span(name: str, **attributes: AttributeValue) -> Generator[None]:
    """The body as one span, the parent of all that it starts; an exception marks it failed.

    Span ids come from the workflow's own seed, apart from ``workflow.random``, so that switching
    telemetry on or off does not change what a running workflow does.
    """
    provider = trace.get_tracer_provider()
    if not isinstance(provider, ReplaySafeTracerProvider):
        yield
        return
    tracer = provider.get_tracer("temporal_plans")
    with tracer.start_as_current_span(name, attributes=attributes):
        yield
