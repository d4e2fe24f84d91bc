"""Objects that the plugin passes to the workflows of its worker, by name; not in any history."""

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from temporalio import workflow
from temporalio.exceptions import ApplicationError

_T = TypeVar("_T")

PLUGIN = "temporal_plans_plugin"
"""The name of an object that every plugin passes."""


def extern(name: str, kind: type[_T]) -> _T | None:
    """Return the object that the worker's plugin passes under ``name``; None without the plugin,
    in which case ``require_plugin`` fails the workflow."""
    functions = cast(Mapping[str, Callable[[], object]], workflow.extern_functions())
    value = functions[name]() if name in functions else None
    return value if isinstance(value, kind) else None


def require_parent(parent: str) -> None:
    """Fail a workflow that was not started by its parent: it has nothing to report to.

    Raises ApplicationError (not retryable).
    """
    if workflow.info().parent is None:
        raise ApplicationError(
            f"a {workflow.info().workflow_type} is started by its {parent}; start a Plan instead",
            type="InvalidInput",
            non_retryable=True,
        )


def require_plugin() -> None:
    """Fail the workflow when its worker has no plugin; every workflow calls this first.

    Raises ApplicationError (not retryable). Do not call this from ``__init__``: a query that
    arrives with the start would repeat the failure, which the server refuses
    (``worker.sdk.final_command`` prevents that, but comes with the plugin).
    """
    if PLUGIN not in workflow.extern_functions():
        raise ApplicationError(
            "this worker runs workflows of temporal-plans without PlansPlugin;"
            " make its client with plugins=[PlansPlugin()]",
            type="NoPlugin",
            non_retryable=True,
        )
