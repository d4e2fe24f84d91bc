"""The smallest service file, and reading one."""

from collections.abc import Mapping

from temporal_plans.domain.services.spec import (
    ServiceSpec,
)
from temporal_plans.loading.services.service import load_service_text

MINIMAL = """
name: svc
pods:
  hello:
    count: 1
    tasks:
      server: {goal: RUNNING, cmd: run, cpus: 1, memory: 64}
"""


def load(text: str, env: Mapping[str, str] | None = None, **templates: str) -> ServiceSpec:
    files = {"app.conf": "{{TASK_NAME}}", **templates}
    return load_service_text(text, env or {}, templates=files.__getitem__)
