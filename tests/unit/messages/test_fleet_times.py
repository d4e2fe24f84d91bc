"""Times that clients send: one near the ends of the calendar would stop a workflow, which adds
durations to it."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from temporal_plans.domain.values.complaints import complaints
from temporal_plans.messages.fleets.products import ProductApply
from temporal_plans.messages.fleets.reports import ReportFacts
from temporal_plans.messages.fleets.stops import OverrideWindows, Suppress

END = "9999-12-31T23:59:59Z"
RAMP = {"channel": "stable", "version": "1.0.0", "started_at": END, "duration": "1h", "entities": 1}


@pytest.mark.parametrize(
    ("kind", "fields", "path"),
    [
        pytest.param(Suppress, {"start": END}, "start", id="suppress"),
        pytest.param(Suppress, {"end": "0001-01-01T00:00:00+14:00"}, "end", id="suppress-end"),
        pytest.param(OverrideWindows, {"start": END, "duration": "1h"}, "start", id="override"),
        pytest.param(ReportFacts, {"facts": {"agent_seen_at": END}}, "facts.agent_seen_at", id="r"),
        pytest.param(
            ProductApply,
            {"product": {"name": "g:a"}, "ramps": [RAMP]},
            "ramps.0.started_at",
            id="ramp",
        ),
    ],
)
def test_times_near_the_ends_of_the_calendar_are_refused(
    kind: type[BaseModel], fields: dict[str, Any], path: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        kind.model_validate(fields)
    [problem] = complaints(raised.value, kind)
    assert (problem.field.replace("-", "_"), problem.fix) == (path, "use a year from 1900 to 4999")
