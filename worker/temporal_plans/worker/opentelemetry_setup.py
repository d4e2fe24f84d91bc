"""Traces and metrics by OpenTelemetry, for a process whose setting asks for them."""

import os
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
)
from opentelemetry.util.re import parse_env_headers
from opentelemetry.util.types import AttributeValue
from temporalio import activity
from temporalio.contrib.opentelemetry import OpenTelemetryPlugin, create_tracer_provider
from temporalio.plugin import SimplePlugin
from temporalio.runtime import OpenTelemetryConfig, Runtime, TelemetryConfig
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from temporal_plans.worker.telemetry import SETTING, Telemetry, TelemetrySettingError


def opentelemetry(setting: str, service_name: str) -> Telemetry:
    """Set up what sends to the destination ``setting``. Raises ``TelemetrySettingError``."""
    if setting == "console":
        printing = ConsoleSpanExporter(service_name, out=sys.stderr, formatter=_line)
        return _tracing(SimpleSpanProcessor(printing), service_name, runtime=None)
    base = _base(setting)
    sending = OTLPSpanExporter(endpoint=f"{base}/v1/traces")
    return _tracing(BatchSpanProcessor(sending), service_name, _metrics(base, service_name))


def _tracing(processor: SpanProcessor, service_name: str, runtime: Runtime | None) -> Telemetry:
    provider = create_tracer_provider(resource=Resource.create({"service.name": service_name}))
    provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    plugins = (OpenTelemetryPlugin(), ActivitySpans())
    return Telemetry(plugins, runtime, provider.shutdown)


def _metrics(base: str, service_name: str) -> Runtime:
    # The exporter of the SDK's core reads no environment, unlike the one for traces.
    metrics = OpenTelemetryConfig(
        url=f"{base}/v1/metrics",
        headers=parse_env_headers(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""), liberal=True),
        metric_periodicity=_interval(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL", "")),
        http=True,
        durations_as_seconds=True,
    )
    return Runtime(
        telemetry=TelemetryConfig(metrics=metrics, global_tags={"service_name": service_name})
    )


def _interval(milliseconds: str) -> timedelta:
    if not milliseconds:
        return timedelta(seconds=10)
    if not milliseconds.isdecimal():
        raise TelemetrySettingError(
            f"OTEL_METRIC_EXPORT_INTERVAL: not a number of milliseconds (found {milliseconds!r}); "
            "write for example 10000"
        )
    return timedelta(milliseconds=int(milliseconds))


def _base(setting: str) -> str:
    parts = urlsplit(setting)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TelemetrySettingError(
            f"{SETTING}: not a telemetry destination (found {setting!r}); write console, or the "
            "address of an OTLP/HTTP collector, for example http://localhost:4318"
        )
    return setting.rstrip("/")


def _line(span: ReadableSpan) -> str:
    duration = ((span.end_time or 0) - (span.start_time or 0)) / 1e6
    attributes: Mapping[str, Any] = span.attributes or {}
    pairs = " ".join(f"{name}={value}" for name, value in attributes.items())
    trace_id = trace.format_trace_id(span.context.trace_id) if span.context else ""
    status = span.status.status_code.name
    return f"span {span.name!r} {duration:.0f} ms {status} {trace_id} {pairs}\n"


class ActivitySpans(SimplePlugin):
    """Adds a span for every activity. It must follow OpenTelemetryPlugin, which sets the parent."""

    def __init__(self) -> None:
        super().__init__("temporal-plans.ActivitySpans", interceptors=[_ActivitySpans()])


class _ActivitySpans(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _ActivitySpan(next)


class _ActivitySpan(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        info = activity.info()
        attributes: dict[str, AttributeValue] = {
            "temporalWorkflowID": info.workflow_id or "",
            "temporalActivityID": info.activity_id,
            "attempt": info.attempt,
        }
        tracer = trace.get_tracer("temporal_plans")
        with tracer.start_as_current_span(f"activity {info.activity_type}", attributes=attributes):
            return await self.next.execute_activity(input)
