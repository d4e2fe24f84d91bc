"""Options that many commands share: the connection to Temporal, and others.

The connection options are the global flags of the `temporal` CLI. As there, they may precede or
follow the command: ``connected`` adds them to a command's own parameters.
"""

import copy
import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from temporal_plans.cli.inputs import completion

if TYPE_CHECKING:
    from temporal_plans.client.temporal.connection import Connection


def _option(name: str, text: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(name, help=text, metavar=metavar, **more)


@dataclass(frozen=True)
class ConnectionFlags:
    """The connection options; None leaves a setting to the environment and the profile."""

    address: Annotated[
        str | None,
        _option("--address", "Address of the Temporal server. [TEMPORAL_ADDRESS]", "HOST:PORT"),
    ] = None
    namespace: Annotated[
        str | None, _option("--namespace", "Temporal namespace. [TEMPORAL_NAMESPACE]", "NAME")
    ] = None
    profile: Annotated[
        str | None,
        _option("--profile", "Profile of the configuration file. [TEMPORAL_PROFILE]", "NAME"),
    ] = None
    config_file: Annotated[
        Path | None,
        _option("--config-file", "Configuration file. [TEMPORAL_CONFIG_FILE]", "FILE"),
    ] = None
    api_key: Annotated[str | None, _option("--api-key", "API key. [TEMPORAL_API_KEY]", "KEY")] = (
        None
    )
    tls: Annotated[
        bool | None, _option("--tls/--no-tls", "Encrypt the connection. [TEMPORAL_TLS]")
    ] = None
    tls_ca_path: Annotated[
        Path | None, _option("--tls-ca-path", "CA certificate of the server.", "FILE")
    ] = None
    tls_ca_data: Annotated[
        str | None, _option("--tls-ca-data", "The same, as PEM data.", "PEM")
    ] = None
    tls_cert_path: Annotated[
        Path | None, _option("--tls-cert-path", "Client certificate.", "FILE")
    ] = None
    tls_cert_data: Annotated[
        str | None, _option("--tls-cert-data", "The same, as PEM data.", "PEM")
    ] = None
    tls_key_path: Annotated[
        Path | None, _option("--tls-key-path", "Key of the client certificate.", "FILE")
    ] = None
    tls_key_data: Annotated[
        str | None, _option("--tls-key-data", "The same, as PEM data.", "PEM")
    ] = None
    tls_server_name: Annotated[
        str | None, _option("--tls-server-name", "Name in the server's certificate.", "NAME")
    ] = None
    tls_disable_host_verification: Annotated[
        bool, _option("--tls-disable-host-verification", "Not supported.", hidden=True)
    ] = False
    grpc_meta: Annotated[
        list[str] | None, _option("--grpc-meta", "Header of every call; repeatable.", "NAME=VALUE")
    ] = None
    identity: Annotated[
        str | None, _option("--identity", "Identity of this client in Temporal's history.", "NAME")
    ] = None

    def over(self, other: "ConnectionFlags") -> "ConnectionFlags":
        """Return these flags, completed by the settings that only ``other`` has."""
        own = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) not in (None, False, [])
        }
        if self.tls is False:
            own["tls"] = False
        return dataclasses.replace(other, **own)

    def connection(self) -> "Connection":
        """Return the settings for ``connect``. Raises typer.BadParameter."""
        from temporal_plans.cli.inputs.pairs import pairs
        from temporal_plans.client.temporal.connection import Connection

        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values["grpc_meta"] = pairs(self.grpc_meta or [], "--grpc-meta")
        return Connection(**values)


def _parameters(*, hidden: bool) -> list[inspect.Parameter]:
    hints = get_type_hints(ConnectionFlags, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=_hidden(hints[field.name]) if hidden else hints[field.name],
        )
        for field in dataclasses.fields(ConnectionFlags)
    ]


def _hidden(annotation: Any) -> Any:
    kind, option = get_args(annotation)
    assert isinstance(option, OptionInfo)
    option = copy.copy(option)
    option.hidden = True
    return Annotated[kind, option]


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with connection options, which fill its parameter ``flags``.

    They are hidden in the command's help; the help of `temporal-plan` itself shows them.
    """
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.name != "flags"
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    shared = _parameters(hidden=True)
    names = {parameter.name for parameter in shared}

    def wrapped(*, ctx: typer.Context, **given: Any) -> None:
        here = ConnectionFlags(**{name: given.pop(name) for name in names})
        before = ctx.find_root().obj
        command(flags=here.over(before if before else ConnectionFlags()), **given)

    present(wrapped, command, [context, *own, *shared])
    return wrapped


def with_connection_flags(callback: Callable[..., None]) -> Callable[..., None]:
    """Return the callback of the app, its ``flags`` filled from options before the command."""
    shared = _parameters(hidden=False)
    names = {parameter.name for parameter in shared}
    own = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(callback, eval_str=True).parameters.values()
        if parameter.name != "flags"
    ]

    def wrapped(**given: Any) -> None:
        flags = ConnectionFlags(**{name: given.pop(name) for name in names})
        callback(flags=flags, **given)

    present(wrapped, callback, [*own, *shared])
    return wrapped


def present(
    wrapped: Callable[..., None], command: Callable[..., None], parameters: list[inspect.Parameter]
) -> None:
    """Copy to ``wrapped`` what Typer reads: name, docstring, signature and annotations."""
    wrapped.__name__ = command.__name__
    wrapped.__doc__ = command.__doc__
    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


# --- options of several commands ----------------------------------------------------------------

ServiceOption = Annotated[
    str | None,
    typer.Option(
        "--service",
        "-s",
        metavar="NAME",
        envvar="TEMPORAL_PLAN_SERVICE",
        autocompletion=completion.services,
        help="The service. [default: the only service] '' means no service.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Add the tracebacks of your own code that failed.")
]


def _text_check(limit: int) -> Callable[[str | None], str | None]:
    """Return a check of texts: longer ones are refused, as plans do. Bytes that are not UTF-8
    become question marks, because Temporal refuses them."""

    def checked(text: str | None) -> str | None:
        if text is None:
            return None
        if len(text) > limit:
            raise typer.BadParameter(f"at most {limit} characters (found {len(text)}); shorten it")
        return text.encode(errors="replace").decode()

    return checked


ForceOption = Annotated[
    bool,
    typer.Option("--force", help="Also a plan that has begun and is not reentrant; logged."),
]
ReasonOption = Annotated[
    str,
    typer.Option(
        "--reason", metavar="TEXT", help="The reason, kept in the log.", callback=_text_check(500)
    ),
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="NAME",
        help="The author, kept in the log. [default: USER@HOST]",
        callback=_text_check(200),
    ),
]
WaitOption = Annotated[
    bool,
    typer.Option("--wait", help="Follow the plan to its end; exit with 0 if COMPLETE, else 1."),
]
TimeoutOption = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        help="With --wait: stop waiting after this time, as 90s or 10m, and exit with 1.",
    ),
]
CanaryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--canary",
        metavar="[PHASE=]N",
        help="For this deployment: N pods of every phase, or of one, first, each after a continue;"
        " repeatable.",
    ),
]
MaxUnavailableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--max-unavailable",
        metavar="[PHASE=]N",
        help="For this deployment: at most N pods of every phase, or of one, at once; repeatable.",
    ),
]
EnvOption = Annotated[
    list[str] | None,
    typer.Option(
        "--env", "-e", metavar="NAME=VALUE", help="A value for the service file; repeatable."
    ),
]
EnvFileOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--values",  # the temporal CLI takes --env-file for itself
        "--env-file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        readable=True,
        help="NAME=VALUE lines for the service file; repeatable. -e overrides.",
    ),
]
LenientOption = Annotated[
    bool,
    typer.Option(
        "--lenient", help="Ignore unknown keys of the service file, with a note for each."
    ),
]
UnusedOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Name all values that the service file does not use."),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="NAME=VALUE", help="A parameter of the plan; repeatable."
    ),
]
PlanArgument = Annotated[
    str,
    typer.Argument(
        metavar="PLAN",
        help="A plan of the service, or the id of a plan without a service.",
        autocompletion=completion.plans,
    ),
]
PhaseArgument = Annotated[
    str,
    typer.Argument(
        metavar="PHASE", help="A phase, by name or id.", autocompletion=completion.phases
    ),
]
StepArgument = Annotated[
    str,
    typer.Argument(
        metavar="STEP", help="A step of the phase, by name or id.", autocompletion=completion.steps
    ),
]
FileArgument = Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True)]
SourceArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]",
        help="A service file, or a package: its folder, its archive, or the address of one.",
    ),
]
FileOrPackageArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        exists=True,
        readable=True,
        help="A service file, a plan file, or a package: its folder or its archive.",
    ),
]


def examples(*lines: str) -> str:
    """Return the examples at the end of a help text. ``\\b`` keeps the lines unwrapped."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
