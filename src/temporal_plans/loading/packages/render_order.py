"""What goes to and comes from the program that renders templates."""

from typing import TypedDict


class RenderOrder(TypedDict):
    """``templates``: texts by name. ``data``: what ``.`` is in each of them. ``seconds``: processor
    time for one template, ``all_seconds`` for all of them; ``memory``: bytes of the process;
    ``output_limit``: characters of all texts."""

    templates: dict[str, str]
    data: dict[str, object]
    seconds: float
    all_seconds: int
    memory: int
    output_limit: int


class RenderAnswer(TypedDict, total=False):
    """``text``, or ``problem`` with its place (both from 1) where known; ``missing`` is the path of
    a missing key."""

    text: str
    problem: str
    line: int | None
    column: int | None
    fix: str
    missing: tuple[str, ...]
