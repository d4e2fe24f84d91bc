"""Values on the command line that mean nothing to the service file: most likely mistyped."""

from collections.abc import Iterable
from pathlib import Path

from temporal_plans.cli.output import note
from temporal_plans.domain import backoff, recovery_policy
from temporal_plans.domain.names import did_you_mean
from temporal_plans.loading import taskcfg
from temporal_plans.loading.mustache import names_in
from temporal_plans.loading.service import read_text

_POLICIES = frozenset({*backoff.VARIABLES, *recovery_policy.VARIABLES})


def tell_unused(path: Path, given: Iterable[str]) -> None:
    """A note on standard error for each of these names that nothing uses.

    Files of values are not looked at: one is often for several services.
    """
    known = names_in(read_text(path))
    if known is None:
        return
    known = known | _POLICIES
    for name in given:
        if name not in known and not name.startswith(taskcfg.PREFIX):
            said = (f"{path.name} does not use the value {name}", did_you_mean(name, known))
            note("; ".join(filter(None, said)))
