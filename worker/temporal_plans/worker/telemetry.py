"""Traces and metrics, configured by one setting; without it there are none, at no cost.

There is one trace for each plan: plan > phase > step (``workflows.mechanics.tracing``) > activity
(``opentelemetry_setup``). Metrics are the SDK's own: task latencies, slots, cache, failures.
"""

from collections.abc import Callable
from dataclasses import dataclass

from temporalio.client import Plugin
from temporalio.runtime import Runtime

from temporal_plans.domain.values.failure import UserFacingError

SETTING = "TEMPORAL_PLANS_TELEMETRY"
"""The environment variable: ``console``, or the address of an OpenTelemetry collector."""


class TelemetrySettingError(UserFacingError, ValueError):
    """The setting is not a telemetry destination."""

    usage = True


@dataclass(frozen=True)
class Telemetry:
    """The plugins and the runtime for ``connect``, and ``shutdown`` for the end of the process.

    Register the plugins on the client only: its workers inherit them, and a second registration
    would make every span twice. ``shutdown`` sends the remaining spans, which may take seconds.
    """

    plugins: tuple[Plugin, ...] = ()
    runtime: Runtime | None = None
    shutdown: Callable[[], None] = lambda: None


def telemetry(setting: str | None, service_name: str) -> Telemetry:
    """Set up telemetry for this process; call it once, before the first client.

    ``setting`` is the value of SETTING: empty for no telemetry, ``console`` for a line per span on
    standard error, or the base address of an OTLP/HTTP collector such as ``http://localhost:4318``.
    OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_HEADERS, OTEL_METRIC_EXPORT_INTERVAL,
    OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER ...) apply. Raises ``TelemetrySettingError``.
    """
    if not setting:
        return Telemetry()
    # OpenTelemetry takes a tenth of an agent's start.
    from temporal_plans.worker.opentelemetry_setup import opentelemetry

    return opentelemetry(setting, service_name)
