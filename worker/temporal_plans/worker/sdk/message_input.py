"""Starts, updates and queries that a workflow of the engine can't read, or does not know."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from pydantic import BaseModel, ValidationError
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.values.complaints import complaints
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.loading.plans import input_problems
from temporal_plans.worker.sdk.patch import Patch, Run
from temporal_plans.worker.sdk.payloads import converter_of


class MessageInput(Patch):
    """Answers a malformed message with a refusal that has the field, the value and the fix.

    What the SDK does: it passes on the text of pydantic, with the names of our classes and a link
    to pydantic's documentation, and for an unknown name "Update handler for 'x' expected but not
    found, and there is no dynamic handler".

    Reproduction: ``temporal workflow update execute --name interrupt --input '{"phas": "x"}'``.

    What ours does: replaces such a failure of a start, an update or a query. Whether the input is
    the cause is found by reading it once more, so only failures cost anything. Signals have no
    answer: see ``messages.malformed``.

    Upstream: no upstream thread known.
    """

    @classmethod
    def applies_to(cls, run: Run) -> bool:
        return run.is_ours and run.details.defn.name is not None

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """Run an activation, and replace the failures that malformed messages have caused."""
        completion = self._inner.activate(act)
        for command in completion.successful.commands:
            failure = _failure_of(command)
            if failure is not None and failure.application_failure_info.type in _BY_THE_SDK:
                with suppress(Exception):  # a better text is not worth a workflow task that fails
                    self._replace(failure, self._refused(act, command))
        return completion

    def _refused(self, act: WorkflowActivation, command: WorkflowCommand) -> tuple[Reason, ...]:
        """Return what is wrong with the message that a failure answers; nothing when its input is
        not the cause."""
        defn = self._run.details.defn
        if command.HasField("fail_workflow_execution"):
            starts = [job.initialize_workflow for job in act.jobs]
            return self._faults(defn.arg_types, [one for job in starts for one in job.arguments])
        for job in act.jobs:
            update, query = job.do_update, job.query_workflow
            if job.HasField("do_update") and (
                update.protocol_instance_id == command.update_response.protocol_instance_id
            ):
                known = defn.updates.get(update.name)
                if known is None:
                    return _unknown("update", update.name, defn.updates)
                return self._faults(known.arg_types, update.input)
            if job.HasField("query_workflow") and (
                query.query_id == command.respond_to_query.query_id
            ):
                asked = defn.queries.get(query.query_type)
                if asked is None:
                    return _unknown("query", query.query_type, defn.queries)
                return self._faults(asked.arg_types, query.arguments)
        return ()

    def _faults(
        self, types: Sequence[Any] | None, payloads: Sequence[Payload]
    ) -> tuple[Reason, ...]:
        if not types or len(payloads) != 1:
            return ()
        model, converter = _model(types[0]), converter_of(self._run.details)
        try:
            converter.from_payloads(payloads, [types[0]])
        except ValidationError as error:
            if issubclass(model, PlanSpec):
                with suppress(ValidationError):  # the document is no JSON
                    return input_problems(error, model, *converter.from_payloads(payloads))
            return tuple(complaints(error, model))
        except Exception:  # an encoding of another kind, which start_input tells about
            return ()
        return ()

    def _replace(self, failure: Failure, reasons: tuple[Reason, ...]) -> None:
        if not reasons:
            return
        details = self._run.details
        placed = tuple(one if one.field else one.but(field="input") for one in reasons)
        error = refusal_error(Refusal(code=Code.MALFORMED, reasons=placed))
        failure.Clear()
        details.failure_converter_class().to_failure(error, converter_of(details), failure)


_BY_THE_SDK = frozenset({"ValidationError", "RuntimeError"})
"""Types of the failures that the SDK makes of these messages."""


def _failure_of(command: WorkflowCommand) -> Failure | None:
    if command.HasField("fail_workflow_execution"):
        return command.fail_workflow_execution.failure
    if command.update_response.HasField("rejected"):
        return command.update_response.rejected
    if command.respond_to_query.HasField("failed"):
        return command.respond_to_query.failed
    return None


def _unknown(kind: str, name: str, known: Iterable[str | None]) -> tuple[Reason, ...]:
    names = [one for one in known if one]
    return (Reason(field=kind, problem="unknown name", value=name, fix=suggestion(name, names)),)


def _model(annotation: Any) -> type[BaseModel]:
    """Return the model of an argument, also of one that may be None."""
    options = (annotation, *getattr(annotation, "__args__", ()))
    models = (one for one in options if isinstance(one, type) and issubclass(one, BaseModel))
    return next(models, BaseModel)
