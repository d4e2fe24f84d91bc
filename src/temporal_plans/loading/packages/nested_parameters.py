"""The parameters that a package gives to one nested in it, without any value of a secret one.

A secret parameter may be handed on as a whole: the child gets the reference that the parent has.
The file is rendered with texts in the place of secret values, twice with different ones: what is
the same in both depends on no secret, and what is the text itself is the secret. What is neither
was made of a secret, and would have to stand in the clear; so it is refused.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.parameter_file import parameter_texts

Render = Callable[[Mapping[str, str]], str]
"""Returns the file rendered with these texts for the secret parameters. Raises TemplateError."""


class NestedParameters(NamedTuple):
    """Texts of parameters, and references to secret values, by the name of the child's
    parameter."""

    texts: dict[str, str]
    secrets: dict[str, str]


def nested_parameters(
    render: Render, references: Mapping[str, str], source: str
) -> NestedParameters:
    """Return what a parameter file gives. ``references`` are those of the parent's secret
    parameters by name, ``source`` is the file's name. Raises SpecError."""
    if not references:
        return NestedParameters(parameter_texts(render({}), source=source), {})
    first, second = _placeholders(references, "a"), _placeholders(references, "b")
    texts = parameter_texts(render(first), source=source)
    others = parameter_texts(render(second), source=source)
    if texts.keys() != others.keys():
        fix = "write names without values of secret parameters"
        raise SpecError([Reason(problem="its names depend on a secret", fix=fix)], source=source)
    found = NestedParameters({}, {})
    problems: list[Reason] = []
    for name, text in texts.items():
        secret = next((one for one, value in first.items() if value == text), None)
        if text == others[name]:
            found.texts[name] = text
        elif secret is not None and others[name] == second[secret]:
            found.secrets[name] = references[secret]
        else:
            problem = "is made of the value of a secret parameter"
            fix = "give it the secret parameter as it is, or a value without it"
            problems.append(Reason(field=name, problem=problem, fix=fix))
    if problems:
        raise SpecError(problems, source=source)
    return found


def _placeholders(names: Mapping[str, str], turn: str) -> dict[str, str]:
    """Texts of one length, which no file has by chance."""
    return {
        name: f"secret-{turn}-{number:04}-parameter" for number, name in enumerate(sorted(names))
    }
