"""The Product workflow: releases, channels and recalls of a product.

Every change that environments must hear of is a revision. The activity ``announce`` signals a
revision to the environments that follow the product, which are those with entities of it; they ask
for the catalogue themselves, so that one that missed a revision has lost nothing.
"""

from datetime import datetime

from temporalio import workflow

from temporal_plans.domain.fleets.events import Fleet, FleetEvent, after, event_refusal
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.promotion import state as promotion_state
from temporal_plans.domain.fleets.publishing import default_channels
from temporal_plans.domain.fleets.recalls import RecallStatus, covering
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.loading.fleets.snapshots import recall_problems, release_problems
from temporal_plans.messages.fleets import (
    RELEASES_LIMIT,
    AddToChannel,
    Announce,
    Announced,
    Announcement,
    Catalogue,
    DeleteRequest,
    FollowProduct,
    KeepPayload,
    KeptFiles,
    ProductApply,
    ProductDeclaration,
    ProductExport,
    ProductInput,
    ProductState,
    ProductView,
    Publish,
    RecallRelease,
    ReleasePayload,
    ReleaseQuery,
    ReleaseRecord,
    ReleaseRow,
    RevertRecall,
    Schedule,
)
from temporal_plans.workflows.fleets.audited import Audited, ask
from temporal_plans.workflows.fleets.promotion import promote
from temporal_plans.workflows.mechanics.alarm import Alarm
from temporal_plans.workflows.mechanics.externs import require_plugin
from temporal_plans.workflows.mechanics.handlers import wait_or_timeout
from temporal_plans.workflows.mechanics.settings import engine_settings
from temporal_plans.workflows.plans.log import CommandLogger

BATCH = 100
"""Environments that one activity announces a revision to."""

RECALLS_LIMIT = 1000


@workflow.defn(name="Product")
class ProductWorkflow(Audited):
    """The entity ``product/<group>:<name>``. Ends when it is deleted."""

    kind = "product"

    @workflow.init
    def __init__(self, input: ProductInput) -> None:
        self._input = input
        self._state = input.state or ProductState(product=Product(id=input.name))
        self.log = CommandLogger(self._state.log)
        self._alarm = Alarm(self.changed)

    @workflow.run
    async def run(self, input: ProductInput) -> ProductView:
        require_plugin()
        while not self.over:
            self._changed = False
            self._promote(workflow.now())
            await self._announce()
            if self.may_continue_as_new(input.history_limit):
                state = self._state.but(log=self.log.log)
                workflow.continue_as_new(input.but(state=state))
            await workflow.wait_condition(
                lambda: self._changed or self.over or self.may_continue_as_new(input.history_limit)
            )
        await self._announce(deleted=True)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.releases()

    @property
    def _product(self) -> Product:
        return self._state.product or Product(id=self._input.name)

    def _put(self, product: Product) -> None:
        """Take a changed product: environments must hear of it."""
        self._state = self._state.but(product=product, revision=self._state.revision + 1)
        self.changed()

    def _promote(self, now: datetime) -> None:
        promoted = promote(self._state, now)
        if promoted.state is not self._state:
            self._state = promoted.state.but(revision=self._state.revision + 1)
        if promoted.again is not None:
            self._alarm.at(promoted.again)

    async def _announce(self, *, deleted: bool = False) -> None:
        """Announce the newest revision, or the end, to all followers."""
        revision = self._state.revision
        if revision == self._state.announced and not deleted:
            return
        followers = self._state.followers
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
        self._state = self._state.but(announced=revision)
        if self._state.revision != revision:
            self.changed()

    # --- updates ---

    @workflow.update(name="apply", description="What a document of the product says.")
    async def apply(self, request: ProductApply) -> Outcome:
        await self.checked("apply", request, "check_product", request.product, type(None))
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
            ramps=request.ramps or product.ramps,
        )
        if changed == product and self._state.declaration == request.product:
            outcome = Outcome(result=Result.ALREADY, message=f"{self._title} is so already")
            return self.recorded("apply", request, outcome)
        self._state = self._state.but(declaration=request.product)
        if changed != product or _window_of(before.declaration) != _window_of(request.product):
            self._put(changed)
        return self.done("apply", request, f"{self._title} is applied, {len(added)} releases new")

    @apply.validator
    def _check_apply(self, request: ProductApply) -> None:
        self.refuse(self._apply_refusal(request))

    @workflow.update(name="publish", description="Publish a release, with its files.")
    async def publish(self, request: Publish) -> Outcome:
        verb = f"publish {request.release.version}"
        if self._is_published(request):
            text = f"{request.release.version} of {self._title} is published already"
            return self.recorded(verb, request, Outcome(result=Result.ALREADY, message=text))
        if request.payload.files:
            keep = KeepPayload(payload=request.payload, holder=workflow.info().workflow_id)
            await self.checked(verb, request, "keep_payload", keep, type(None))
        if self._is_published(request):  # by another request meanwhile
            text = f"{request.release.version} of {self._title} is published already"
            return self.recorded(verb, request, Outcome(result=Result.ALREADY, message=text))
        self.refuse_late(verb, request, self._publish_refusal(request))
        release = _published(request.release, workflow.now())
        files = _kept(request.payload)
        self._state = self._state.but(files={**self._state.files, release.version: files})
        self._put(self._product.but(releases=(*self._product.releases, release)))
        recalls = covering(self._product.recalls, release.version)
        born = f"; it is recalled by {', '.join(one.id for one in recalls)}" if recalls else ""
        channels = ", ".join(release.channels)
        return self.done(verb, request, f"{release.version} is published to {channels}{born}")

    @publish.validator
    def _check_publish(self, request: Publish) -> None:
        if not self._is_published(request):
            self.refuse(self._publish_refusal(request))

    @workflow.update(name="add_to_channel", description="Add a release to a channel by hand.")
    async def add_to_channel(self, request: AddToChannel) -> Outcome:
        self._happen(FleetEvent(at=workflow.now(), promote={request.version: request.channel}))
        text = f"{request.version} is on {request.channel}"
        return self.done(f"add {request.version} to {request.channel}", request, text)

    @add_to_channel.validator
    def _check_add_to_channel(self, request: AddToChannel) -> None:
        if request.version not in {one.version for one in self._product.releases}:
            self.refuse(self._no_release(request.version))

    @workflow.update(name="recall", description="Recall releases, or edit a recall.")
    async def recall(self, request: RecallRelease) -> Outcome:
        recall = request.recall.but(
            by=request.recall.by or request.by, reason=request.recall.reason or request.reason
        )
        self._happen(FleetEvent(at=workflow.now(), recall=recall))
        covered = sum(recall.covers(one.version) for one in self._product.releases)
        revision = self._state.revision
        # Whoever has the answer may rely on it: no environment chooses these releases any more.
        await wait_or_timeout(
            lambda: self._state.announced >= revision, engine_settings().answer_timeout
        )
        return self.done(f"recall {recall.id}", request, f"{covered} releases are recalled")

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
        self._happen(FleetEvent(at=workflow.now(), revert=request.id))
        return self.done(f"revert {request.id}", request, f"the recall {request.id} is reverted")

    @revert_recall.validator
    def _check_revert_recall(self, request: RevertRecall) -> None:
        event = FleetEvent(at=workflow.now(), product=self._input.name, revert=request.id)
        self.refuse(event_refusal(event, self._fleet))

    @workflow.update(name="follow", description="From an environment with entities of it.")
    async def follow(self, request: FollowProduct) -> Outcome:
        others = tuple(one for one in self._state.followers if one != request.environment)
        followers = (*others, request.environment) if request.follows else others
        self._state = self._state.but(followers=followers)
        return Outcome(result=Result.DONE, message=f"revision {self._state.revision}")

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
            product=self._product,
            maintenance_window=_window_of(self._state.declaration),
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
        )

    @workflow.query(name="export", description="What a document of it would say.")
    def export(self) -> ProductExport:
        return ProductExport(
            product=self._state.declaration or ProductDeclaration(name=self._input.name),
            releases=self._product.releases,
            recalls=self._product.recalls,
            ramps=self._product.ramps,
        )

    # --- details ---

    @property
    def _title(self) -> str:
        return f"product {self._input.name}"

    @property
    def _fleet(self) -> Fleet:
        known = promotion_state.ProductState(product=self._product)
        return Fleet({self._input.name: known}, {}, {})

    def _happen(self, event: FleetEvent) -> None:
        changed = after(event.but(product=self._input.name), self._fleet, workflow.now())
        self._put(changed.products[self._input.name].product)

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
        return None

    def _apply_refusal(self, request: ProductApply) -> Refusal | None:
        """Return why a document can't be applied: releases are immutable but for their channels."""
        reasons: list[Reason] = []
        if request.product.name != self._input.name:
            text = f"this is {self._title}"
            reasons.append(Reason(field="name", problem=text, value=request.product.name))
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

    def _no_release(self, version: str) -> Refusal:
        known = [one.version for one in self._product.releases]
        reason = Reason(
            field="version",
            problem=f"{self._title} has no such release",
            value=version,
            fix=suggestion(version, known) or "publish it first",
        )
        return Refusal(code=Code.NOT_FOUND, reasons=(reason,))


def _published(release: Release, now: datetime) -> Release:
    """Return a release as it is kept: on the default channels of its kind, too."""
    channels = dict.fromkeys((*release.channels, *default_channels(release.version)))
    return release.but(channels=tuple(channels), published_at=release.published_at or now)


def _kept(payload: ReleasePayload) -> KeptFiles:
    return KeptFiles(digest=payload.digest, names=tuple(sorted(payload.files)))


def _content(release: Release) -> Release:
    """Return what is immutable of a release; its scan is a fact, which becomes known later."""
    return release.but(channels=(), published_at=None, scan=None)


def _age(release: Release) -> tuple[tuple[int, ...], float]:
    version = parse_version(release.version)
    published = release.published_at.timestamp() if release.published_at else 0.0
    return (version.key if version and version.key else (), published)


def _window_of(declaration: ProductDeclaration | None) -> Schedule | None:
    return declaration.maintenance_window if declaration else None
