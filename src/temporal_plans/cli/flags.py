"""Options that many commands share, first of all those of the connection to Temporal.

They are the `temporal` CLI's global flags. Like there, they stand before or after the command:
``connected`` adds them to a command's own parameters.
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

if TYPE_CHECKING:
    from temporal_plans.client.connection import Connection


def _option(name: str, text: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(name, help=text, metavar=metavar, **more)


@dataclass(frozen=True)
class ConnectionFlags:
    """The connection as said on the command line; None is left to environment and profile."""

    address: Annotated[
        str | None, _option("--address", "Temporal's address. [TEMPORAL_ADDRESS]", "HOST:PORT")
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
        Path | None, _option("--tls-ca-path", "Authority of the server's certificate.", "FILE")
    ] = None
    tls_ca_data: Annotated[str | None, _option("--tls-ca-data", "The same as data.", "PEM")] = None
    tls_cert_path: Annotated[
        Path | None, _option("--tls-cert-path", "Our certificate.", "FILE")
    ] = None
    tls_cert_data: Annotated[str | None, _option("--tls-cert-data", "The same as data.", "PEM")] = (
        None
    )
    tls_key_path: Annotated[
        Path | None, _option("--tls-key-path", "Our certificate's key.", "FILE")
    ] = None
    tls_key_data: Annotated[str | None, _option("--tls-key-data", "The same as data.", "PEM")] = (
        None
    )
    tls_server_name: Annotated[
        str | None, _option("--tls-server-name", "Name in the server's certificate.", "NAME")
    ] = None
    tls_disable_host_verification: Annotated[
        bool, _option("--tls-disable-host-verification", "Not possible here.", hidden=True)
    ] = False
    grpc_meta: Annotated[
        list[str] | None, _option("--grpc-meta", "Header of every call; repeatable.", "NAME=VALUE")
    ] = None
    identity: Annotated[
        str | None, _option("--identity", "Who we are, in Temporal's history.", "NAME")
    ] = None

    def over(self, other: "ConnectionFlags") -> "ConnectionFlags":
        """These, and what only the other says."""
        said = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) not in (None, False, [])
        }
        if self.tls is False:
            said["tls"] = False
        return dataclasses.replace(other, **said)

    def connection(self) -> "Connection":
        """For ``client.connection.connect``. Raises typer.BadParameter."""
        from temporal_plans.cli.pairs import pairs
        from temporal_plans.client.connection import Connection

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
    """A command whose parameter ``flags`` is filled from the connection's options.

    On a command they are hidden from the help, which has them once, on the command above all.
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

    _present(wrapped, command, [context, *own, *shared])
    return wrapped


def with_connection_flags(callback: Callable[..., None]) -> Callable[..., None]:
    """The same for the command above all: its parameter ``flags`` is what stands before."""
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

    _present(wrapped, callback, [*own, *shared])
    return wrapped


def _present(
    wrapped: Callable[..., None], command: Callable[..., None], parameters: list[inspect.Parameter]
) -> None:
    """Typer reads a command's name, text, signature and annotations."""
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
        help="The service; by default the only one that there is. '' means none.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _text_of(limit: int) -> Callable[[str | None], str | None]:
    """Bytes that are no text become question marks: Temporal would not take it. Longer texts are
    refused, as plans do."""

    def checked(text: str | None) -> str | None:
        if text is None:
            return None
        if len(text) > limit:
            raise typer.BadParameter(f"at most {limit} characters; this has {len(text)}")
        return text.encode(errors="replace").decode()

    return checked


ReasonOption = Annotated[
    str,
    typer.Option("--reason", metavar="TEXT", help="Why; kept in the log.", callback=_text_of(500)),
]
ByOption = Annotated[
    str | None,
    typer.Option(
        "--by",
        metavar="WHO",
        help="Who says so, for the log. [default: USER@HOST]",
        callback=_text_of(200),
    ),
]
WaitOption = Annotated[
    bool,
    typer.Option("--wait", help="Show the plan until it ends; 0 if COMPLETE, else 1."),
]
CanaryOption = Annotated[
    int | None,
    typer.Option(
        "--canary",
        metavar="N",
        min=1,
        max=1000,
        help="This time: N pods of every phase first, each after a continue.",
    ),
]
MaxUnavailableOption = Annotated[
    int | None,
    typer.Option(
        "--max-unavailable",
        metavar="N",
        min=1,
        max=1000,
        help="This time: at most N pods of a phase at once.",
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
        "--values",  # the temporal CLI takes --env-file for its own, before we see it
        "--env-file",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        readable=True,
        help="NAME=VALUE lines for the service file; repeatable, -e wins.",
    ),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="NAME=VALUE", help="A parameter of the plan; repeatable."
    ),
]
PlanArgument = Annotated[
    str, typer.Argument(metavar="PLAN", help="A plan of the service, or the id of one without.")
]
PhaseArgument = Annotated[str, typer.Argument(metavar="PHASE", help="A phase, by name or id.")]
StepArgument = Annotated[str, typer.Argument(metavar="STEP", help="A step of it, by name or id.")]
FileArgument = Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True)]


def examples(*lines: str) -> str:
    """The end of a command's help. ``\\b`` keeps its lines as they are."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])
