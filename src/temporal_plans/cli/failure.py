"""What a command's failure is for its user: a message and an exit code, or a bug."""


def known_failure(error: BaseException) -> tuple[str, int] | None:
    """The text and the exit code of an error that is no bug of ours; None for one that is.

    Looked up when something has failed: the imports are slow.
    """
    from temporal_plans.activities.agent.layout import WorkDirInUse
    from temporal_plans.activities.agent.main import AgentCannotRun
    from temporal_plans.activities.agent.secrets import InvalidSecretProvider
    from temporal_plans.client.connection import ConnectionSettingsError, ServerUnreachableError
    from temporal_plans.client.errors import PlansError
    from temporal_plans.domain.errors import SpecError
    from temporal_plans.worker.dev import DevServerError
    from temporal_plans.worker.server_binary import ServerBinaryMissingError
    from temporal_plans.worker.telemetry import TelemetrySettingError

    usage = (ConnectionSettingsError, TelemetrySettingError, InvalidSecretProvider)
    failed = (
        PlansError,
        SpecError,
        ServerUnreachableError,
        DevServerError,
        ServerBinaryMissingError,
        WorkDirInUse,
        AgentCannotRun,
    )
    if isinstance(error, usage):
        return str(error), 2
    if isinstance(error, failed):
        return str(error), 1
    return None
