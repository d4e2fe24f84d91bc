"""When changes may begin, by the settings of an environment and of its entities."""

from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.environment import EnvironmentSettings
from temporal_plans.domain.fleets.suppressions import WindowClass
from temporal_plans.domain.fleets.windows import Window, intersection, union

_Choice = tuple[str, str, str, WindowClass]
"""A product, the names of the windows for downtime and without, and the class of a change."""


class ChangeWindows:
    """The windows of changes, overrides aside. What was computed is kept."""

    def __init__(self, settings: EnvironmentSettings) -> None:
        self._settings = settings
        self._known: dict[_Choice, Window] = {}

    def forget(self) -> None:
        """Compute again: the window of a product is another."""
        self._known.clear()

    def of(self, entity: Entity, product: Window | None, wanted: WindowClass) -> Window:
        """Return when changes of a class may begin for an entity whose product has a window, or
        None.

        Without a window of the product: the entity's, else the environment's of that class; changes
        without downtime may also begin in the window for downtime. With one: the product's, and
        within it for downtime that of the entity or environment.
        """
        settings = entity.settings
        down = (settings.downtime_window if settings else None) or self._settings.downtime_window
        quiet = (
            settings.no_downtime_window if settings else None
        ) or self._settings.no_downtime_window
        key = (entity.product, down, quiet, wanted)
        if key not in self._known:
            self._known[key] = self._resolved(product, down, quiet, wanted)
        return self._known[key]

    def _resolved(
        self, product: Window | None, down: str, quiet: str, wanted: WindowClass
    ) -> Window:
        own = downtime = self._settings.window(down)
        if wanted is WindowClass.NO_DOWNTIME:
            own = union(self._settings.window(quiet), downtime)
        if product is None or self._settings.override_product_maintenance_windows:
            return own
        strict = self._settings.strict_environment_windows
        limited = strict or wanted is WindowClass.DOWNTIME
        return intersection(product, own) if limited else product
