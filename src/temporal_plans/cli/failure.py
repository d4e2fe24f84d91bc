"""What a command's failure is for its user: a message and an exit code, or a bug."""

import sys
from collections.abc import Iterator

FAILED, USAGE = 1, 2

_KNOWN = {
    "temporal_plans.domain.errors": {"SpecError": FAILED},
    "temporal_plans.client.errors": {"PlansError": FAILED},
    "temporal_plans.client.connection": {
        "NamespaceNotFoundError": FAILED,
        "ServerUnreachableError": FAILED,
        "ConnectionSettingsError": USAGE,
    },
    "temporal_plans.activities.agent.layout": {"WorkDirInUse": FAILED},
    "temporal_plans.activities.agent.main": {"AgentCannotRun": FAILED},
    "temporal_plans.activities.agent.secrets": {"InvalidSecretProvider": USAGE},
    "temporal_plans.worker.dev": {"DevServerError": FAILED},
    "temporal_plans.worker.server_binary": {"ServerBinaryMissingError": FAILED},
    "temporal_plans.worker.telemetry": {"TelemetrySettingError": USAGE},
}
"""The errors whose text is for people, by the modules that they are defined in. An error of a
module that was never loaded can't have happened, so none is loaded to look it up."""


def known_failure(error: BaseException) -> tuple[str, int] | None:
    """The text and the exit code of an error that is no bug of ours; None for one that is."""
    return next(((str(error), code) for kind, code in _loaded() if isinstance(error, kind)), None)


def _loaded() -> Iterator[tuple[type[BaseException], int]]:
    for module, kinds in _KNOWN.items():
        if module in sys.modules:
            for name, code in kinds.items():
                yield getattr(sys.modules[module], name), code
