"""The kinds of entities: one file a kind, with its line in ``ENTITY_KINDS``. Developers register
their own with the plugin."""

from temporal_plans.activities.fleets.kinds.package import PACKAGE
from temporal_plans.activities.fleets.kinds.plan import PLAN
from temporal_plans.activities.fleets.kinds.record import EntityKind
from temporal_plans.activities.fleets.kinds.service import SERVICE

ENTITY_KINDS: tuple[EntityKind, ...] = (SERVICE, PACKAGE, PLAN)
