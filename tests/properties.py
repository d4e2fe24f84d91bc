"""Profiles of Hypothesis: with how many examples properties are tried.

``default`` is for people, ``ci`` tries as many and prints how to repeat a failure, and
``thorough`` twenty times as many: ``make test ARGS="tests/unit --hypothesis-profile thorough"``.
Time limits of one example say more about the machine than about the code, so there are none.
"""

from typing import Any

from hypothesis import settings

FACTORS = {"default": 1, "ci": 1, "thorough": 20}
"""How many times the examples of ``default`` a profile has."""


def register() -> None:
    """Register the profiles; pytest's option ``--hypothesis-profile`` loads another than
    ``default``."""
    for name, factor in FACTORS.items():
        settings.register_profile(
            name, deadline=None, max_examples=100 * factor, print_blob=name != "default"
        )
    settings.load_profile("default")


def examples(number: int, **more: Any) -> settings:
    """Settings of a property that has its own number of examples, in the profile ``default``."""
    return settings(max_examples=number * FACTORS[settings.get_current_profile_name()], **more)


def factor() -> int:
    """How many times the examples of ``default`` the present profile has."""
    return FACTORS[settings.get_current_profile_name()]
