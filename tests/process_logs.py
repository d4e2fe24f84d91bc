"""What the processes of a failed test printed last."""

from collections.abc import Mapping
from typing import Protocol

import pytest


class HasLogs(Protocol):
    """Processes with the ends of their logs, by name."""

    def logs(self) -> Mapping[str, str]: ...


def add_logs(report: pytest.TestReport, item: pytest.Item, kind: type[HasLogs]) -> None:
    """Show the logs of fixtures of a kind below the report of a failed test."""
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, kind):
                for name, text in value.logs().items():
                    report.sections.append((f"log of {name}", text))
