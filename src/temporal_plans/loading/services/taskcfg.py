"""``TASKCFG_*``: values of the environment that are passed to tasks (behaviour 12.3)."""

import re
from collections.abc import Mapping

PREFIX = "TASKCFG_"
_EVERY_POD = "ALL"


def task_environment(pod_type: str, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that ``env`` adds to the environment of every task of a pod.

    ``TASKCFG_ALL_<K>`` sets ``<K>`` for all pods, ``TASKCFG_<POD>_<K>`` for one; the pod's type is
    in upper case, with ``_`` for each character that is not a letter or digit. Every prefix that
    matches applies: ``TASKCFG_A_B_C`` is ``B_C`` for pod ``a`` and ``C`` for pod ``a-b``. Of two
    variables for one ``<K>``, the alphabetically later has precedence.
    """
    pod = re.sub(r"[^A-Z0-9]", "_", pod_type.upper())
    prefixes = (f"{PREFIX}{_EVERY_POD}_", f"{PREFIX}{pod}_")
    variables: dict[str, str] = {}
    for name in sorted(env):
        for prefix in prefixes:
            if name.startswith(prefix) and len(name) > len(prefix):
                variables[name.removeprefix(prefix)] = env[name]
    return variables
