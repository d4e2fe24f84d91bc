"""Sources of secrets, and the lookup of a value in them.

Services and packages contain references only. The process that uses a value resolves it, with its
providers in order.
"""

import asyncio
import importlib
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol, cast

from temporal_plans.activities.mechanics.variable_names import variable_name
from temporal_plans.domain.values.failure import UserFacingError


class SecretProvider(Protocol):
    """A source of secrets. An exception means that the source is not available."""

    async def find(self, reference: str) -> bytes | None:
        """Return the secret's value; None when this provider has no such secret."""
        ...


class InvalidSecretProvider(UserFacingError, ValueError):
    """A provider's text is not valid; the message names the valid forms."""

    usage = True

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(
            f"secrets: {problem} (found {text!r}); write file:<directory>, env:<prefix> or "
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
    """Variables of the process: with the prefix ``X_``, ``db/password`` is ``X_DB_PASSWORD``."""

    def __init__(self, prefix: str, environment: Mapping[str, str] = os.environ) -> None:
        self._prefix = prefix
        self._environment = environment

    async def find(self, reference: str) -> bytes | None:
        value = self._environment.get(self._prefix + variable_name(reference.strip("/")))
        return None if value is None else os.fsencode(value)


class FunctionSecrets:
    """A function of yours, sync or async: takes the reference and returns str, bytes or None."""

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


class SecretProviderFailed(Exception):
    """A provider failed. The text names the reference, the provider and the type of the error, not
    its text: a provider's exception may contain a secret."""

    def __init__(self, reference: str, provider: SecretProvider, problem: Exception) -> None:
        super().__init__(
            f"secret {reference!r} could not be looked up by {type(provider).__name__}: "
            f"{type(problem).__name__}"
        )


class SecretLookup:
    """Providers in order; the first that has the secret is used."""

    def __init__(self, providers: Sequence[SecretProvider]) -> None:
        self._providers = tuple(providers)

    @property
    def names(self) -> str:
        """The kinds of the providers, for people."""
        return ", ".join(type(provider).__name__ for provider in self._providers) or "none"

    async def find(self, reference: str) -> bytes | None:
        """Return the value; None when no provider has it. Raises SecretProviderFailed."""
        for provider in self._providers:
            try:
                value = await provider.find(reference)
            except Exception as problem:
                raise SecretProviderFailed(reference, provider, problem) from None
            if value is not None:
                return value
        return None


def secret_provider(text: str) -> SecretProvider:
    """Return the provider for a text of the settings. Raises InvalidSecretProvider."""
    kind, _, rest = text.partition(":")
    if kind == "file" and rest:
        return FileSecrets(Path(rest))
    if kind == "env":
        return EnvironmentSecrets(rest)
    if kind == "python":
        return FunctionSecrets(_function(text, rest))
    raise InvalidSecretProvider(text, "unknown kind of provider")


def _function(text: str, location: str) -> Callable[[str], object]:
    module, _, name = location.partition(":")
    if not module or not name:
        raise InvalidSecretProvider(text, "a module and a function are needed")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise InvalidSecretProvider(text, str(problem)) from None
    if not callable(function):
        raise InvalidSecretProvider(text, f"{name} is not callable")
    return cast(Callable[[str], object], function)
