"""The constraints, in the order in which their refusals are shown.

Those on targets come first: versions, recalls, configuration, relations. Then those on the time of
issue: suppressions before windows.
"""

from temporal_plans.domain.fleets.constraints.approval import APPROVAL
from temporal_plans.domain.fleets.constraints.artifacts import ARTIFACTS
from temporal_plans.domain.fleets.constraints.channel import CHANNEL
from temporal_plans.domain.fleets.constraints.command_first import COMMAND_FIRST
from temporal_plans.domain.fleets.constraints.configuration import CONFIGURATION
from temporal_plans.domain.fleets.constraints.connected import CONNECTED
from temporal_plans.domain.fleets.constraints.data_schema import DATA_SCHEMA
from temporal_plans.domain.fleets.constraints.dependencies import DEPENDENCIES
from temporal_plans.domain.fleets.constraints.dependents import DEPENDENTS
from temporal_plans.domain.fleets.constraints.downtime_window import DOWNTIME_WINDOW
from temporal_plans.domain.fleets.constraints.external import EXTERNAL
from temporal_plans.domain.fleets.constraints.failure_suppression import FAILURE_SUPPRESSION
from temporal_plans.domain.fleets.constraints.freeze import FREEZE
from temporal_plans.domain.fleets.constraints.health import HEALTH
from temporal_plans.domain.fleets.constraints.incompatibilities import INCOMPATIBILITIES
from temporal_plans.domain.fleets.constraints.install_order import INSTALL_ORDER
from temporal_plans.domain.fleets.constraints.manual_suppression import MANUAL_SUPPRESSION
from temporal_plans.domain.fleets.constraints.namespace import NAMESPACE
from temporal_plans.domain.fleets.constraints.newer import NEWER
from temporal_plans.domain.fleets.constraints.one_plan import ONE_PLAN
from temporal_plans.domain.fleets.constraints.orderable import ORDERABLE
from temporal_plans.domain.fleets.constraints.promotion_suppression import PROMOTION_SUPPRESSION
from temporal_plans.domain.fleets.constraints.quiet_window import QUIET_WINDOW
from temporal_plans.domain.fleets.constraints.ramp import RAMP
from temporal_plans.domain.fleets.constraints.recalled import RECALLED
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.roll_off import ROLL_OFF
from temporal_plans.domain.fleets.constraints.threshold_suppression import THRESHOLD_SUPPRESSION
from temporal_plans.domain.fleets.constraints.uninstall_order import UNINSTALL_ORDER
from temporal_plans.domain.fleets.constraints.vulnerability import VULNERABILITY

CONSTRAINTS: tuple[Constraint, ...] = (
    ORDERABLE,
    RECALLED,
    CONFIGURATION,
    DATA_SCHEMA,
    VULNERABILITY,
    INCOMPATIBILITIES,
    DEPENDENCIES,
    DEPENDENTS,
    EXTERNAL,
    CHANNEL,
    NEWER,
    FREEZE,
    ROLL_OFF,
    APPROVAL,
    CONNECTED,
    ONE_PLAN,
    COMMAND_FIRST,
    MANUAL_SUPPRESSION,
    FAILURE_SUPPRESSION,
    THRESHOLD_SUPPRESSION,
    PROMOTION_SUPPRESSION,
    QUIET_WINDOW,
    DOWNTIME_WINDOW,
    RAMP,
    HEALTH,
    ARTIFACTS,
    INSTALL_ORDER,
    UNINSTALL_ORDER,
    NAMESPACE,
)
"""K19 of the followed model (suppressions of blue/green deployments) does not exist here."""

TARGET_CONSTRAINTS = tuple(one for one in CONSTRAINTS if one.stage is Stage.TARGET)
