"""Small plan files, and reading one."""

from hypothesis import strategies as st

from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.loading.plans import load_plan_text

KINDS = ("my-kind",)


def step(text: str, *others: str) -> str:
    """A plan of one phase ``p`` with a step ``s``, and lines of other steps."""
    lines = [f"name: plan\nphases:\n  p:\n    steps:\n      s: {text}"]
    return "\n".join([*lines, *(f"      {other}" for other in others)])


def load(text: str) -> PlanSpec:
    return load_plan_text(text, strategies=NAMES, step_kinds=KINDS)


ELEMENTS = st.sampled_from("abcdef")
