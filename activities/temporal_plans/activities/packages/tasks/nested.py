"""The task kind ``KudoOperator``: another package, installed as a service of its own."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from temporal_plans.activities.packages.nested_service import NestedService
from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.activities.packages.tasks.execution import TaskExecution
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.installation import definition_of
from temporal_plans.domain.packages.tasks.nested import NestedTask
from temporal_plans.domain.values.names import name_fault
from temporal_plans.domain.values.refusal import RefusedError
from temporal_plans.loading.packages.nested_parameters import NestedParameters, nested_parameters
from temporal_plans.loading.packages.templates import render

_REASON_LIMIT = 500


async def nested(task: NestedTask, context: StepContext) -> TaskExecution:
    """Deploy the package as a service, and wait for the plan that this starts."""
    installed = context.order.run.package
    digest = context.package.nested.tasks.get(task.name)
    if digest is None:
        raise TaskProblem(
            f"the package {task.package} was not stored with this one; deploy this one again"
        )
    child = await context.load(digest)
    name = task.instance_name or f"{installed.instance}-{child.name}"
    if fault := name_fault(name):
        raise TaskProblem(f"{name!r} can't name a service: {fault}; give the task an instanceName")
    if name == installed.service:
        raise TaskProblem(f"{name} is the service itself; give the task another instanceName")
    given = await _given(task, context)
    service = NestedService(
        client=context.client,
        order=context.order,
        name=name,
        change=ChangeRequest(
            package=definition_of(child, digest),
            parameters=dict(given.texts),
            secrets=given.secrets,
            instance=name,
            cluster=installed.cluster,
            namespace=installed.namespace,
            allow_downgrade=True,  # a rollback of the parent is one of the child as well
        ),
        by=f"service {installed.service}"[:200],
        reason=f"task {task.name} of plan {context.order.plan}"[:_REASON_LIMIT],
    )
    return TaskExecution(begin=service.deploy, look=service.look)


async def _given(task: NestedTask, context: StepContext) -> NestedParameters:
    """Return the parameters that the task's file gives. Raises TaskProblem."""
    key = task.parameter_file
    if not key:
        return NestedParameters({}, {})
    references = context.order.run.package.secrets
    template = {key: context.package.template(key)}

    def rendered(texts: Mapping[str, str]) -> str:
        installation = context.installation
        given = {**installation.given, **texts}
        return render(template, replace(installation, given=given).of_nested())[key]

    try:
        return await asyncio.to_thread(nested_parameters, rendered, references, key)
    except RefusedError as refused:
        reasons = "; ".join(str(reason.but(value=None)) for reason in refused.reasons)
        raise TaskProblem(f"template {key}: {reasons}") from None
    except ValueError:  # its text may have a value
        raise TaskProblem("a parameter can't be read: it is no YAML list or mapping") from None
