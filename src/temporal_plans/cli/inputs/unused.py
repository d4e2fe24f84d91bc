"""Values of the command line that the service file does not use: most likely mistyped."""

from collections.abc import Iterable
from pathlib import Path

from temporal_plans.cli.terminal.output import print_note
from temporal_plans.domain.plans import backoff
from temporal_plans.domain.services.recovery import policy as recovery_policy
from temporal_plans.domain.values.names import did_you_mean
from temporal_plans.loading.services import taskcfg
from temporal_plans.loading.text.files import read_text
from temporal_plans.loading.text.mustache import names_in

_POLICIES = frozenset({*backoff.VARIABLES, *recovery_policy.VARIABLES})


_NAMED_LIMIT = 3
"""Names in a note that is not verbose: more are the values of a whole package."""


def warn_unused(path: Path, given: Iterable[str], *, verbose: bool = False) -> None:
    """Print a note on standard error on those of the names that nothing uses: one line, with the
    names if they are few, else their number. ``verbose``: a line for each name.

    Only for values given singly: a file of values is often for several services.
    """
    known = names_in(read_text(path))
    if known is None:
        return
    known = known | _POLICIES
    unused = [name for name in given if name not in known and not name.startswith(taskcfg.PREFIX)]
    if verbose or len(unused) == 1:
        for name in unused:
            hints = (f"{path.name} does not use the value {name}", did_you_mean(name, known))
            print_note("; ".join(filter(None, hints)))
    elif len(unused) > _NAMED_LIMIT:
        print_note(f"{path.name} does not use {len(unused)} of the values; -v names them")
    elif unused:
        print_note(f"{path.name} does not use the values {', '.join(unused)}")
