"""The promotions of a product: what people and environments ask, and what its pipeline does."""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.promotion.by_hand import (
    HandPromotion,
    channels_by_hand,
    hand_refusal,
)
from temporal_plans.domain.fleets.promotion.canary_standing import canary_standings
from temporal_plans.domain.fleets.promotion.decide import decide_promotions
from temporal_plans.domain.fleets.promotion.decisions import (
    ProductDecision,
    PromotionDecision,
    PromotionOutcome,
)
from temporal_plans.domain.fleets.promotion.events import (
    Cancelled,
    ChannelChanged,
    Paused,
    PipelineChanged,
    ProductEvent,
    PromotedByHand,
    Resumed,
    refusal_of,
)
from temporal_plans.domain.fleets.promotion.pipelines import Pipeline, PipelineOptions
from temporal_plans.domain.fleets.recalls import covering
from temporal_plans.domain.plans.commands import Command, Outcome, Result
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.messages.fleets.products import ProductInput, ProductState
from temporal_plans.messages.promotions import (
    CHANNELS_LIMIT,
    CanaryAnswer,
    CanaryReports,
    ChannelRules,
    ExplainRelease,
    KnownChannels,
    ProductWindows,
    PromoteRelease,
    PromotionVerb,
    ReadProduct,
    ReleaseExplanation,
    SetChannel,
    SetPipeline,
    StageExplanation,
    SteerPromotion,
)
from temporal_plans.workflows.fleets.audited import Audited, ask, refusal_in_failure, start
from temporal_plans.workflows.fleets.promotion import (
    canary_channels,
    happened,
    promote,
    promotions_of,
    with_canaries,
    without_canaries,
)
from temporal_plans.workflows.mechanics.alarm import Alarm
from temporal_plans.workflows.mechanics.handlers import wait_or_timeout
from temporal_plans.workflows.mechanics.refusal import refused
from temporal_plans.workflows.mechanics.settings import engine_settings

REPORTS_LIMIT = 20_000
"""Entities that a product keeps reports of."""

LONGEST_TIMER = timedelta(days=30)

WINDOWS_MARGIN = timedelta(days=30)
"""Windows are computed again when they are known for less than this."""

_FAILED_READ_INTERVAL = timedelta(minutes=1)


class ProductPromotions(Audited):
    """A base class of the Product workflow."""

    _input: ProductInput
    _state: ProductState
    _alarm: Alarm
    _answer: ProductDecision | None = None
    _undecided: str = ""
    _unread: str = ""
    _reading: bool = False
    _knows_rules: bool

    @property
    def _product(self) -> Product:
        return self._state.product or Product(id=self._input.name)

    @property
    def _title(self) -> str:
        return f"product {self._input.name}"

    # --- what the pipeline does ---

    def _promote(self) -> None:
        """Carry out what the pipeline promotes, recalls and cancels by now. Without the windows of
        the product, and the rules of channels, nothing is decided."""
        state, now = self._state, workflow.now()
        if state.pipeline is not None:
            self._refresh_windows()
            if state.until is None or state.until <= now or not self._knows_rules:
                return
        try:
            done = promote(state, now)
        except Exception as error:  # a retry of the workflow task would fail as well
            self._undecided = f"{type(error).__name__}: {error}"[:500]
            self.record_problem("promote", self._undecided)
            return
        self._undecided = ""
        self._state, self._answer = done.state, done.answer
        for one in done.done:
            self._record(one)
        if done.again is not None:
            self._alarm.at(min(done.again, now + LONGEST_TIMER))

    def _record(self, one: PromotionDecision) -> None:
        """Keep in the log what the pipeline did by itself."""
        stage = f"the stage from {one.source} to {one.target}"
        texts = {
            PromotionOutcome.PROMOTE: f"{one.version} is on {one.target}",
            PromotionOutcome.RECALL: f"{one.version} is recalled",
            PromotionOutcome.CANCEL: f"the promotion of {one.version} is cancelled",
        }
        command = Command(by=stage, reason=one.message[:500])
        outcome = Outcome(result=Result.DONE, message=texts[one.outcome])
        verb = f"{one.outcome.lower()} {one.version}"
        self.log.command(verb, command, outcome, via="pipeline", now=workflow.now())

    def _refresh_windows(self) -> None:
        until, now = self._state.until, workflow.now()
        if self._reading:
            return
        if until is None or until - now <= WINDOWS_MARGIN:
            self._reading = True
            start(self._read_windows())
        else:
            self._alarm.at(min(until - WINDOWS_MARGIN, now + LONGEST_TIMER))

    async def _read_windows(self) -> None:
        declaration = self._state.declaration
        schedule = declaration.maintenance_window if declaration else None
        request = ReadProduct(maintenance_window=schedule, now=workflow.now())
        try:
            read = await ask("read_product", request, ProductWindows)
        except ActivityError as error:
            self._unread = str(refusal_in_failure(error))
            self.record_problem("read_product", self._unread)
            await workflow.sleep(_FAILED_READ_INTERVAL)
        else:
            self._unread = ""
            now = self._state.declaration
            if schedule == (now.maintenance_window if now else None):
                product = self._product.but(window=read.window, weekdays=read.weekdays)
                self._state = self._state.but(product=product, until=read.until)
        finally:
            self._reading = False
            self.changed()

    # --- rules of channels ---

    def _begin_rules(self) -> None:
        """Ask for the rules that other products know, when the product begins."""
        if not self._knows_rules:
            start(self._inherit_rules())

    async def _inherit_rules(self) -> None:
        request = KnownChannels(product=self._input.name)
        try:
            found = await ask("known_channels", request, ChannelRules)
        except ActivityError as error:
            self.record_problem("known_channels", str(error))
        else:
            own = {one.name for one in self._state.channels}
            new = tuple(one for one in found.channels if one.name not in own)
            self._state = self._state.but(channels=(*self._state.channels, *new))
        finally:
            self._knows_rules = True
            self.changed()

    async def _until_rules(self) -> None:
        """Wait until the rules of channels are known, before a release comes to one."""
        if not self._knows_rules:
            await wait_or_timeout(lambda: self._knows_rules, engine_settings().answer_timeout)

    @workflow.query(name="channels", description="The rules of channels that it knows.")
    def channels(self) -> ChannelRules:
        return ChannelRules(channels=self._state.channels)

    # --- updates from people ---

    @workflow.update(name="pipeline", description="How its releases go from channel to channel.")
    async def pipeline(self, request: SetPipeline) -> Outcome:
        new = _pipeline(request.pipeline)
        former = self._state.pipeline
        if new == former or (new and former and new == former.but(since=new.since)):
            outcome = Outcome(result=Result.ALREADY, message="the pipeline is so already")
            return self.recorded("pipeline", request, outcome)
        before = canary_channels(self._state)
        self._happen(PipelineChanged.model_construct(pipeline=new))
        if canary_channels(self._state) != before:
            # Environments report the entities of other channels from now on.
            self._state = self._state.but(revision=self._state.revision + 1)
        if not canary_channels(self._state):
            self._state = without_canaries(self._state)
        return self.done("pipeline", request, _length(new))

    @pipeline.validator
    def _check_pipeline(self, request: SetPipeline) -> None:
        pipeline = _pipeline(request.pipeline)
        self._check(PipelineChanged.model_construct(pipeline=pipeline))
        since = pipeline.since if pipeline else None
        if since is not None and since > workflow.now() + timedelta(days=1):
            reason = Reason(field="since", problem="is in the future", value=since.isoformat())
            self.refuse(Refusal(code=Code.INVALID, reasons=(reason,)))

    @workflow.update(name="channel", description="What a release needs to come to a channel.")
    async def channel(self, request: SetChannel) -> Outcome:
        channel = request.channel
        verb = f"channel {channel.name}"
        if channel in self._state.channels:
            text = f"channel {channel.name} is so already"
            return self.recorded(verb, request, Outcome(result=Result.ALREADY, message=text))
        self._happen(ChannelChanged.model_construct(channel=channel))
        return self.done(verb, request, f"channel {channel.name} has its rules")

    @channel.validator
    def _check_channel(self, request: SetChannel) -> None:
        self._check(ChannelChanged.model_construct(channel=request.channel))
        names = {one.name for one in self._state.channels}
        if len(names) >= CHANNELS_LIMIT and request.channel.name not in names:
            text = f"a product knows at most {CHANNELS_LIMIT} channels"
            self.refuse(Refusal.of(Code.INVALID, text, field="channel"))

    @workflow.update(name="promote", description="Bring a release to channels by hand.")
    async def promote(self, request: PromoteRelease) -> Outcome:
        promotion = _by_hand(request)
        known = promotions_of(self._state)
        release = next(one for one in self._product.releases if one.version == request.version)
        channels = [c for c in channels_by_hand(promotion, known) if c not in release.channels]
        skipped = self._reasons(request.version, channels)
        self._happen(PromotedByHand.model_construct(promotion=promotion))
        text = f"{request.version} is on {', '.join(channels)}"
        verb = f"promote {request.version}"
        more = f"; it did not wait for {skipped}" if skipped else ""
        return self.done(verb, request, text + more)

    @promote.validator
    def _check_promote(self, request: PromoteRelease) -> None:
        self.refuse(hand_refusal(_by_hand(request), promotions_of(self._state)))

    def _reasons(self, version: str, channels: list[str]) -> str:
        """Return what held a release back from channels to which it is promoted by hand."""
        found = self._answer.promotions if self._answer else ()
        return ", ".join(
            f"{one.code} from {one.source} to {one.target}"
            for one in found
            if one.version == version and one.target in channels and one.code
        )

    @workflow.update(name="steer", description="Pause, resume or cancel a promotion.")
    async def steer(self, request: SteerPromotion) -> Outcome:
        event = self._steering(request)
        self._happen(event)
        words = {"pause": "paused", "resume": "resumed", "cancel": "cancelled"}
        stage = f"{event.source} to {event.target}"
        text = f"the promotion of {request.version} from {stage} is {words[request.verb]}"
        return self.done(f"{request.verb} {request.version} to {event.target}", request, text)

    @steer.validator
    def _check_steer(self, request: SteerPromotion) -> None:
        if request.verb is not PromotionVerb.RESUME and not request.reason.strip():
            self.refuse(Refusal.of(Code.INVALID, "is missing", field="reason", fix="say why"))
        self._check(self._steering(request))

    def _steering(self, request: SteerPromotion) -> Paused | Resumed | Cancelled:
        """Return the event of a request. Raises ApplicationError (Refused) when several stages lead
        to the target."""
        stages = self._state.pipeline.stages if self._state.pipeline else ()
        sources = [one.source for one in stages if one.target == request.target]
        source = request.source or (sources[0] if sources else request.target)
        if request.source is None and len(sources) > 1:
            text = f"several stages lead to {request.target}"
            fix = f"give one of: {', '.join(sources)}"
            self.refuse(Refusal.of(Code.INVALID, text, field="source", fix=fix))
        target, version, reason = request.target, request.version, request.reason
        match request.verb:
            case PromotionVerb.PAUSE:
                return Paused(source=source, target=target, version=version, reason=reason)
            case PromotionVerb.CANCEL:
                return Cancelled(source=source, target=target, version=version, reason=reason)
            case PromotionVerb.RESUME:
                return Resumed(source=source, target=target, version=version)

    # --- reports of environments ---

    @workflow.update(name="canaries", description="From an environment: how its entities are.")
    async def canaries(self, request: CanaryReports) -> CanaryAnswer:
        wanted = canary_channels(self._state)
        if not wanted or request.environment not in self._state.followers:
            return CanaryAnswer()
        state = with_canaries(self._state, request, workflow.now())
        if state is None:
            return CanaryAnswer(send_all=True)
        if state is not self._state:
            self._state = state
            self.changed()
        return CanaryAnswer()

    @canaries.validator
    def _check_canaries(self, request: CanaryReports) -> None:
        if len(self._state.reports) + len(request.entities) > 2 * REPORTS_LIMIT:
            text = f"a product keeps reports of at most {REPORTS_LIMIT} entities"
            self.refuse(Refusal.of(Code.INVALID, text, field="entities"))

    # --- queries ---

    @workflow.query(name="explain", description="Where a release is in the pipeline, and why.")
    def explain(self, query: ExplainRelease) -> ReleaseExplanation:
        releases = {one.version: one for one in self._product.releases}
        release = releases.get(query.version)
        if release is None:
            text = f"{self._title} has no release {query.version!r}"
            raise refused(Code.NOT_FOUND, text, fix=suggestion(query.version, releases))
        known = promotions_of(self._state)
        decided = decide_promotions(known, query.at) if self._state.until else None
        stages = tuple(
            StageExplanation(
                decision=one,
                canaries=tuple(
                    canary_standings(known, one.source, one.target, one.version, query.at)
                ),
            )
            for one in (decided.promotions if decided else ())
            if one.version == query.version
        )
        return ReleaseExplanation(
            product=self._input.name,
            at=query.at,
            release=release,
            recalls=tuple(covering(self._product.recalls, release.version)),
            stages=stages,
        )

    # --- details ---

    def _happen(self, event: ProductEvent) -> None:
        self._state = happened(self._state, event, workflow.now())
        self.changed()

    def _check(self, event: ProductEvent) -> None:
        self.refuse(refusal_of(event, promotions_of(self._state)))


def _length(pipeline: Pipeline | None) -> str:
    if pipeline is None:
        return "there is no pipeline any more"
    count = len(pipeline.stages)
    return f"the pipeline has {count} stage{'' if count == 1 else 's'}"


def _pipeline(options: PipelineOptions | None) -> Pipeline | None:
    if options is None:
        return None
    return Pipeline(**{name: getattr(options, name) for name in PipelineOptions.model_fields})


def _by_hand(request: PromoteRelease) -> HandPromotion:
    return HandPromotion(
        version=request.version,
        channels=request.channels,
        like=request.like,
        up_to=request.up_to,
        whole_pipeline=request.whole_pipeline,
        reason=request.reason,
        by=request.by,
    )
