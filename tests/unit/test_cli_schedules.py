"""Schedules of plans by the command line."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from temporal_plans.client.schedules import Overlap, Timetable
from temporal_plans.domain.errors import SpecError
from temporal_plans.domain.service import (
    Goal,
    ParameterYaml,
    PhaseYaml,
    PlanYaml,
    PodSpec,
    ResourceSet,
    ServiceSpec,
    TaskSpec,
)
from temporal_plans.messages.plan import PlanInput
from temporal_plans.messages.scheduled import ScheduledPlan
from temporal_plans.messages.service import PlanRecord, ServiceStatus
from unit.cli_kit import Run
from unit.fake_gateway import FakeGateway

PLAN_FILE = """
name: nightly
parameters:
  LABEL: {required: true}
phases:
  rest:
    steps:
      nap: {sleep: 1s}
"""
