"""The base of all kinds of tasks: the facts that verification, templates and steps need.

A kind is one file: a class of this shape, whose fields are the ``spec`` of a task of that kind, and
one line in ``TASK_KINDS`` (``tasks/__init__.py``).
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import Field

from temporal_plans.domain.packages.value import PackageValue, Text
from temporal_plans.domain.values.refusal import Reason


class PackageTask(PackageValue):
    """A task. A kind overrides what differs."""

    name: Text = Field(description="Its name, by which steps refer to it.")
    kind: Any  # each kind narrows it to its one name

    @classmethod
    def kind_name(cls) -> str:
        """Return the kind's name, the only value of ``kind``."""
        return str(cls.model_fields["kind"].default)

    @property
    def templates(self) -> Sequence[str]:
        """The keys of the templates of its objects."""
        return ()

    @property
    def parameter_template(self) -> str:
        """The key of a template that gives parameters instead of objects; empty without one."""
        return ""

    @property
    def parameters(self) -> Sequence[str]:
        """The names of the parameters that it reads itself."""
        return ()

    @property
    def pipes(self) -> Sequence[str]:
        """The keys of the artefacts that it makes: `.Pipes.KEY` in templates."""
        return ()

    def faults(self) -> Iterator[Reason]:
        """Yield what is wrong with its spec; ``field`` is the path below the spec."""
        yield from ()

    def doubts(self) -> Iterator[Reason]:
        """Yield what is allowed but hardly meant; ``field`` is the path below the spec."""
        yield from ()


def no_resources(resources: Sequence[str]) -> Iterator[Reason]:
    """Yield the fault of a task without resources."""
    if not resources:
        yield Reason(
            field="resources",
            problem="is missing or empty",
            fix="name at least one file below templates/",
        )
