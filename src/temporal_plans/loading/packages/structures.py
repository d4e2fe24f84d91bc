"""Lists and mappings as the texts that parameters have for them."""

import yaml

from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.text import plain_scalars
from temporal_plans.loading.text.document import read_yaml


def decode(text: str) -> object:
    """Return the value of a YAML text; None for an empty one. Raises ValueError with the
    problem."""
    if not text.strip():
        return None
    try:
        document = read_yaml(text, scalars="yaml-1.1", source="")
    except SpecError as error:
        raise ValueError(str(error.reasons[0])) from error
    return document.value


def encode(value: object) -> str:
    """Return a value as a YAML text, from which ``decode`` makes an equal one."""
    return yaml.dump(
        value,
        Dumper=_Dumper,
        default_flow_style=False,
        allow_unicode=True,
        sort_keys=True,
        width=float("inf"),
    )


class _Dumper(yaml.SafeDumper):
    """Quotes the texts that YAML 1.1 would read as another type."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    plain = plain_scalars.yaml_1_1(text)
    another = text in plain_scalars.NULL or not isinstance(plain, str)
    style = '"' if another else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
