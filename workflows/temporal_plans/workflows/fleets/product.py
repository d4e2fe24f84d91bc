"""The Product workflow: releases, channels, promotions and recalls of a product.

Every change that environments must hear of is a revision. The activity ``announce`` signals a
revision to the environments that follow the product, which are those with entities of it; they ask
for the catalogue themselves, so that one that missed a revision has lost nothing.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from temporalio import workflow

from temporal_plans.domain.fleets.products import Admission, Product, Ramp
from temporal_plans.domain.fleets.promotion.by_hand import needs_of
from temporal_plans.domain.fleets.promotion.events import Recalled, Reverted
from temporal_plans.domain.fleets.promotion.ramps import rollout_problems, with_ramps
from temporal_plans.domain.fleets.promotion.runs import StageRun
from temporal_plans.domain.fleets.publishing import default_channels
from temporal_plans.domain.fleets.recalls import RecallStatus, covering
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.loading.fleets.snapshots import recall_problems, release_problems
from temporal_plans.messages.fleets.catalogues import (
    Announce,
    AnnounceBeginning,
    Announced,
    Announcement,
    Catalogue,
)
from temporal_plans.messages.fleets.declarations import ProductDeclaration, Schedule
from temporal_plans.messages.fleets.payloads import KeepPayload, KeptFiles, ReleasePayload
from temporal_plans.messages.fleets.product_views import (
    ProductExport,
    ProductView,
    ReleaseQuery,
    ReleaseRecord,
    ReleaseRow,
)
from temporal_plans.messages.fleets.products import (
    RELEASES_LIMIT,
    FollowProduct,
    ProductApply,
    ProductInput,
    ProductState,
    Publish,
    RecallRelease,
    RevertRecall,
)
from temporal_plans.messages.fleets.requests import DeleteRequest
from temporal_plans.workflows.fleets.audited import ask, start
from temporal_plans.workflows.fleets.product_promotions import ProductPromotions
from temporal_plans.workflows.fleets.promotion import (
    canary_channels,
    promotions_of,
    without_canaries,
)
from temporal_plans.workflows.fleets.room import Room
from temporal_plans.workflows.fleets.turns import Turns
from temporal_plans.workflows.mechanics.alarm import Alarm
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.mechanics.handlers import wait_or_timeout
from temporal_plans.workflows.mechanics.settings import engine_settings
from temporal_plans.workflows.plans.log import CommandLogger

BATCH = 100
"""Environments that one activity announces a revision to."""

RECALLS_LIMIT = 1000


@workflow.defn(name="Product")
class ProductWorkflow(ProductPromotions):
    """The entity ``product/<group>:<name>``. Ends when it is deleted."""

    kind = "product"
    until_gone = frozenset({"canaries", "follow"})
    grows = frozenset({"apply", "canaries", "channel", "pipeline", "publish"})

    @workflow.init
    def __init__(self, input: ProductInput) -> None:
        self._input = input
        state = input.state or ProductState()
        self._state = state.but(product=state.product or Product(id=input.name))
        self.log = CommandLogger(self._state.log)
        self.turns = Turns()
        self.room = Room(self._next_input)
        self._alarm = Alarm(self.changed)
        begins = input.state is None and workflow.patched("rules of channels")
        self._knows_rules = not begins
        self._begins = begins and workflow.patched("beginnings are announced")

    @workflow.run
    async def run(self, input: ProductInput) -> ProductView:
        require_plugin()
        self._begin_rules()
        if self._begins:
            start(self._announce_beginning())
        while not self.over:
            self._changed = False
            self._promote()
            await self._announce()
            if self.may_continue_as_new(input.history_limit):
                self.room.continue_as_new()
            await workflow.wait_condition(
                lambda: self._changed or self.over or self.may_continue_as_new(input.history_limit)
            )
        await self._announce(deleted=True)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.releases()

    def _next_input(self) -> ProductInput:
        return self._input.but(state=self._state.but(log=self.log.log))

    def _put(self, product: Product) -> None:
        """Take a changed product: environments must hear of it."""
        self._state = self._state.but(product=product, revision=self._state.revision + 1)
        self.changed()

    async def _announce_beginning(self) -> None:
        life = workflow.info().first_execution_run_id
        request = AnnounceBeginning(product=self._input.name, life=life)
        await ask("announce_beginning", request, type(None))

    async def _announce(self, *, deleted: bool = False) -> None:
        """Announce the newest revision, or the end, to all followers; a change of the entities
        under test alone to those that it concerns."""
        revision = self._state.revision
        followers, untold = self._state.followers, self._state.untold
        if revision == self._state.announced and not deleted:
            followers = tuple(one for one in followers if one in untold)
        for first in range(0, len(followers), BATCH):
            batch = followers[first : first + BATCH]
            announcement = Announcement(
                product=self._input.name, revision=revision, deleted=deleted
            )
            request = Announce(announcement=announcement, environments=batch)
            summary = f"revision {revision} to {len(batch)} environments"
            answer = await ask("announce", request, Announced, summary=summary)
            left = tuple(one for one in self._state.followers if one not in answer.gone)
            self._state = self._state.but(followers=left)
            for one in answer.gone:
                self._state = without_canaries(self._state, one)
        self._state = self._state.but(
            announced=max(revision, self._state.announced),
            untold=() if self._state.untold == untold else self._state.untold,
        )
        if self._state.revision != revision:
            self.changed()

    # --- updates ---

    @workflow.update(name="apply", description="What a document of the product says.")
    async def apply(self, request: ProductApply) -> Outcome:
        await self.checked("apply", request, "check_product", request.product, type(None))
        await self._until_rules()
        self.refuse_late("apply", request, self._apply_refusal(request))
        before, product = self._state, self._product
        known = {one.version: one for one in product.releases}
        new = [_published(one, workflow.now()) for one in request.releases]
        added = [one for one in new if one.version not in known]
        ids = {one.id for one in request.recalls}
        recalls = (*(one for one in product.recalls if one.id not in ids), *request.recalls)
        changed = product.but(
            releases=(*product.releases, *added),
            recalls=recalls if request.recalls else product.recalls,
            ramps=request.ramps or _with_ramps(product, added, request),
            rollouts=request.product.rollouts,
            admissions=_with_admissions(product, request),
        )
        runs = _with_runs(self._state.runs, request)
        if (changed, runs, request.product) == (product, before.runs, before.declaration):
            outcome = Outcome(result=Result.ALREADY, message=f"{self._title} is so already")
            return self.recorded("apply", request, outcome)
        self._state = self._state.but(declaration=request.product, runs=runs)
        other_window = _window_of(before.declaration) != _window_of(request.product)
        if other_window:
            self._state = self._state.but(until=None)  # its absolute intervals are read again
        if changed != product or other_window:
            self._put(changed)
        new_ones = "1 new release" if len(added) == 1 else f"{len(added)} new releases"
        return self.done("apply", request, f"{self._title} is applied, with {new_ones}")

    @apply.validator
    def _check_apply(self, request: ProductApply) -> None:
        self.refuse(self._apply_refusal(request))

    @workflow.update(name="publish", description="Publish a release, with its files.")
    async def publish(self, request: Publish) -> Outcome:
        verb = f"publish {request.release.version}"
        await self._until_rules()
        if self._is_published(request):
            text = self._published_text(request.release)
            return self.recorded(verb, request, Outcome(result=Result.ALREADY, message=text))
        if request.payload.names:
            keep = KeepPayload(payload=request.payload, holder=workflow.info().workflow_id)
            await self.checked(verb, request, "keep_payload", keep, type(None))
        if self._is_published(request):  # by another request meanwhile
            text = self._published_text(request.release)
            return self.recorded(verb, request, Outcome(result=Result.ALREADY, message=text))
        self.refuse_late(verb, request, self._publish_refusal(request))
        release = _published(request.release, workflow.now())
        files = _kept(request.payload)
        self._state = self._state.but(files={**self._state.files, release.version: files})
        product = self._product
        ramps = with_ramps(product, release.version, release.channels, workflow.now())
        self._put(product.but(releases=(*product.releases, release), ramps=ramps))
        recalls = covering(self._product.recalls, release.version)
        born = f"; it is recalled by {', '.join(one.id for one in recalls)}" if recalls else ""
        channels = ", ".join(release.channels)
        text = f"{release.version} is published to {channels}{born}{self._unfollowed}"
        return self.done(verb, request, text)

    @publish.validator
    def _check_publish(self, request: Publish) -> None:
        if not self._is_published(request):
            self.refuse(self._publish_refusal(request))

    @workflow.update(name="recall", description="Recall releases, or edit a recall.")
    async def recall(self, request: RecallRelease) -> Outcome:
        recall = request.recall.but(
            by=request.recall.by or request.by, reason=request.recall.reason or request.reason
        )
        self._happen(Recalled.model_construct(recall=recall))
        covered = sum(recall.covers(one.version) for one in self._product.releases)
        revision = self._state.revision
        # Whoever has the answer may rely on it: no environment chooses these releases any more.
        await wait_or_timeout(
            lambda: self._state.announced >= revision, engine_settings().answer_timeout
        )
        text = "1 release is recalled" if covered == 1 else f"{covered} releases are recalled"
        text += "" if covered else f"; the recall {recall.id} is for releases that come"
        return self.done(f"recall {recall.id}", request, text)

    @recall.validator
    def _check_recall(self, request: RecallRelease) -> None:
        reasons = tuple(recall_problems(request.recall, ""))
        ids = {one.id for one in self._product.recalls}
        if len(ids) >= RECALLS_LIMIT and request.recall.id not in ids:
            text = f"a product has at most {RECALLS_LIMIT} recalls"
            reasons = (*reasons, Reason(field="recall", problem=text))
        self.refuse(Refusal(code=Code.INVALID, reasons=reasons) if reasons else None)

    @workflow.update(name="revert_recall", description="Revert a recall.")
    async def revert_recall(self, request: RevertRecall) -> Outcome:
        [recall] = [one for one in self._product.recalls if one.id == request.id]
        if recall.status is RecallStatus.REVERTED:
            text = f"{request.id} is reverted already"
            outcome = Outcome(result=Result.ALREADY, message=text)
            return self.recorded(f"revert {request.id}", request, outcome)
        self._happen(Reverted.model_construct(recall=request.id))
        return self.done(f"revert {request.id}", request, f"the recall {request.id} is reverted")

    @revert_recall.validator
    def _check_revert_recall(self, request: RevertRecall) -> None:
        self._check(Reverted.model_construct(recall=request.id))

    @workflow.update(name="follow", description="From an environment with entities of it.")
    async def follow(self, request: FollowProduct) -> Outcome:
        named = dict.fromkeys((request.environment, *request.others))
        left = tuple(one for one in self._state.followers if one not in named)
        self._state = self._state.but(followers=(*left, *named) if request.follows else left)
        if not request.follows:
            for one in named:
                self._state = without_canaries(self._state, one)
            self.changed()
        return Outcome(result=Result.DONE, message=f"revision {self._state.revision}")

    @follow.validator
    def _check_follow(self, request: FollowProduct) -> None:
        """One that has announced its end announces nothing more: the follower asks again."""
        if self.over and request.follows:
            text = f"{self._title} is being deleted"
            self.refuse(Refusal.of(Code.ENDING, text, field="product", fix="ask again"))

    @workflow.update(name="delete", description="Forget the product and its releases.")
    async def delete(self, request: DeleteRequest) -> Outcome:
        self.over = True
        return self.done("delete", request, f"{self._title} is deleted")

    @delete.validator
    def _check_delete(self, request: DeleteRequest) -> None:
        if self._state.followers and not request.force:
            names = ", ".join(self._state.followers[:10])
            text = f"environments have entities of it: {names}"
            fix = "remove these entities, or use force"
            self.refuse(Refusal.of(Code.IN_USE, text, field="product", fix=fix))

    # --- queries ---

    @workflow.query(name="catalogue", description="Its releases and recalls, for environments.")
    def catalogue(self) -> Catalogue:
        return Catalogue(
            revision=self._state.revision,
            life=workflow.info().first_execution_run_id,
            product=self._product.but(window=None, weekdays=None, admissions=(), rollouts={}),
            maintenance_window=_window_of(self._state.declaration),
            tests=self._state.tests,
            canary_channels=canary_channels(self._state),
        )

    @workflow.query(name="release", description="One release, with its files.")
    def release(self, query: ReleaseQuery) -> ReleaseRecord:
        found = [one for one in self._product.releases if one.version == query.version]
        files = self._state.files.get(query.version, KeptFiles())
        return ReleaseRecord(release=found[0] if found else None, files=files)

    @workflow.query(name="status", description="Its releases, newest first, and its recalls.")
    def releases(self) -> ProductView:
        rows = tuple(
            ReleaseRow(
                version=one.version,
                channels=one.channels,
                published_at=one.published_at,
                recalls=tuple(r.id for r in covering(self._product.recalls, one.version)),
                files=self._state.files.get(one.version, KeptFiles()).names,
            )
            for one in sorted(self._product.releases, key=_age, reverse=True)
        )
        return ProductView(
            name=self._input.name,
            declared=self._state.declaration is not None,
            revision=self._state.revision,
            environments=tuple(sorted(self._state.followers)),
            releases=rows,
            recalls=self._product.recalls,
            ramps=self._product.ramps,
            pipeline=self._state.pipeline,
            channels=self._state.channels,
            promotions=self._answer.promotions if self._answer else (),
            tests=self._state.tests,
            next_wakeup=self._answer.next_wakeup if self._answer else None,
            problems=tuple(
                f"nothing is promoted: {one}" for one in (self._unread, self._undecided) if one
            ),
        )

    @workflow.query(name="export", description="What a document of it would say.")
    def export(self) -> ProductExport:
        return ProductExport(
            product=self._state.declaration or ProductDeclaration(name=self._input.name),
            releases=self._product.releases,
            recalls=self._product.recalls,
            ramps=self._product.ramps,
            admissions=self._product.admissions,
            promotions=self._state.runs,
            pipeline=self._state.pipeline,
            channels=self._state.channels,
        )

    # --- details ---

    @property
    def _unfollowed(self) -> str:
        """A remark where nothing will happen: the name of the product may be mistyped."""
        known = self._state.followers
        return "" if known else f"; no environment follows {self._title} yet"

    def _published_text(self, release: Release) -> str:
        """Return that a release is there, and which of the wanted channels do not have it."""
        text = f"{release.version} of {self._title} is published already"
        [there] = [one for one in self._product.releases if one.version == release.version]
        if missing := [one for one in release.channels if one not in there.channels]:
            text += f", but is not on {', '.join(missing)}: promote it"
        return text

    def _is_published(self, request: Publish) -> bool:
        """Whether the same release with the same files is there."""
        found = [one for one in self._product.releases if one.version == request.release.version]
        if not found:
            return False
        same = _published(request.release, found[0].published_at or workflow.now())
        kept = found[0].but(channels=same.channels)  # channels may have been added since
        files = self._state.files.get(kept.version, KeptFiles())
        return (kept, files) == (same, _kept(request.payload))

    def _publish_refusal(self, request: Publish) -> Refusal | None:
        release = request.release
        if problems := tuple(release_problems(release, self._input.name, "")):
            return Refusal(code=Code.INVALID, reasons=problems)
        if any(one.version == release.version for one in self._product.releases):
            reason = Reason(
                field="version",
                problem="is published already, with another content",
                value=release.version,
                fix="releases are immutable: publish another version",
            )
            return Refusal(code=Code.NAME_TAKEN, reasons=(reason,))
        if len(self._product.releases) >= RELEASES_LIMIT:
            text = f"a product has at most {RELEASES_LIMIT} releases"
            return Refusal.of(Code.INVALID, text, field="version")
        if (published := release.published_at) is not None and published > _soon():
            return Refusal(code=Code.INVALID, reasons=(_future("published-at", published),))
        return needs_of(release, release.channels, promotions_of(self._state))

    def _apply_refusal(self, request: ProductApply) -> Refusal | None:
        """Return why a document can't be applied: releases are immutable but for their channels."""
        reasons: list[Reason] = []
        if request.product.name != self._input.name:
            text = f"this is {self._title}"
            reasons.append(Reason(field="name", problem=text, value=request.product.name))
        reasons += rollout_problems(request.product.rollouts)
        known = {one.version: one for one in self._product.releases}
        seen: set[str] = set()
        for index, one in enumerate(request.releases):
            path = f"releases.{index}."
            reasons += release_problems(one, self._input.name, path)
            former = known.get(one.version)
            if one.version in seen:
                reasons.append(
                    Reason(field=f"{path}version", problem="is a duplicate", value=one.version)
                )
            seen.add(one.version)
            if former is not None and _content(former) != _content(one):
                text = "is published already, with another content"
                fix = "releases are immutable: publish another version"
                reasons.append(
                    Reason(field=f"{path}version", problem=text, value=one.version, fix=fix)
                )
            if one.published_at is not None and one.published_at > _soon():
                reasons.append(_future(f"{path}published-at", one.published_at))
            lacks = needs_of(one, one.channels, promotions_of(self._state)) if not former else None
            if lacks is not None:
                reasons += (r.but(field=f"{path}{r.field}") for r in lacks.reasons)
        for index, entry in enumerate(request.admissions):
            if entry.at > _soon():
                reasons.append(_future(f"admissions.{index}.at", entry.at))
        for index, run in enumerate(request.promotions):
            for name in ("since", "started_at"):
                if (time := getattr(run, name)) is not None and time > _soon():
                    field = f"promotions.{index}.{name.replace('_', '-')}"
                    reasons.append(_future(field, time))
        for index, recall in enumerate(request.recalls):
            reasons += recall_problems(recall, f"recalls.{index}.")
        if len(known.keys() | seen) > RELEASES_LIMIT:
            text = f"a product has at most {RELEASES_LIMIT} releases"
            reasons.append(Reason(field="releases", problem=text))
        ids = {one.id for one in (*self._product.recalls, *request.recalls)}
        if len(ids) > RECALLS_LIMIT:
            text = f"a product has at most {RECALLS_LIMIT} recalls"
            reasons.append(Reason(field="recalls", problem=text))
        return Refusal(code=Code.INVALID, reasons=tuple(reasons)) if reasons else None


def _soon() -> datetime:
    """Return the latest time that something past may have, where clocks differ."""
    return workflow.now() + timedelta(days=1)


def _future(field: str, time: datetime) -> Reason:
    fix = "give a time in the past"
    return Reason(field=field, problem="is in the future", value=time.isoformat(), fix=fix)


def _with_admissions(product: Product, request: ProductApply) -> tuple[Admission, ...]:
    """Return when releases came to channels, with what a document says of others."""
    known = {(one.version, one.channel) for one in product.admissions}
    new = (one for one in request.admissions if (one.version, one.channel) not in known)
    return (*product.admissions, *new)


def _with_ramps(
    product: Product, added: Iterable[Release], request: ProductApply
) -> tuple[Ramp, ...]:
    """Return the ramps after a document has brought releases; those whose admission it remembers
    came to their channels before."""
    remembered = {(one.version, one.channel) for one in request.admissions}
    product = product.but(rollouts=request.product.rollouts)
    for one in added:
        new = [channel for channel in one.channels if (one.version, channel) not in remembered]
        product = product.but(ramps=with_ramps(product, one.version, new, workflow.now()))
    return product.ramps


def _with_runs(runs: tuple[StageRun, ...], request: ProductApply) -> tuple[StageRun, ...]:
    """Return what is remembered of promotions, with what a document says of others."""
    known = {one.key for one in runs}
    return (*runs, *(one for one in request.promotions if one.key not in known))


def _published(release: Release, now: datetime) -> Release:
    """Return a release as it is kept: on the default channels of its kind, too."""
    channels = dict.fromkeys((*release.channels, *default_channels(release.version)))
    return release.but(channels=tuple(channels), published_at=release.published_at or now)


def _kept(payload: ReleasePayload) -> KeptFiles:
    return KeptFiles(digest=payload.digest, names=payload.names)


def _content(release: Release) -> Release:
    """Return what is immutable of a release; its scan is a fact, which becomes known later."""
    return release.but(channels=(), published_at=None, scan=None)


def _age(release: Release) -> tuple[tuple[int, ...], float]:
    version = parse_version(release.version)
    published = release.published_at.timestamp() if release.published_at else 0.0
    return (version.key if version and version.key else (), published)


def _window_of(declaration: ProductDeclaration | None) -> Schedule | None:
    return declaration.maintenance_window if declaration else None
