"""The step kind ``command``."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from temporal_plans.domain.cluster.placement import PlacementError, parse_placement
from temporal_plans.domain.kinds import faults
from temporal_plans.domain.kinds.work import Begins, Work
from temporal_plans.domain.values.model import Duration
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.domain.values.text import as_texts

_Environment = Annotated[
    dict[str, str],
    BeforeValidator(as_texts),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    ),
]


class CommandWork(Work):
    """Run a command once, to success, on an agent of a pool."""

    kind: Literal["command"] = Field(default="command", description="Always `command`.")
    cmd: str = Field(
        description="The command, run by the agent's shell in a sandbox of its own.",
        examples=["df -h"],
    )
    cpus: float = Field(default=0.1, gt=0, description="Cores that are reserved for it.")
    memory: int = Field(default=32, gt=0, description="Memory in MB that is reserved for it.")
    pool: str = Field(default="default", description="The pool of agents that may run it.")
    placement: str = Field(
        default="",
        description="Which agents of the pool may run it (behaviour 9.8). When empty: any.",
        examples=["hostname:IS:db-1"],
    )
    env: _Environment = Field(
        default={},
        description="Environment variables by name. The plan's parameters are added to them.",
        examples=[{"VERBOSE": True}],
    )
    uris: tuple[str, ...] = Field(
        default=(),
        description="What is fetched into the sandbox: `http:`, `https:` and `file:` URIs, or"
        " absolute paths on the agent, which are read as the command's user.",
    )
    user: str | None = Field(
        default=None,
        description="The user that it runs as. When absent: the agent's.",
        examples=["backup"],
    )
    timeout: Duration | None = Field(
        default=None,
        description="How long one attempt may run. When absent: no limit.",
        examples=["10m"],
    )
    retries: int | None = Field(
        default=None,
        ge=0,
        description="How often a failed command is retried, each time after a back-off. When"
        " absent: no limit.",
        examples=[3],
    )

    room: ClassVar[str] = "services"
    begins: ClassVar[Begins] = Begins.RESERVING
    bare: ClassVar[str | None] = "cmd"
    runs_a_task: ClassVar[bool] = True

    def faults(self, path: str) -> Iterator[Reason]:
        if not self.cmd.strip():
            yield Reason(field=f"{path}.cmd", problem="is empty", value=self.cmd)
        for field, text in self._texts():
            if "\0" in field + text:
                yield Reason(field=f"{path}.{field}", problem="contains a zero byte")
        yield from faults.of_duration(self.timeout, f"{path}.timeout")
        try:
            parse_placement(self.placement)
        except PlacementError as error:
            yield error.at(f"{path}.placement")

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Yield the texts for the operating system, by field."""
        yield "cmd", self.cmd
        yield "user", self.user or ""
        yield from ((f"env.{name}", value) for name, value in self.env.items())
        yield from ((f"uris.{index}", uri) for index, uri in enumerate(self.uris))
