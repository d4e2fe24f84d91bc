"""Messages between environments, products, the plans that environments issue, and clients."""

import hashlib
import json
from datetime import timedelta
from typing import Annotated, Any

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from temporal_plans.domain.fleets.entities import ConfigRestart, EntityOptions, EntitySettings
from temporal_plans.domain.fleets.entities import Health as Health
from temporal_plans.domain.fleets.environment import (
    Environment,
    EnvironmentFacts,
    EnvironmentOptions,
    EnvironmentSettings,
)
from temporal_plans.domain.fleets.names import (
    EntityName,
    EnvironmentName,
    ProductName,
    ShortName,
    Text,
)
from temporal_plans.domain.fleets.plans import (
    CommandType,
    EndStatus,
    EntityVersion,
    Intent,
    PlanKind,
)
from temporal_plans.domain.fleets.products import Product, Ramp
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.standing import EntityStanding
from temporal_plans.domain.fleets.suppressions import Suppression, WindowClass, WindowOverride
from temporal_plans.domain.fleets.versions import OrderableVersion, VersionText
from temporal_plans.domain.fleets.windows import ALL_TIME_NAME
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue, Duration, Name, WorkflowId
from temporal_plans.messages.malformed import SignalArgument
from temporal_plans.messages.plans import CommandLog

ENTITIES_LIMIT = 20_000
RELEASES_LIMIT = 10_000
PAYLOAD_LIMIT = 100_000
"""Characters of the files of one release."""
CONFIG_LIMIT = 100_000
"""Characters of one block of configuration, as JSON."""
PLANS_KEPT = 500
"""Ended plans that an environment lists."""
STOPS_LIMIT = 1000
"""Suppressions and overrides of an environment."""


_LONGEST = timedelta(days=366)
"""Times are computed with durations of settings, and no time may be out of range."""


def environment_id(environment: str) -> str:
    """Return the workflow id of an environment."""
    return f"environment/{environment}"


def product_id(product: str) -> str:
    """Return the workflow id of a product, ``group:name``."""
    return f"product/{product}"


def fleet_plan_id(environment: str, entity: str, number: int) -> str:
    """Return the workflow id of a plan of an entity."""
    return f"{environment_id(environment)}/{fleet_plan_name(entity, number)}"


def fleet_plan_name(entity: str, number: int) -> str:
    """Return the name of a plan of an entity, once in its environment."""
    return f"{entity}.{number}"


class FleetRequest(CompactValue):
    """Who asks for something, and why; kept in the command log."""

    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)


# --- declarations: what documents say, as they are carried ----------------------------------------


class Schedule(CompactValue):
    """A weekly schedule, which an activity makes absolute intervals of: data of time zones differs
    between machines. It also refuses unknown zones and malformed intervals."""

    time_zone_name: Annotated[str, StringConstraints(max_length=100)]
    time_intervals: tuple[Annotated[str, StringConstraints(max_length=100)], ...] = Field(
        max_length=100
    )


def _bounded_config(value: dict[str, Any]) -> dict[str, Any]:
    size = len(json.dumps(value, default=str))
    if size > CONFIG_LIMIT:
        raise ValueError(f"has more than {CONFIG_LIMIT} characters as JSON ({size})")
    return value


class ConfigDeclaration(CompactValue):
    """A block of configuration."""

    overrides: dict[str, Any] = {}
    restart: ConfigRestart = ConfigRestart.ROLLING

    @model_validator(mode="after")
    def _bounded(self) -> "ConfigDeclaration":
        _bounded_config(self.overrides)
        return self


class EntityDeclaration(EntityOptions):
    """How an entity is managed, with its blocks of configuration by version."""

    config: dict[OrderableVersion, ConfigDeclaration] = Field(default={}, max_length=1000)


class SettingsDeclaration(EnvironmentOptions):
    """The settings of an environment, with its weekly schedules by name."""

    maintenance_windows: dict[ShortName, Schedule] = Field(default={}, max_length=1000)
    downtime_window: ShortName = ALL_TIME_NAME
    no_downtime_window: ShortName = ALL_TIME_NAME

    @model_validator(mode="after")
    def _bounded(self) -> "SettingsDeclaration":
        for name in ("failure_suppression", "recompute_after", "agent_timeout", "scan_validity"):
            if not timedelta() < getattr(self, name) <= _LONGEST:
                raise ValueError(f"{name}: must be more than 0, and at most {_LONGEST.days} days")
        return self


class EnvironmentDeclaration(CompressibleValue):
    """An environment as its document says."""

    name: EnvironmentName
    settings: SettingsDeclaration = SettingsDeclaration()
    config: dict[str, Any] | None = None
    entities: dict[EntityName, EntityDeclaration] = Field(default={}, max_length=ENTITIES_LIMIT)

    @model_validator(mode="after")
    def _bounded(self) -> "EnvironmentDeclaration":
        _bounded_config(self.config or {})
        return self

    @property
    def products(self) -> tuple[str, ...]:
        """The products of its entities."""
        return tuple(sorted({one.product for one in self.entities.values()}))


class ProductDeclaration(CompactValue):
    """A product as its document says, without its releases."""

    name: ProductName
    maintenance_window: Schedule | None = None


_FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", max_length=100)]


class ReleasePayload(CompactValue):
    """The files that a release carries, by name: plan files, or a ``svc.yml``. They are kept in the
    content store; products know their digest."""

    files: dict[_FileName, str] = Field(default={}, max_length=20)

    @model_validator(mode="after")
    def _bounded(self) -> "ReleasePayload":
        if self.size > PAYLOAD_LIMIT:
            raise ValueError(f"has more than {PAYLOAD_LIMIT} characters ({self.size})")
        return self

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))

    @property
    def data(self) -> bytes:
        """The bytes that the content store keeps."""
        return json.dumps(self.files, sort_keys=True, separators=(",", ":")).encode()

    @property
    def digest(self) -> str:
        """The SHA-256 of its data; empty when there are no files."""
        return hashlib.sha256(self.data).hexdigest() if self.files else ""


class KeptFiles(CompactValue):
    """The files of a release as its product knows them: their digest, and their names."""

    digest: str = Field(default="", max_length=64)
    names: tuple[str, ...] = Field(default=(), max_length=20)


# --- products -------------------------------------------------------------------------------------


class ProductState(CompressibleValue):
    """What a Product carries from run to run.

    ``revision`` counts the changes that environments must hear of, ``announced`` is the last one
    that all ``followers`` heard of. ``files`` are those of each release by version.
    """

    declaration: ProductDeclaration | None = None
    product: Product | None = None
    revision: int = 0
    announced: int = 0
    followers: tuple[EnvironmentName, ...] = ()
    files: dict[VersionText, KeptFiles] = {}
    log: CommandLog = CommandLog()


class ProductInput(CompactValue):
    """Input of the Product workflow."""

    name: ProductName
    history_limit: int = Field(default=2000, ge=50)
    state: ProductState | None = None


class ProductApply(FleetRequest, CompressibleValue):
    """Update ``apply``: what a document of the product says. Releases that are not there yet are
    published, without payload; ``recalls`` are added, or edited where one of the id is there.
    Without ``ramps`` those under way stay."""

    product: ProductDeclaration
    releases: tuple[Release, ...] = Field(default=(), max_length=RELEASES_LIMIT)
    recalls: tuple[Recall, ...] = Field(default=(), max_length=1000)
    ramps: tuple[Ramp, ...] = Field(default=(), max_length=1000)


class Publish(FleetRequest, CompressibleValue):
    """Update ``publish``: a release with its files."""

    release: Release
    payload: ReleasePayload = ReleasePayload()


class AddToChannel(FleetRequest):
    """Update ``add_to_channel``: a release gets one channel more."""

    version: VersionText
    channel: ShortName


class RecallRelease(FleetRequest):
    """Update ``recall``: a recall begins, or the one of its id is edited."""

    recall: Recall


class RevertRecall(FleetRequest):
    """Update ``revert_recall``."""

    id: ShortName


class FollowProduct(CompactValue):
    """Update ``follow`` from an environment that has entities of the product; or no longer has."""

    environment: EnvironmentName
    follows: bool = True


class DeleteRequest(FleetRequest):
    """Update ``delete``. ``force``: also a product that environments have entities of, or an
    environment with running plans, which go on."""

    force: bool = False


class Catalogue(CompressibleValue):
    """Answer of the query ``catalogue``."""

    revision: int
    product: Product
    maintenance_window: Schedule | None = None


class ReleaseQuery(CompactValue):
    """Argument of the query ``release``."""

    version: VersionText


class ReleaseRecord(CompactValue):
    """Answer of the query ``release``; without a release there is none of the version."""

    release: Release | None = None
    files: KeptFiles = KeptFiles()


class ReleaseRow(CompactValue):
    """A release in a list. ``recalls`` are the ids of the active recalls that cover it."""

    version: str
    channels: tuple[str, ...] = ()
    published_at: AwareDatetime | None = None
    recalls: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class ProductView(CompressibleValue):
    """Answer of the query ``status`` of a product, newest release first."""

    name: str
    declared: bool = False
    revision: int = 0
    environments: tuple[str, ...] = ()
    releases: tuple[ReleaseRow, ...] = ()
    recalls: tuple[Recall, ...] = ()


class ProductExport(CompressibleValue):
    """Answer of the query ``export``: what a document of the product would say."""

    product: ProductDeclaration
    releases: tuple[Release, ...] = ()
    recalls: tuple[Recall, ...] = ()
    ramps: tuple[Ramp, ...] = ()


class Announcement(SignalArgument):
    """Signal ``announced`` from a Product to an Environment: there is a new revision, or it was
    deleted."""

    product: ProductName = ""
    revision: int = Field(default=0, ge=0)
    deleted: bool = False


class Announce(CompactValue):
    """Input of the activity ``announce``."""

    announcement: Announcement
    environments: tuple[EnvironmentName, ...]


class Announced(CompactValue):
    """Result of the activity ``announce``: environments that do not exist any more."""

    gone: tuple[EnvironmentName, ...] = ()


class KeepPayload(CompactValue):
    """Input of the activity ``keep_payload``: files that a product holds from now on."""

    payload: ReleasePayload
    holder: WorkflowId


# --- environments ---------------------------------------------------------------------------------


class KnownProduct(CompactValue):
    """What an environment knows of a product: its releases as of ``revision``, and its window up to
    ``until``."""

    revision: int
    product: Product
    until: AwareDatetime | None = None


class IssuedPlan(CompactValue):
    """A plan that was issued and has not ended: the environment's side of ``ActivePlan``.

    ``started``: its workflow was started; ``ending``: why it was asked to end; ``failed``: it rests
    in ERROR; ``closed``: it has ended, and its result is read next. ``kind`` is the kind of the
    entity, ``product`` its product: both may be edited meanwhile.
    """

    number: int
    kind: str
    product: ProductName
    started: bool = False
    ending: str = ""
    asked: bool = False
    failed: bool = False
    closed: bool = False
    lost: str = ""


class PlanRow(CompactValue):
    """A plan in the list of an environment. ``status``: that of the running plan, or how it
    ended."""

    entity: str
    number: int
    plan_id: str
    kind: PlanKind
    intent: Intent
    from_version: str | None = None
    to: str | None = None
    status: str
    issued_at: AwareDatetime | None = None
    ended_at: AwareDatetime | None = None
    errors: tuple[Text, ...] = ()


class DeclaredEnvironment(CompressibleValue):
    """Result of the activity ``read_environment``: the declaration with absolute windows, which are
    known up to ``until``."""

    settings: EnvironmentSettings
    entities: dict[EntityName, EntitySettings] = {}
    until: AwareDatetime | None = None


class EnvironmentState(CompressibleValue):
    """What an Environment carries from run to run.

    ``products`` are the catalogues of its entities' products; ``following`` are those that know of
    it, ``stale`` those of which there is a newer revision. ``standings`` are the last decisions
    in short. ``numbers`` counts the ids that it gives.
    ``configs`` are the configurations, by revision, that are declared, in force or led to: a
    rollback may go back to one that is not declared any more.
    """

    declaration: EnvironmentDeclaration
    environment: Environment
    until: AwareDatetime | None = None
    products: dict[ProductName, KnownProduct] = {}
    following: tuple[ProductName, ...] = ()
    stale: dict[ProductName, int] = {}
    issued: dict[EntityName, IssuedPlan] = {}
    standings: dict[EntityName, EntityStanding] = {}
    history: tuple[PlanRow, ...] = ()
    next_wakeup: AwareDatetime | None = None
    numbers: int = 0
    configs: dict[str, dict[str, Any]] = {}
    log: CommandLog = CommandLog()

    @classmethod
    def of(cls, name: str) -> "EnvironmentState":
        """Return the state of an environment that was not applied yet."""
        return cls(
            declaration=EnvironmentDeclaration(name=name), environment=Environment(name=name)
        )


class EnvironmentInput(CompactValue):
    """Input of the Environment workflow. ``workflow_limit``: with more entities than this the
    activity ``decide`` decides."""

    name: EnvironmentName
    history_limit: int = Field(default=2000, ge=50)
    workflow_limit: int = Field(default=200, ge=0)
    state: EnvironmentState | None = None


class EnvironmentApply(FleetRequest, CompressibleValue):
    """Update ``apply``: the environment as its document says."""

    environment: EnvironmentDeclaration


class ReportFacts(FleetRequest, CompressibleValue):
    """Update ``report``: what other systems know. What is not given stays as it is."""

    facts: EnvironmentFacts | None = None
    entities: dict[EntityName, "EntityFacts"] = Field(default={}, max_length=ENTITIES_LIMIT)


class EntityFacts(CompactValue):
    """What other systems know of an entity. ``version``: what is installed, where no plan of this
    environment put it there."""

    version: VersionText | None = None
    health: Health | None = None
    health_message: Text | None = None
    data_schema: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    pending_secrets: tuple[ShortName, ...] | None = Field(default=None, max_length=100)


class Suppress(FleetRequest):
    """Update ``suppress``: no plans for an entity, or for the whole environment, from ``start``
    (now) up to ``end`` or for ``duration``; without both until it is removed."""

    id: ShortName | None = None
    entity: EntityName | None = None
    start: AwareDatetime | None = None
    end: AwareDatetime | None = None
    duration: Duration | None = None
    cancel_active: bool = False


class Unsuppress(FleetRequest):
    """Update ``unsuppress``: remove a suppression, of any origin."""

    id: ShortName


class OverrideWindows(FleetRequest):
    """Update ``override``: open the maintenance windows from ``start`` (now) for ``duration``."""

    id: ShortName | None = None
    entity: EntityName | None = None
    admits: WindowClass = WindowClass.NO_DOWNTIME
    start: AwareDatetime | None = None
    duration: Duration


class RemoveOverride(FleetRequest):
    """Update ``remove_override``."""

    id: ShortName


class CancelPlans(FleetRequest):
    """Update ``cancel``: the running plan of an entity, or all. ``suppress`` keeps the same plan
    from being issued again for so long."""

    entity: EntityName | None = None
    suppress: Duration | None = None


class ResolvePlan(FleetRequest):
    """Update ``resolve``: how a plan ended of which nothing is known. ``version``: what is
    installed now; without it what the plan led to, or for another outcome what was there before;
    ``nothing_installed``: nothing is."""

    entity: EntityName
    outcome: EndStatus
    version: VersionText | None = None
    nothing_installed: bool = False


class FleetCommand(FleetRequest):
    """Update ``command``: a break-glass command to an entity."""

    entity: EntityName
    command: CommandType
    version: VersionText | None = None


class EntityReport(SignalArgument):
    """Signal ``reported`` from a plan's last phase: what is installed now."""

    entity: str = Field(default="", max_length=100)
    number: int = 0
    health: Health | None = None
    message: Text = ""


class StatusRow(CompactValue):
    """An entity in the table of an environment."""

    environment: str
    entity: str
    product: str
    kind: str = ""
    standing: EntityStanding
    plan_id: str = ""
    plan_status: str = ""


class EnvironmentStatus(CompressibleValue):
    """Answer of the query ``status``."""

    name: str
    connection: str
    rows: tuple[StatusRow, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    overrides: tuple[WindowOverride, ...] = ()
    next_wakeup: AwareDatetime | None = None
    problems: tuple[str, ...] = ()


class ExplainEntity(CompactValue):
    """Argument of the query ``explain``: an entity at a time."""

    entity: str = Field(max_length=200)
    at: AwareDatetime


class PlansQuery(CompactValue):
    """Argument of the query ``plans``: those of an entity, or all."""

    entity: str = Field(default="", max_length=200)


class PlanRows(CompressibleValue):
    """Answer of the query ``plans``, newest first."""

    rows: tuple[PlanRow, ...] = ()


# --- between an environment and its activities ----------------------------------------------------


class FetchCatalogue(CompactValue):
    """Input of the activity ``fetch_catalogue``. ``follow``: the product must hear of the
    environment first."""

    product: ProductName
    environment: EnvironmentName
    now: AwareDatetime
    follow: bool = True


class StopFollowing(CompactValue):
    """Input of the activity ``stop_following``."""

    products: tuple[ProductName, ...]
    environment: EnvironmentName


class ReadEnvironment(CompressibleValue):
    """Input of the activity ``read_environment``."""

    declaration: EnvironmentDeclaration
    now: AwareDatetime


class DecideEnvironment(CompressibleValue):
    """Input of the activity ``decide_environment``."""

    environment: Environment
    products: tuple[Product, ...]
    standings: dict[EntityName, EntityStanding] = {}
    now: AwareDatetime


class ChangeOrder(CompactValue):
    """Input of the activity ``issue_plan``: a plan as decided, with everything that its steps need.

    ``config`` is the configuration of the target, ``environment_config`` that of the environment.
    ``starter`` is the first run id of the environment's workflow, ``owner`` its id.
    """

    environment: EnvironmentName
    entity: EntityName
    entity_kind: str = Field(max_length=100)
    product: ProductName
    number: int
    kind: PlanKind
    intent: Intent
    before: EntityVersion = EntityVersion()
    to: EntityVersion = EntityVersion()
    config: dict[str, Any] = {}
    environment_config: dict[str, Any] = {}
    owner: WorkflowId
    starter: Name
    at: AwareDatetime

    @property
    def plan_id(self) -> str:
        return fleet_plan_id(self.environment, self.entity, self.number)


class PlanOutcomeQuery(CompactValue):
    """Input of the activity ``plan_outcome``: a plan that has ended, as its environment started
    it."""

    plan_id: WorkflowId
    number: int
    starter: Name


class PlanOutcome(CompactValue):
    """Result of the activity ``plan_outcome``. Without ``status`` nothing is known; ``lost`` says
    why. ``changed``: steps of the change had begun. ``open``: it has not ended after all."""

    status: EndStatus | None = None
    errors: tuple[Text, ...] = Field(default=(), max_length=20)
    changed: bool = False
    lost: Text = ""
    open: bool = False


class Installation(CompactValue):
    """Input of the activities ``deploy_installation``, ``await_installation`` and
    ``remove_installation``: the service of an entity, with the release that it is to have."""

    environment: EnvironmentName
    entity: EntityName
    product: ProductName
    version: VersionText | None = None
    config: dict[str, Any] = {}
    environment_config: dict[str, Any] = {}
    number: int = 0

    @property
    def name(self) -> str:
        """The name of its service."""
        return f"{self.environment}.{self.entity}"


class ReportEntity(CompactValue):
    """Input of the activity ``report_entity``."""

    environment: EnvironmentName
    report: EntityReport
