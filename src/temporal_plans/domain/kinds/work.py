"""The base of all kinds of work: the facts that the engine, files and users need of a step's work.

A kind is one file: a class of this shape, whose fields are the data of a step of that kind, and one
line in ``KINDS`` (``kinds/__init__.py``). The function ``run`` of the file with the same name below
``kinds/`` in its room of ``workflows`` executes it.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, cast

from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.refusal import Reason


class Begins(StrEnum):
    """The status of a step from its start until its first report.

    ``STARTED``: STARTING; ``WORKING``: IN_PROGRESS; ``RELEASING``: PREPARED; ``RESERVING``:
    PREPARED, and no attempt before its resources are reserved; ``REPORTED``: unchanged, since the
    step itself reports its start.
    """

    STARTED = "started"
    WORKING = "working"
    RELEASING = "releasing"
    RESERVING = "reserving"
    REPORTED = "reported"


class Asset(NamedTuple):
    """Some tasks of one pod instance, on which only one step may work at a time."""

    pod: str
    number: int
    tasks: tuple[str, ...]


class Work(CompactValue):
    """The base of all kinds. A kind overrides what differs.

    ``room`` is the room of ``workflows`` that runs it. ``bare`` is the field that a bare value in a
    plan file stands for (``sleep: 5m``), of one of the JSON types ``bare_types``; without ``bare``
    users can't write the kind in plan files. ``removes``: it removes something of an owner, so only
    the owner's own plans have it. ``approves``: it waits for a continue. ``runs_a_task``: its
    result is the id of a task whose output can be read.
    """

    kind: Any  # each kind narrows it to its one name

    room: ClassVar[str] = "plans"
    bare: ClassVar[str | None] = None
    bare_types: ClassVar[tuple[str, ...]] = ("string",)
    begins: ClassVar[Begins] = Begins.STARTED
    removes: ClassVar[bool] = False
    approves: ClassVar[bool] = False
    runs_a_task: ClassVar[bool] = False

    @classmethod
    def name(cls) -> str:
        """Return the kind's name, the only value of ``kind``."""
        return str(cls.model_fields["kind"].default)

    @classmethod
    def written(cls, value: object) -> object:
        """Return the work's document from the value that a plan file has after the kind's name: its
        settings, or the bare value. Any other value is returned as it is, for validation to
        refuse."""
        if isinstance(value, Mapping):
            return {**cast(Mapping[str, object], value), "kind": cls.name()}
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return {"kind": cls.name(), cls.bare: value}
        return value

    def faults(self, path: str) -> Iterator[Reason]:
        """Yield the faults of the work beyond its form; ``path`` is its path in the plan."""
        yield from ()

    @property
    def asset(self) -> Asset | None:
        """The asset that a step must lease from its owner before it starts; None without one."""
        return None

    def reserves_for(self, step: str) -> tuple[str, int]:
        """Return the pod and index under which a step of this name holds resources, if it does."""
        return step, 0

    @property
    def keeps_its_place(self) -> bool:
        """Whether the step keeps running, with its asset, during a back-off."""
        return True
