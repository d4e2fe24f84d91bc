"""The names of a service's own plans, and their priority for assets."""

from collections.abc import Mapping
from types import MappingProxyType

DEPLOY = "deploy"
UPDATE = "update"
"""In a service file: replaces ``deploy`` once a deployment has been complete (behaviour 5.4)."""

RECOVERY = "recovery"
DECOMMISSION = "decommission"

RESERVED = frozenset({RECOVERY, DECOMMISSION})
"""Plans that every service has; a file can't define them."""

PRIORITIES: Mapping[str, int] = MappingProxyType({DEPLOY: 0, RECOVERY: 1, DECOMMISSION: 2})
"""The order in which plans get an asset (behaviour 4.1); all others follow, as the file has them.
"""
