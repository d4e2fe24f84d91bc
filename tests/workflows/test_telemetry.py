"""Telemetry as a collector sees it: a real process, a real server, OTLP over HTTP."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from temporalio.testing import WorkflowEnvironment

from pauses import PATIENCE
from temporal_plans.worker.telemetry import TelemetrySettingError, telemetry
from temporal_plans.workflows.mechanics.tracing import span

pytestmark = pytest.mark.cached("its workers are processes")

PROGRAM = Path(__file__).with_name("traced_program.py")


@dataclass
class Collector:
    """What arrived, as an OpenTelemetry collector would have received it."""

    address: str = ""
    traces: list[ExportTraceServiceRequest] = field(default_factory=list[ExportTraceServiceRequest])
    metrics: list[ExportMetricsServiceRequest] = field(
        default_factory=list[ExportMetricsServiceRequest]
    )

    def receive(self, path: str, body: bytes) -> None:
        match path:
            case "/v1/traces":
                self.traces.append(ExportTraceServiceRequest.FromString(body))
            case "/v1/metrics":
                self.metrics.append(ExportMetricsServiceRequest.FromString(body))
            case _:
                raise AssertionError(f"no collector listens at {path}")

    def spans(self) -> list[Span]:
        scopes = [
            s for r in self.traces for resource in r.resource_spans for s in resource.scope_spans
        ]
        return [one for scope in scopes for one in scope.spans]

    def metric_names(self) -> set[str]:
        scopes = [
            s
            for r in self.metrics
            for resource in r.resource_metrics
            for s in resource.scope_metrics
        ]
        return {metric.name for scope in scopes for metric in scope.metrics}


@pytest.fixture
def address(env: WorkflowEnvironment) -> str:
    return env.client.service_client.config.target_host


@pytest.fixture(name="collector")
def _collector() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = decompress(body)
            collector.receive(self.path, body)
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass  # standard error is the test's own

    with _serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        collector.address = f"http://127.0.0.1:{server.server_port}"
        yield collector


@contextmanager
def _serving(server: ThreadingHTTPServer) -> Generator[ThreadingHTTPServer]:
    with server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@asynccontextmanager
async def _program(
    address: str, setting: str, *, cached: int
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """The traced program; it runs its tree at once and ends when its standard input does."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROGRAM), address, setting, str(cached)),
        env=os.environ | {"OTEL_METRIC_EXPORT_INTERVAL": "200"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.02)


def _tree(spans: list[Span]) -> set[tuple[str, str]]:
    """Every span with its parent, by name."""
    names = {one.span_id: one.name for one in spans} | {b"": ""}
    return {(one.name, names[one.parent_span_id]) for one in spans}


async def test_a_plan_is_one_trace_and_replay_adds_nothing_to_it(
    address: str, collector: Collector
) -> None:
    async with _program(address, collector.address + "/", cached=0) as process:
        await _until(
            lambda: (
                "temporal_workflow_completed" in collector.metric_names()
                or process.returncode is not None
            )
        )
        _, said = await process.communicate(b"")
        assert process.returncode == 0, said.decode()
    spans = collector.spans()
    assert _tree(spans) == {
        ("plan deploy", ""),
        ("phase hello", "plan deploy"),
        ("step a", "phase hello"),
        ("step b", "phase hello"),
        ("activity launch", "step a"),
        ("activity launch", "step b"),
    }
    assert len(spans) == 6  # although every workflow was replayed at every task
    assert len({one.trace_id for one in spans}) == 1
    took = {one.name: one.end_time_unix_nano - one.start_time_unix_nano for one in spans}
    assert took["plan deploy"] > took["phase hello"] > took["step a"] > 20e6  # its sleep
    [service] = {
        attribute.value.string_value
        for request in collector.traces
        for resource in request.resource_spans
        for attribute in resource.resource.attributes
        if attribute.key == "service.name"
    }
    assert service == "traced-program"


async def test_on_a_console_it_is_one_line_a_span(address: str) -> None:
    async with _program(address, "console", cached=100) as process:
        _, said = await process.communicate(b"")
    assert process.returncode == 0, said.decode()
    lines = [line for line in said.decode().splitlines() if line.startswith("span ")]
    assert len(lines) == 6
    assert any(line.startswith("span 'step a' ") and "step=a" in line for line in lines)


def test_without_the_setting_there_is_nothing() -> None:
    for setting in (None, ""):
        off = telemetry(setting, "worker")
        assert (off.plugins, off.runtime) == ((), None)
        off.shutdown()
    with span("nobody sees it", step="a"):
        pass


@pytest.mark.parametrize("setting", ["on", "localhost:4318", "grpc://localhost:4317", "http://"])
def test_what_is_no_destination_is_refused(setting: str) -> None:
    with pytest.raises(TelemetrySettingError, match="not a telemetry destination"):
        telemetry(setting, "worker")
