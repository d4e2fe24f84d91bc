"""Where the values of secrets come from.

A service holds references only. The agent looks them up when it launches a task, asking its
providers in order; a value goes into the task's environment or a file of mode 0600 in its sandbox,
and nowhere else.
"""

import asyncio
import importlib
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol, cast

from temporal_plans.activities.agent.environment import variable_name
from temporal_plans.activities.agent.refusal import TaskRefused
from temporal_plans.domain.task import TaskState


class SecretProvider(Protocol):
    """One place to look a secret up. An exception means: could not be asked."""

    async def find(self, reference: str) -> bytes | None:
        """The secret's value; None when this provider has none of that name."""
        ...


class InvalidSecretProvider(ValueError):
    """A provider was written in a way that isn't understood; the text says the forms there are."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(
            f"secrets: {text!r}: {problem}; write file:<directory>, env:<prefix> or "
            "python:<module>:<function>"
        )


class FileSecrets:
    """A directory with one file for each secret, at the secret's path."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def find(self, reference: str) -> bytes | None:
        path = PurePosixPath(reference.strip("/"))
        if ".." in path.parts:
            return None
        try:
            return await asyncio.to_thread((self._directory / path).read_bytes)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None


class EnvironmentSecrets:
    """Variables of the agent: with the prefix ``X_``, ``db/password`` is ``X_DB_PASSWORD``."""

    def __init__(self, prefix: str, environment: Mapping[str, str] = os.environ) -> None:
        self._prefix = prefix
        self._environment = environment

    async def find(self, reference: str) -> bytes | None:
        value = self._environment.get(self._prefix + variable_name(reference.strip("/")))
        return None if value is None else os.fsencode(value)


class FunctionSecrets:
    """A function of your own: takes the reference, returns str, bytes or None, or awaits them."""

    def __init__(self, function: Callable[[str], object]) -> None:
        self._function = function

    async def find(self, reference: str) -> bytes | None:
        if inspect.iscoroutinefunction(self._function):
            value = await cast(Awaitable[object], self._function(reference))
        else:
            value = await asyncio.to_thread(self._function, reference)
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, str):
            return value.encode()
        raise TypeError(f"a secret must be str, bytes or None, not {type(value).__name__}")


class Secrets:
    """All providers of an agent, asked in order; the first that has the secret wins."""

    def __init__(self, providers: Sequence[SecretProvider]) -> None:
        self._providers = tuple(providers)

    async def resolve(self, reference: str, *, field: str) -> bytes:
        """The value. TaskRefused (FAILED) when nobody has it or one could not be asked.

        The message names the reference and the kind of error, not its text: a provider's
        exception may well quote what it was working on.
        """
        for provider in self._providers:
            try:
                value = await provider.find(reference)
            except Exception as problem:
                raise TaskRefused(
                    f"{field}: secret {reference!r} could not be looked up by "
                    f"{type(provider).__name__}: {type(problem).__name__}",
                    TaskState.FAILED,
                ) from None
            if value is not None:
                return value
        known = ", ".join(type(provider).__name__ for provider in self._providers) or "none"
        raise TaskRefused(
            f"{field}: secret {reference!r} was not found; this agent's providers: {known}",
            TaskState.FAILED,
        )


def secret_provider(text: str) -> SecretProvider:
    """A provider as it is written in the settings; InvalidSecretProvider when it can't be had."""
    kind, _, rest = text.partition(":")
    if kind == "file" and rest:
        return FileSecrets(Path(rest))
    if kind == "env":
        return EnvironmentSecrets(rest)
    if kind == "python":
        return FunctionSecrets(_function(text, rest))
    raise InvalidSecretProvider(text, "is not a known kind of provider")


def _function(text: str, location: str) -> Callable[[str], object]:
    module, _, name = location.partition(":")
    if not module or not name:
        raise InvalidSecretProvider(text, "needs a module and a function")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise InvalidSecretProvider(text, str(problem)) from None
    if not callable(function):
        raise InvalidSecretProvider(text, f"{name} can't be called")
    return cast(Callable[[str], object], function)


def redact(text: str, values: Sequence[str]) -> str:
    """The text with every secret value in it struck out; longest first, empty ones never."""
    for value in sorted(values, key=len, reverse=True):
        if value.strip():
            text = text.replace(value, "*****")
    return text
