"""Profiles of Hypothesis: with how many examples properties are tried.

``default`` is for people. ``ci`` takes a quarter as many, the same ones each time for the same
code, and prints how to repeat a failure. ``thorough`` takes twenty times as many:
``make test ARGS="tests/unit --hypothesis-profile thorough"``.
Time limits of one example say more about the machine than about the code, so there are none.
"""

from typing import Any

from hypothesis import settings

FACTORS = {"default": 1, "ci": 0.25, "thorough": 20}
"""How many times the examples of ``default`` a profile has."""


def register() -> None:
    """Register the profiles; pytest's option ``--hypothesis-profile`` loads another than
    ``default``."""
    for name, factor in FACTORS.items():
        settings.register_profile(
            name,
            deadline=None,
            max_examples=round(100 * factor),
            print_blob=name != "default",
            derandomize=name == "ci",
        )
    settings.load_profile("default")


def examples(number: int, **more: Any) -> settings:
    """Settings of a property that has its own number of examples, in the profile ``default``."""
    return settings(max_examples=tries(number), **more)


def tries(number: int) -> int:
    """How many tries the present profile has where ``default`` has this number."""
    return round(number * FACTORS[settings.get_current_profile_name()])
