"""Templates of packages: what they see, and the texts that they give.

Rendering happens in a process of its own with bounded time and memory (``render_program``). These
functions block until it has ended: call them in a thread where something else waits.
"""

import json
import os
import subprocess
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import cast

from temporal_plans.domain.values.names import did_you_mean
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.domain.values.text import shortened
from temporal_plans.loading.packages.render_order import RenderAnswer, RenderOrder

_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from temporal_plans.loading.packages.render_program import main; main()"
)


_OF_A_STEP = ("PlanName", "PhaseName", "StepName", "Pipes")


@dataclass(frozen=True)
class RenderLimits:
    """``seconds``: processor time of one template, ``all_seconds`` of all of one call.
    ``elapsed``: seconds of all of one call, also when the machine has no processor to give.
    ``memory``: bytes. ``output``: characters of all texts of one call."""

    seconds: float = 5
    all_seconds: int = 30
    elapsed: float = 180
    memory: int = 512 * 2**20
    output: int = 40_000_000


class TemplateError(SpecError):
    """Templates that can't be rendered: a reason each, whose field is file, line and column."""


@dataclass(frozen=True)
class StepPlace:
    """The names of a plan, of its phase and of the step that renders."""

    plan: str
    phase: str
    step: str


@dataclass(frozen=True)
class TemplateContext:
    """What templates see.

    ``params``: the values by name; all numbers in lists and mappings are floats. ``place`` is the
    step that renders, and ``pipes`` the names of the artefacts of its plan by key; parameter files
    of nested packages and manifests of namespaces have neither. ``secrets`` are names of parameters
    whose values must not stand in an error.
    """

    name: str
    namespace: str
    operator_name: str
    operator_version: str
    app_version: str = ""
    params: Mapping[str, object] = field(default_factory=dict[str, object])
    place: StepPlace | None = None
    pipes: Mapping[str, str] = field(default_factory=dict[str, str])
    secrets: Collection[str] = ()

    def data(self) -> dict[str, object]:
        """Return the fields of ``.`` by name. One that is not here is an error in the template."""
        data: dict[str, object] = {
            "Name": self.name,
            "Namespace": self.namespace,
            "OperatorName": self.operator_name,
            "OperatorVersion": self.operator_version,
            "AppVersion": self.app_version,
            "Params": dict(self.params),
        }
        if self.place is None:
            return data
        return data | {
            "PlanName": self.place.plan,
            "PhaseName": self.place.phase,
            "StepName": self.place.step,
            "Pipes": dict(self.pipes),
        }


def render(
    templates: Mapping[str, str], context: TemplateContext, limits: RenderLimits | None = None
) -> dict[str, str]:
    """Return the text of each template by name.

    Raises TemplateError with a reason for every template that can't be rendered.
    """
    rendered = render_each(templates, context, limits)
    if faults := [result for result in rendered.values() if isinstance(result, Reason)]:
        raise TemplateError(faults)
    return cast(dict[str, str], rendered)


def render_each(
    templates: Mapping[str, str], context: TemplateContext, limits: RenderLimits | None = None
) -> dict[str, str | Reason]:
    """Return for each template by name its text, or why it can't be rendered."""
    answers = _answers(templates, context, limits or RenderLimits())
    values = _texts_of([context.params.get(name) for name in context.secrets])
    secrets = {part for value in values for part in _telling_parts(value)}
    return {
        name: answer["text"] if "text" in answer else _reason(name, answer, context, secrets)
        for name, answer in zip(templates, answers, strict=True)
    }


def _answers(
    templates: Mapping[str, str], context: TemplateContext, limits: RenderLimits
) -> list[RenderAnswer]:
    """Return an answer for each template: of one that ended the program, and of those after it,
    that they were not rendered."""
    if not templates:
        return []
    output, ending = _execute(
        {
            "templates": dict(templates),
            "data": context.data(),
            "seconds": limits.seconds,
            "all_seconds": limits.all_seconds,
            "memory": limits.memory,
            "output_limit": limits.output,
        },
        limits.elapsed,
    )
    lines = output.split(b"\n")[:-1]
    answers = [cast(RenderAnswer, json.loads(line)) for line in lines]
    missing = len(templates) - len(answers)
    if missing and (not answers or "text" in answers[-1]):
        answers.append({"problem": ending})
        missing -= 1
    unrendered = RenderAnswer(problem="was not rendered: another template ended the rendering")
    return answers + [unrendered] * missing


def _execute(order: RenderOrder, elapsed: float) -> tuple[bytes, str]:
    """Return what the program wrote, and why it ended before its end, if it did."""
    paths = [os.path.abspath(path) for path in sys.path if path]
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM, *paths]
    try:
        program = subprocess.run(
            command,
            input=json.dumps(order).encode(),
            capture_output=True,
            env={},
            cwd="/",
            check=False,
            start_new_session=True,
            timeout=elapsed,
        )
    except subprocess.TimeoutExpired as expired:
        return expired.stdout or b"", f"takes more than {elapsed:g} s"
    if program.returncode < 0:  # by the kernel, at the limit of processor time or of memory
        limits = f"{order['all_seconds']} s or {order['memory'] // 2**20} MB"
        return program.stdout, f"takes more than {limits}"
    # its own error, such as a library that is missing: those of templates are answers
    *_, last = ["", *program.stderr.decode(errors="replace").splitlines()]
    ending = f"the rendering ended with exit code {program.returncode}"
    return program.stdout, f"{ending}: {shortened(last)}" if last else ending


def _reason(
    name: str, answer: RenderAnswer, context: TemplateContext, secrets: Collection[str]
) -> Reason:
    line, column = answer.get("line"), answer.get("column")
    place = "".join(f":{number}" for number in (line, column) if number is not None)
    problem = answer.get("problem", "")
    if any(part in problem for part in secrets):
        problem = "fails with an error that holds the value of a secret parameter"
    fix = answer.get("fix", "")
    if missing := answer.get("missing"):
        fix = _what_there_is(tuple(missing), context)
    return Reason(field=f"{name}{place}", problem=shortened(problem), fix=fix, line=line)


def _what_there_is(missing: tuple[str, ...], context: TemplateContext) -> str:
    """Return how to correct the use of a key that is missing."""
    *parents, key = missing
    match parents:
        case [] if context.place is None and key in _OF_A_STEP:
            return "only a step's templates have it"
        case []:
            fields = [f".{name}" for name in context.data()]
            return did_you_mean(f".{key}", fields) or f"there are {', '.join(fields)}"
        case ["Params"]:
            question = did_you_mean(key, context.params)
            return question or f"define the parameter {key} in params.yaml"
        case ["Pipes"]:
            return f"a Pipe task with the key {key} must be in the same plan"
        case _:
            return f"the value of {'.'.join(parents)} has no such key"


_TELLING_LENGTH, _TELLING_LIMIT = 8, 200


def _telling_parts(secret: str) -> set[str]:
    """Return what of a secret must not stand in an error: its beginning, and that of each of its
    lines, which may be quoted with another line break."""
    lines = {line for line in secret.splitlines() if len(line) >= _TELLING_LENGTH}
    return {part[:_TELLING_LIMIT] for part in (secret, *lines)}


def _texts_of(value: object) -> set[str]:
    """Return all texts in a value, but the empty one."""
    if isinstance(value, Mapping):
        return _texts_of(list(cast(Mapping[str, object], value).values()))
    if isinstance(value, list):
        return {text for item in cast(list[object], value) for text in _texts_of(item)}
    return {value} if isinstance(value, str) and value else set()
