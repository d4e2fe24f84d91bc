"""``TASKCFG_*``: values of the environment that reach tasks (reference 12.3)."""

import re
from collections.abc import Mapping

PREFIX = "TASKCFG_"
_EVERY_POD = "ALL"


def task_environment(pod_type: str, env: Mapping[str, str]) -> dict[str, str]:
    """What ``env`` adds to the environment of every task of a pod.

    ``TASKCFG_ALL_<K>`` gives ``<K>`` to all pods, ``TASKCFG_<POD>_<K>`` to one; the pod's type is
    written in upper case with ``_`` for everything else than letters and digits. A prefix takes
    all that begins with it: ``TASKCFG_A_B_C`` is ``B_C`` for pod ``a`` and ``C`` for pod ``a-b``.
    Of two variables for one ``<K>``, the alphabetically later wins.
    """
    pod = re.sub(r"[^A-Z0-9]", "_", pod_type.upper())
    prefixes = (f"{PREFIX}{_EVERY_POD}_", f"{PREFIX}{pod}_")
    routed: dict[str, str] = {}
    for name in sorted(env):
        for prefix in prefixes:
            if name.startswith(prefix) and len(name) > len(prefix):
                routed[name.removeprefix(prefix)] = env[name]
    return routed
