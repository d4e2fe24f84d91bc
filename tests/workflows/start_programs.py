"""Workflows that can't be started."""

from temporalio import workflow
from temporalio.exceptions import ApplicationError


@workflow.defn
class Refusing:
    """Fails when it is made."""

    @workflow.init
    def __init__(self, name: str) -> None:
        raise ApplicationError(f"{name} is refused")

    @workflow.run
    async def run(self, name: str) -> None: ...

    @workflow.query
    def name(self) -> str:
        return ""


@workflow.defn(sandboxed=False)
class RefusingOutside(Refusing):
    """The same without a sandbox."""

    @workflow.init
    def __init__(self, name: str) -> None:
        super().__init__(name)

    @workflow.run
    async def run(self, name: str) -> None: ...
