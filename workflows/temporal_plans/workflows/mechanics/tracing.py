"""Spans in workflow code: plan > phase > step, one trace for each plan.

Only OpenTelemetry's API is used. No span is made unless the process has a replay-safe tracer
provider (``temporal_plans.worker.telemetry`` sets one, and so may a
developer, with ``temporalio.contrib.opentelemetry.create_tracer_provider``): another provider
would make the spans again at every replay. The SDK's ``OpenTelemetryPlugin`` on the client
propagates spans to child workflows and activities.

A span is exported when it ends: a running step has no span yet, and a terminated workflow never
exports its span.
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
    """Run the body in a span, the parent of all spans started in it; an exception marks it failed.

    Span ids come from a seed of their own, not from ``workflow.random``, so that switching
    telemetry on or off does not change a running workflow.
    """
    provider = trace.get_tracer_provider()
    if not isinstance(provider, ReplaySafeTracerProvider):
        yield
        return
    tracer = provider.get_tracer("temporal_plans")
    with tracer.start_as_current_span(name, attributes=attributes):
        yield
