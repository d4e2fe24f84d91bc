"""The program ``bootstrap`` in a task's sandbox: it renders the task's config templates.

A task's command calls it (``./bootstrap``) when its templates need variables that the command
exports first. It reads every variable ``CONFIG_TEMPLATE_<NAME>=<template>,<file>`` of its
environment and writes the files, with mustache as ``loading.text.mustache`` has it: a missing value
is an empty text, and a note names it.

It runs as the task's user, who may not be able to read this package: ``templates`` copies this text
into the sandbox, below a first line that executes a Python. It therefore imports the standard
library only, and runs on Python 3.6 and newer.
"""

import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the oldest Python has no annotations of these forms at run time
    from typing import Any

PREFIX = "CONFIG_TEMPLATE_"
ADDRESS = "MESOS_CONTAINER_IP"

USAGE = """\
Usage: bootstrap [--template=false] [--get-task-ip]

Render the config templates of this task with the environment: each CONFIG_TEMPLATE_<NAME> is
<template>,<file>, both relative to the directory of this program.

--get-task-ip     print the address of this machine, and render nothing
--template=false  render nothing

Other options are accepted without effect: names are not resolved and certificates not installed.
"""

_SCALAR, _SECTION, _INVERTED = range(3)
_FALSE = ("false", "0", "f")


class TemplateFault(Exception):
    """A template, or the variable that names it, is not valid."""


class Template:
    """A parsed template: texts, and tags as (type, name, content)."""

    def __init__(self, text: str) -> None:
        self._nodes = _parse(text)
        self.missing: list[str] = []

    def render(self, values: "dict[str, str]") -> str:
        """Return the text with values; ``missing`` has the names without a value afterwards."""
        self.missing = []
        return self._render(self._nodes, values, [])

    def _render(self, nodes: "list[Any]", values: "dict[str, str]", stack: "list[Any]") -> str:
        return "".join(
            node if isinstance(node, str) else self._tag(node, values, stack) for node in nodes
        )

    def _tag(self, node: "Any", values: "dict[str, str]", stack: "list[Any]") -> str:
        kind, name, content = node
        value = _value(name, values, stack)
        if kind == _SECTION:
            return self._render(content, values, [*stack, value]) if value else ""
        if kind == _INVERTED:
            return "" if value else self._render(content, values, stack)
        if value is None:
            if name not in self.missing:
                self.missing.append(name)
            return ""
        text = str(value).lower() if isinstance(value, bool) else value
        return _escaped(text) if content else text


def _value(name: str, values: "dict[str, str]", stack: "list[Any]") -> "Any":
    if name == ".":
        return stack[-1] if stack else None
    value = values.get(name)
    if value is not None and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value


def _escaped(text: str) -> str:
    pairs = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;"))
    for character, entity in pairs:
        text = text.replace(character, entity)
    return text


def _pattern(opening: str, closing: str) -> "re.Pattern[str]":
    return re.compile(
        r"(?P<space>[ \t]*)"
        + re.escape(opening)
        + r"\s*(?:=\s*(?P<delimiters>.+?)\s*=|\{\s*(?P<raw>.+?)\s*\}"
        + r"|(?P<type>[!>&/#^]?)\s*(?P<name>[\s\S]+?))\s*"
        + re.escape(closing)
    )


def _parse(text: str) -> "list[Any]":
    """Return the nodes of a template. Raises TemplateFault."""
    tag = _pattern("{{", "}}")
    nodes: list[Any] = []
    open_sections: list[tuple[int, str, list[Any]]] = []
    done = 0
    while True:
        match = tag.search(text, done)
        if match is None:
            break
        kind, name = match.group("type"), match.group("name")
        if match.group("delimiters") is not None:
            kind, name = "=", match.group("delimiters")
        elif match.group("raw") is not None:
            kind, name = "&", match.group("raw")
        begin, end = _extent(text, match, kind)
        if begin > done:
            nodes.append(text[done:begin])
        done = end
        if kind in ("#", "^"):
            open_sections.append((_SECTION if kind == "#" else _INVERTED, name, nodes))
            nodes = []
        elif kind == "/":
            nodes = _closed(name, nodes, open_sections)
        elif kind == "=":
            tag = _pattern(*_delimiters(name))
        elif kind == ">":
            raise TemplateFault(f"partials are not supported (found {{{{>{name}}}}})")
        elif kind != "!":
            nodes.append((_SCALAR, name, kind == ""))
    if open_sections:
        raise TemplateFault(f"the section {{{{#{open_sections[-1][1]}}}}} is not closed")
    if done < len(text):
        nodes.append(text[done:])
    return nodes


def _extent(text: str, match: "re.Match[str]", kind: str) -> "tuple[int, int]":
    """Return the part of the text that a tag takes: its whole line, if it is alone on it and has no
    value."""
    begin, end = match.span()
    starts_line = begin == 0 or text[begin - 1] in "\r\n"
    ends_line = end == len(text) or text[end] in "\r\n"
    if not (starts_line and ends_line) or kind in ("", "&"):
        return begin + len(match.group("space")), end
    if text[end : end + 1] == "\r":
        end += 1
    if text[end : end + 1] == "\n":
        end += 1
    return begin, end


def _closed(
    name: str, content: "list[Any]", open_sections: "list[tuple[int, str, list[Any]]]"
) -> "list[Any]":
    """Close the innermost section; return the nodes around it, with it."""
    if not open_sections or open_sections[-1][1] != name:
        raise TemplateFault(f"{{{{/{name}}}}} closes no section")
    kind, _, nodes = open_sections.pop()
    nodes.append((kind, name, content))
    return nodes


def _delimiters(text: str) -> "tuple[str, str]":
    parts = text.split()
    if len(parts) != 2:
        raise TemplateFault(f"{{{{={text}=}}}} must have two delimiters")
    return parts[0], parts[1]


def render_all(directory: str, environment: "dict[str, str]") -> "list[str]":
    """Render every config template; return a line for each file. Raises TemplateFault, OSError."""
    lines: list[str] = []
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and environment[variable]:
            lines.append(_render_file(directory, variable, environment))
    return lines


def _render_file(directory: str, variable: str, environment: "dict[str, str]") -> str:
    source, comma, target = environment[variable].partition(",")
    if not (source and comma and target):
        raise TemplateFault(f"{variable}: not <template>,<file> (found {environment[variable]!r})")
    with open(os.path.join(directory, source), "rb") as file:
        text = file.read().decode("utf-8", "surrogateescape")
    try:
        template = Template(text)
    except TemplateFault as fault:
        raise TemplateFault(f"{source}: {fault}") from None
    rendered = template.render(environment).encode("utf-8", "surrogateescape")
    _replace(os.path.join(directory, target), rendered)
    names = ", ".join(template.missing)
    note = f"; no value for {names}: empty text" if names else ""
    return f"wrote {target}{note}"


def _replace(path: str, data: bytes) -> None:
    """Replace a file atomically. It keeps its mode; a new one is not readable by other users."""
    try:
        mode = os.lstat(path).st_mode & 0o777 if not os.path.islink(path) else 0o640
    except OSError:
        mode = 0o640
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), mode)
    os.replace(temporary, path)


def _options(arguments: "list[str]") -> "dict[str, str]":
    """Return options by name: ``-name``, ``--name``, ``--name=value``."""
    found: dict[str, str] = {}
    for argument in arguments:
        name, _, value = argument.lstrip("-").partition("=")
        if argument.startswith("-"):
            found[name] = value or "true"
    return found


def _print(text: str, *, error: bool = False) -> None:
    os.write(2 if error else 1, text.encode("utf-8", "backslashreplace") + b"\n")


def main(program: str, arguments: "list[str]") -> int:
    """Do what the options say; return the exit code."""
    environment = {
        os.fsencode(key).decode("utf-8", "surrogateescape"): os.fsencode(value).decode(
            "utf-8", "surrogateescape"
        )
        for key, value in os.environ.items()
    }
    if "TASK_NAME" in environment:  # some shells pass on no variable of such a name
        environment.setdefault(environment["TASK_NAME"], "true")
    options = _options(arguments)
    if "help" in options or "h" in options:
        _print(USAGE.rstrip())
        return 0
    if options.get("get-task-ip", "false").lower() not in _FALSE:
        address = environment.get(ADDRESS, "")
        _print(address or f"bootstrap: {ADDRESS} is not set", error=not address)
        return 0 if address else 1
    if options.get("template", "true").lower() in _FALSE:
        return 0
    try:
        lines = render_all(os.path.dirname(os.path.abspath(program)), environment)
    except (TemplateFault, OSError) as fault:
        _print(f"bootstrap: {fault}", error=True)
        return 1
    for line in lines:
        _print(f"bootstrap: {line}", error=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[0], sys.argv[1:]))
