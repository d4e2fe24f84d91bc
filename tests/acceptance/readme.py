"""The commands that README.md prints, and what it says that they print.

A ``console`` block holds commands, each on a line that begins with ``$ ``. The lines below one are
found among those that it prints, in that order; ``…`` stands for anything. A command ends with 0;
one that is to end otherwise says so in a comment, ``# exit code 1``. A command that only looks is
repeated until it prints what is said: a reader would look again, too.

What can't be run here, because it never ends or would install things, stands in a block that
follows an HTML comment with the reason: ``<!-- not run: never ends -->``. A ring that can run the
blocks of one reason asks for these (``NEEDS_KUBERNETES``).
"""

import asyncio
import os
import re
import signal
import tempfile
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from acceptance.cluster import PROGRAMS, ROOT
from acceptance.forked import on_path
from acceptance.programs import Said, run
from pauses import PATIENCE, Pauses, until

README = ROOT / "README.md"

WALKTHROUGH = "A change of twenty pods, and one crashes"
"""The title of the section that has a test of its own."""

NEEDS_KUBERNETES = "needs a Kubernetes cluster"
"""Why a block is not run in this ring, and is in that of Kubernetes."""

LIMIT = 300.0
"""Seconds that a command may take."""

_FENCE = re.compile(r"```(?P<language>\w*)\s*")
_NOT_RUN = re.compile(r"<!--\s*not run:\s*(?P<reason>.*\S)\s*-->")
_EXIT_CODE = re.compile(r"\s#.*\bexit code (?P<code>\d+)\s*$")
_HEREDOC = re.compile(r"<<\s*'?(?P<word>\w+)'?\s*$")
_LOOKS = re.compile(
    r"temporal plan (agents|config|configs|diff|explain|history|list|log|logs|pods|schedule list"
    r"|schedule show|show|tasks|fleet (?:status|explain|plans|releases|graph))\b"
    r"(?!.*--(watch|follow)\b)"
)
_LASTS = re.compile(r"temporal[ -]plan (worker|agent|dev)\b")


@dataclass(frozen=True)
class Command:
    """A command of a console block, where it stands, the exit code that it must have, and the lines
    that it is said to print."""

    text: str
    line: int
    code: int = 0
    says: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"

    @property
    def looks(self) -> bool:
        """It changes nothing and ends by itself: it may be repeated."""
        return _LOOKS.match(self.text) is not None

    @property
    def lasts(self) -> bool:
        """It runs until it is stopped: a reader would use another terminal."""
        return _LASTS.match(self.text) is not None


def section(markdown: str, title: str) -> str:
    """A section with its heading ``## title``; what is before it is left as empty lines, so that
    line numbers stay. LookupError when there is none."""
    lines = markdown.splitlines()
    begin, end = _bounds(lines, title)
    return "\n".join([*[""] * begin, *lines[begin:end]]) + "\n"


def without_section(markdown: str, title: str) -> str:
    """The rest, the section's lines left as empty ones."""
    lines = markdown.splitlines()
    begin, end = _bounds(lines, title)
    return "\n".join([*lines[:begin], *[""] * (end - begin), *lines[end:]]) + "\n"


def _bounds(lines: list[str], title: str) -> tuple[int, int]:
    heading = f"## {title}"
    if heading not in lines:
        raise LookupError(f"there is no section {title!r}")
    begin = lines.index(heading)
    others = (n for n in range(begin + 1, len(lines)) if lines[n].startswith("## "))
    return begin, next(others, len(lines))


def commands(markdown: str, reason: str = "") -> Iterator[Command]:
    """The commands to run: those without a reason against it, or those of blocks that have this
    one. ValueError for a block that would be passed over by mistake."""
    lines = iter(enumerate(markdown.splitlines(), start=1))
    skipped = ""
    for number, line in lines:
        if not_run := _NOT_RUN.fullmatch(line.strip()):
            skipped = not_run["reason"]
        elif fence := _FENCE.fullmatch(line.strip()):
            block = _until_fence(lines, number)
            if fence["language"] == "console":
                found = list(_commands_in(block))
                if not found:
                    raise ValueError(f"line {number}: a console block without a `$ ` line")
                yield from found if skipped == reason else ()
            elif skipped:
                raise ValueError(f"line {number}: `not run` stands before a block that never is")
            skipped = ""
        elif line.strip() and skipped:
            raise ValueError(f"line {number}: `not run` must stand right before a block")


def _until_fence(lines: Iterator[tuple[int, str]], start: int) -> list[tuple[int, str]]:
    block: list[tuple[int, str]] = []
    for number, line in lines:
        if line.strip() == "```":
            return block
        block.append((number, line))
    raise ValueError(f"line {start}: a block without an end")


def _commands_in(block: list[tuple[int, str]]) -> Iterator[Command]:
    place = 0
    while place < len(block):
        number, line = block[place]
        place += 1
        if not line.startswith("$ "):
            raise ValueError(f"line {number}: what a console block prints stands below a `$ ` line")
        text = line.removeprefix("$ ")
        while text.endswith("\\") or _open_heredoc(text):
            if place == len(block):
                raise ValueError(f"line {number}: the command goes on, and the block ends")
            text += "\n" + block[place][1].removeprefix("> ")
            place += 1
        says: list[str] = []
        while place < len(block) and not block[place][1].startswith("$ "):
            says.append(block[place][1])
            place += 1
        code = _EXIT_CODE.search(text)
        yield Command(text, number, int(code["code"]) if code else 0, tuple(says))


def _open_heredoc(text: str) -> bool:
    first, *rest = text.split("\n")
    word = _HEREDOC.search(first)
    return word is not None and word["word"] not in rest


def missing(says: Iterable[str], printed: str) -> str | None:
    """The first line that was not printed behind those before it; None when all were. Spaces count
    as one, those at the end not at all."""
    lines = iter(printed.splitlines())
    for said in says:
        words = " ".join(said.split())
        if words in ("", "…"):
            continue
        pattern = re.compile(".*".join(map(re.escape, words.split("…"))))
        if not any(pattern.fullmatch(" ".join(line.split())) for line in lines):
            return said
    return None


async def run_all(markdown: str, env: Mapping[str, str], directory: Path, reason: str = "") -> None:
    """Run the commands in order, each in a shell of its own; those that last run beside the others,
    to the end. AssertionError when there are none, and for the first that does not end or print as
    the text says."""
    to_run = list(commands(markdown, reason))
    assert to_run, "the text prints no command that could be run"
    async with AsyncExitStack() as lasting:
        programs = lasting.enter_context(tempfile.TemporaryDirectory())
        env = on_path(env, Path(programs))
        for command in to_run:
            begun = time.monotonic()
            if command.lasts:
                await lasting.enter_async_context(_running(command, env, directory))
                continue
            said = await _run(command, env, directory)
            print(f"{command}  ({time.monotonic() - begun:.1f} s)\n{said.both}")
            assert said.code == command.code, f"{command}\n{said}"
            absent = missing(command.says, said.both)
            assert absent is None, f"{command}\nit did not print {absent!r}:\n{said}"


@asynccontextmanager
async def _running(
    command: Command, env: Mapping[str, str], directory: Path
) -> AsyncGenerator[None]:
    """Run a command that lasts, from its first line on. It must not end by itself."""
    with tempfile.TemporaryFile() as output:
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", command.text), env=dict(env), cwd=directory,
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip

        def printed() -> str:
            return os.pread(output.fileno(), 100_000, 0).decode(errors="replace")

        async def speaks() -> bool:
            return bool(printed()) or process.returncode is not None

        try:
            await until(speaks)
            assert process.returncode is None, f"{command}\nit ended:\n{printed()}"
            yield
            assert process.returncode is None, f"{command}\nit ended:\n{printed()}"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGTERM)
                await process.wait()


async def _run(command: Command, env: Mapping[str, str], directory: Path) -> Said:
    environment = {**env, "VIRTUAL_ENV": str(PROGRAMS.parent)}
    deadline, pauses = time.monotonic() + PATIENCE, Pauses(0.5, 2)
    while True:
        said = await run(
            Path("/bin/sh"), "-c", command.text, env=environment, cwd=directory, limit=LIMIT
        )
        as_said = said.code == command.code and missing(command.says, said.both) is None
        if as_said or not command.looks or time.monotonic() > deadline:
            return said
        await pauses.pause()
