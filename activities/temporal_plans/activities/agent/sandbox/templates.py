"""Config templates of a task: rendered at launch, or by the task itself with ``bootstrap``.

A task whose command calls ``./bootstrap`` renders its templates then, with the variables that the
command exported before. For all other tasks the agent renders them at launch. Both are lenient: a
missing value is an empty text, and a note names it.
"""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.sandbox import bootstrap_program
from temporal_plans.activities.agent.sandbox.identity import Identity, first_closed_parent
from temporal_plans.domain.services.spec import ConfigTemplate
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.domain.values.text import shortened
from temporal_plans.loading.text.mustache import TemplateError, render_leniently

BOOTSTRAP = "bootstrap"
"""The program's name in the sandbox."""

_NOTE_LIMIT = 500
"""Characters of the note on missing values."""

_ELF = b"\x7fELF"

_CALL = re.compile(
    r"""(?<![\w./-])(?:\./|["']?\$(?:MESOS_SANDBOX|\{MESOS_SANDBOX\})["']?/)bootstrap(?![\w./-])"""
    r"""(?!["']?\s+--?get-task-ip\b)"""
)

_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))#.*$")

_SIMPLE_PATH = re.compile(r"[!-~]{1,100}")

_WITHOUT_PYTHON = """\
#!/bin/sh
case "$1" in
*-get-task-ip*) echo "$MESOS_CONTAINER_IP"; exit 0 ;;
esac
echo "bootstrap: config templates can't be rendered: the task's user may execute no Python on this\
 machine; install /usr/bin/python3" >&2
exit 1
"""

_SYSTEM_PYTHONS = (Path("/usr/bin/python3"), Path("/usr/local/bin/python3"))


class RenderedConfig(NamedTuple):
    """The text of a config file, and the names in its template that have no value."""

    config: ConfigTemplate
    text: str
    missing: tuple[str, ...]


def render_configs(
    configs: tuple[ConfigTemplate, ...], env: Mapping[str, str]
) -> tuple[RenderedConfig, ...]:
    """Render config templates. Raises TaskRefused for a template that is malformed."""
    return tuple(_render(config, env) for config in configs)


def _render(config: ConfigTemplate, env: Mapping[str, str]) -> RenderedConfig:
    try:
        text, missing = render_leniently(config.template, env, name=config.name)
    except TemplateError as problem:
        reason = Reason(field=f"configs.{config.name}", problem=str(problem))
        raise TaskRefused(reason) from None
    return RenderedConfig(config, text, missing)


def missing_note(rendered: tuple[RenderedConfig, ...]) -> str:
    """Return a note for the task's status on values that are missing; empty without any."""
    texts = [f"{one.config.dest}: {', '.join(one.missing)}" for one in rendered if one.missing]
    note = f"config values that are not set, and empty: {'; '.join(texts)}" if texts else ""
    return shortened(note, _NOTE_LIMIT)


def calls_bootstrap(cmd: str) -> bool:
    """Return whether a command calls ``bootstrap`` to render the task's templates."""
    return _CALL.search(_COMMENT.sub("", cmd)) is not None


def bootstrap_text(python: Path | None) -> bytes:
    """Return the program ``bootstrap``, executed by that Python; without any, a program that fails
    and says so.

    The path may be too long for a ``#!`` line, or have spaces. Then the second line is a command
    for the shell and a string for Python. Some shells lose variables such as ``hello-0-server``.
    """
    if python is None:
        return _WITHOUT_PYTHON.encode()
    source = Path(bootstrap_program.__file__).read_text(encoding="utf-8")
    if _SIMPLE_PATH.fullmatch(str(python)):
        return f"#!{python} -IS\n{source}".encode()
    quoted = shlex.quote(str(python))
    interpreter = quoted if quoted.startswith("'") else f"'{quoted}'"
    return f'#!/bin/sh\n"exec" {interpreter} \'-I\' \'-S\' "$0" "$@"\n{source}'.encode()


def install_bootstrap(sandbox: Path, python: Path | None) -> bool:
    """Put ``bootstrap`` into a sandbox; return whether it is the agent's program.

    A compiled program of that name among the task's files waits for DNS names and services that do
    not exist here: it is kept as ``bootstrap.fetched``. Any other file of that name stays.
    """
    target = sandbox / BOOTSTRAP
    if target.is_symlink() or target.exists():
        if target.is_symlink() or not target.is_file() or not _is_compiled(target):
            return False
        target.rename(target.with_name(f"{BOOTSTRAP}.fetched"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(target, flags, 0o755), "wb") as file:
        file.write(bootstrap_text(python))
        os.fchmod(file.fileno(), 0o755)
    return True


def _is_compiled(path: Path) -> bool:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # it may have been replaced by now
    with open(os.open(path, flags), "rb") as file:
        return file.read(len(_ELF)) == _ELF


def python_for(identity: Identity | None) -> Path | None:
    """Return a Python that the task's user may execute: the agent's own, without its virtual
    environment, or else the system's. None if there is none."""
    own = Path(sys.executable).resolve()
    library = Path(os.__file__)
    if identity is None or all(
        first_closed_parent(path, identity) is None for path in (own, library)
    ):
        return own
    return next((python for python in _SYSTEM_PYTHONS if python.exists()), None)
