"""Step kinds: the kinds of work that a step may have.

To add a kind: a file here with a class of the shape ``Work``, its line in ``KINDS``, and the file
of the same name with the function ``run`` in ``workflows/<its room>/kinds``. Users register their
own by name with the plugin; a step of such a kind is ``custom``.
"""

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.command import CommandWork
from temporal_plans.domain.kinds.custom import CustomWork
from temporal_plans.domain.kinds.deregister import DeregisterWork
from temporal_plans.domain.kinds.erase import EraseWork
from temporal_plans.domain.kinds.kill import KillWork
from temporal_plans.domain.kinds.package_removal import PackageRemovalWork
from temporal_plans.domain.kinds.package_tasks import PackageTasksWork
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.kinds.unreserve import UnreserveWork
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.kinds.workflow import WorkflowWork

KINDS: tuple[type[Work], ...] = (
    PodWork,
    ActivityWork,
    WorkflowWork,
    CommandWork,
    ApprovalWork,
    SleepWork,
    CustomWork,
    KillWork,
    UnreserveWork,
    EraseWork,
    DeregisterWork,
    PackageTasksWork,
    PackageRemovalWork,
)

WRITTEN: dict[str, type[Work]] = {kind.name(): kind for kind in KINDS if kind.bare is not None}
"""The kinds that users may write in plan files, by name."""

if TYPE_CHECKING:
    AnyWork = Work
else:
    AnyWork = Annotated[Union[KINDS], Field(discriminator="kind")]  # noqa: UP007  # a tuple
"""Any kind of work; ``kind`` is the discriminator."""
