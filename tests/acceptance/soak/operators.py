"""What operators do to the services of a soak test: any command, at any time, in any order."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from acceptance.cluster import Cluster
from acceptance.life import Life
from acceptance.soak import services
from acceptance.soak.ledger import Answer, Given, Ledger
from acceptance.soak.services import Kind, Wanted
from temporal_plans.api.dialect import http_code
from temporal_plans.client.errors import NotFound, PlansError, Refused, Unreadable
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.domain.plans.commands import Command, Outcome, Result, Verb
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.services import DeployResult, PodCommandResult

BY = "soak"

ANSWER_WITHIN = 12.0
"""Seconds that an operator waits for an answer; then it is not known what became of the command."""

OVER = "the plan is COMPLETE and has ended"

Said = tuple[Answer, str]


@dataclass
class Operated:
    """One service, as the operators know it."""

    kind: Kind
    life: Life
    wanted: Wanted
    """the newest configuration that it took, as far as that is known"""
    sure: bool = True
    """whether that is known: false after a change that nobody answered"""
    forced: bool = False
    """whether somebody forced something to complete, which then is not as the configuration says"""
    changing: asyncio.Lock = field(default_factory=asyncio.Lock)


class Operators:
    """Give commands, and keep what was answered. ``faults`` are answers that are wrong."""

    def __init__(self, cluster: Cluster, bare: Client, ledger: Ledger) -> None:
        self._cluster = cluster
        self._bare = bare
        self._ledger = ledger
        self._versions = 1
        self.faults: list[str] = []
        self.services = {
            kind.name: Operated(kind, Life(cluster, kind.name, kind.text), services.first(kind))
            for kind in services.KINDS
        }

    # --- the run ---

    async def run(self, chance: Random) -> None:
        """Until it is cancelled."""
        acts: Mapping[str, tuple[float, Callable[[Operated, Random], Awaitable[None]]]] = {
            "change": (3, self._change),
            "refused": (1, self._refused_change),
            "rollback": (1, self._rollback),
            "pod": (7, self._pod),
            "deploy": (6, self._of_deploy),
            "recovery": (3, self._of_recovery),
            "decommission": (1.5, self._of_decommission),
            "custom": (3, self._of_custom),
            "mistyped": (0.5, self._mistyped),
        }
        weights = [weight for weight, _ in acts.values()]
        while True:
            await asyncio.sleep(chance.uniform(0.2, 1.5))
            act = chance.choices(list(acts), weights)[0]
            service = self.services[chance.choice(sorted(self.services))]
            await acts[act][1](service, chance)

    async def _ask(
        self, one: Given, call: Callable[[], Awaitable[Any]], read: Callable[[Any], Said]
    ) -> Any:
        """Give a command and note the answer; None when there is none, or it is no."""
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                answer = await call()
        except (Refused, NotFound, Unreadable) as error:
            self._ledger.answered(one, Answer.REFUSED, str(error)[:150])
        except (PlansError, ServerUnreachableError, RPCError, TimeoutError) as error:
            self._ledger.answered(one, Answer.UNKNOWN, f"{type(error).__name__}: {error}"[:100])
        except asyncio.CancelledError:
            self._ledger.answered(one, Answer.UNKNOWN, "the operator went away")
            raise
        else:
            self._ledger.answered(one, *read(answer))
            return answer
        return None

    # --- configurations ---

    async def install(self, service: Operated) -> None:
        """Until it is known to be installed."""
        while (await self.deploy(service, service.wanted)) is None:
            await asyncio.sleep(0.3)

    async def deploy(self, service: Operated, wanted: Wanted) -> DeployResult | None:
        """Deploy a configuration, whatever the answer."""
        kind = service.kind
        one = self._ledger.about_to(kind.name, f"deploy {_text(wanted)}", wanted)

        async def call() -> DeployResult:
            return await service.life.deploy(
                wanted.values,
                by=BY,
                recovery=kind.recovery,
                backoff=services.PATIENT,
                reason=one.reason,
            )

        sure, service.sure = service.sure, False  # should nobody wait for the answer
        result: DeployResult | None = await self._ask(one, call, _of_deployment)
        if one.answer is not Answer.UNKNOWN:
            service.sure = sure
        if result is not None and not result.outcome.refused:
            service.wanted = wanted
        return result

    def version(self) -> int:
        self._versions += 1
        return self._versions

    async def _change(self, service: Operated, chance: Random) -> None:
        async with service.changing:
            wanted = services.changed(service.kind, service.wanted, self.version(), chance)
            result = await self.deploy(service, wanted)
            if result is not None and result.outcome.refused and service.sure:
                problems = result.change.problems if result.change else ()
                self.faults.append(f"{service.kind.name} refused {_text(wanted)}: {problems}")

    async def _refused_change(self, service: Operated, chance: Random) -> None:
        async with service.changing:
            wanted = services.refused(service.kind, service.wanted, self.version(), chance)
            if wanted is None:
                return
            result = await self.deploy(service, wanted)
            if result is not None and not result.outcome.refused and service.sure:
                self.faults.append(f"{service.kind.name} took {_text(wanted)}, and may not")

    async def _rollback(self, service: Operated, chance: Random) -> None:
        """To any configuration that is kept; where pods may not shrink, that is refused too."""
        name = service.kind.name
        async with service.changing:
            try:
                kept = await (await self._cluster.client()).configurations(name)
            except (PlansError, ServerUnreachableError, RPCError):
                return
            to = chance.choice(kept.configurations)
            was = self._ledger.by_reason.get(to.reason)
            one = self._ledger.about_to(
                name, f"rollback to {to.number}", was.wanted if was is not None else None
            )

            async def call() -> DeployResult:
                client = await self._cluster.client()
                return await client.rollback(name, to.id, by=BY, reason=one.reason)

            sure, service.sure = service.sure, False
            result: DeployResult | None = await self._ask(one, call, _of_deployment)
            if result is None or result.outcome.refused:
                service.sure = sure and one.answer is not Answer.UNKNOWN
            elif one.wanted is not None:
                service.wanted, service.sure = one.wanted, sure

    # --- pods ---

    async def _pod(self, service: Operated, chance: Random) -> None:
        verb = chance.choices(list(PodVerb), (3, 2, 1.5, 2))[0]
        pod = chance.choice(sorted(service.wanted.counts))
        await self.pod(service, verb, f"{pod}-{chance.randrange(service.wanted.counts[pod])}")

    async def pod(self, service: Operated, verb: PodVerb, pod: str) -> None:
        name = service.kind.name
        one = self._ledger.about_to(name, f"{verb} {pod}")

        async def call() -> PodCommandResult:
            client = await self._cluster.client()
            return await client.command_pod(name, verb, pod, by=BY, reason=one.reason)

        await self._ask(one, call, lambda answer: _of_outcome(answer.outcome))

    # --- plans ---

    async def _of_deploy(self, service: Operated, chance: Random) -> None:
        verbs = {Verb.CONTINUE: 7, Verb.INTERRUPT: 1.5, Verb.RESTART: 2, Verb.FORCE_COMPLETE: 0.7}
        await self._of_plan(service, "deploy", verbs, chance)

    async def _of_recovery(self, service: Operated, chance: Random) -> None:
        verbs = {Verb.CONTINUE: 4, Verb.INTERRUPT: 1.5, Verb.RESTART: 1, Verb.FORCE_COMPLETE: 1}
        await self._of_plan(service, "recovery", verbs, chance)

    async def _of_decommission(self, service: Operated, chance: Random) -> None:
        verbs = {Verb.CONTINUE: 4, Verb.INTERRUPT: 1.5, Verb.RESTART: 1, Verb.FORCE_COMPLETE: 1}
        if service.kind.shrinks:
            await self._of_plan(service, "decommission", verbs, chance)

    async def _of_custom(self, service: Operated, chance: Random) -> None:
        if not (plan := service.kind.plan):
            return
        verbs: dict[Verb, float] = {Verb.START: 4, Verb.STOP: 1, Verb.RESTART: 1}
        verbs |= {Verb.INTERRUPT: 1, Verb.CONTINUE: 2}
        await self._of_plan(service, plan, verbs, chance)

    async def _of_plan(
        self, service: Operated, plan: str, verbs: Mapping[Verb, float], chance: Random
    ) -> None:
        """A command to all of a plan, to a phase or to a step that it has now."""
        verb = chance.choices(list(verbs), list(verbs.values()))[0]
        name = service.kind.name
        phase, step = await self._element(f"{name}/{plan}", verb, chance)
        if verb is Verb.FORCE_COMPLETE:
            if not step:
                return  # all at once would leave nothing to see
            service.forced = True
        parameters = {"LABEL": f"v{self.version()}"} if verb is Verb.START else {}
        await self.plan(
            service, plan, verb, phase, step, parameters, by_signal=chance.random() < 0.15
        )

    async def plan(
        self,
        service: Operated,
        plan: str,
        verb: Verb,
        phase: str = "",
        step: str = "",
        parameters: Mapping[str, str] | None = None,
        *,
        by_signal: bool = False,
    ) -> Given:
        """The command, with the answer to it."""
        plan_id = f"{service.kind.name}/{plan}"
        where = " ".join(filter(None, (plan, phase, step)))
        how = "signal " if by_signal else ""
        one = self._ledger.about_to(service.kind.name, f"{how}{verb} {where}")
        command = Command(
            phase=phase, step=step, parameters=dict(parameters or {}), by=BY, reason=one.reason
        )

        async def update() -> Outcome:
            return await (await self._cluster.client()).command(plan_id, verb, command)

        async def signal() -> Outcome:
            handle = self._bare.get_workflow_handle(plan_id)
            try:
                await handle.signal(verb.value, command)
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    raise Refused.of(Code.NOT_RUNNING, "it is over, or not there yet") from error
                raise
            return Outcome(result=Result.DONE, message="the server has it")

        await self._ask(one, signal if by_signal else update, _of_outcome)
        return one

    async def _element(self, plan_id: str, verb: Verb, chance: Random) -> tuple[str, str]:
        """A phase and step of the plan, or one of them, or neither, as the verb is about."""
        if verb in (Verb.START, Verb.STOP) or chance.random() < 0.35:
            return "", ""
        try:
            view: PlanView = await self._cluster.view(plan_id)
        except (PlansError, ServerUnreachableError, RPCError):
            return "", ""
        if not view.phases:
            return "", ""
        phase = chance.choice(view.phases)
        of_step = verb in (Verb.RESTART, Verb.FORCE_COMPLETE) and phase.steps
        return phase.name, chance.choice(phase.steps).name if of_step else ""

    async def _mistyped(self, service: Operated, chance: Random) -> None:
        """No such phase: nothing may come of it."""
        verb = chance.choice((Verb.CONTINUE, Verb.INTERRUPT, Verb.RESTART))
        given = await self.plan(service, "deploy", verb, "wbe")
        if given.answer is Answer.ACCEPTED:
            self.faults.append(f"{service.kind.name}/deploy knows a phase wbe")

    # --- the end of a service, and its beginning ---

    async def reinstall(self, service: Operated) -> None:
        """Uninstall it, and install it again when it is gone."""
        name = service.kind.name
        async with service.changing:
            while True:
                one = self._ledger.about_to(name, "uninstall")

                async def call(reason: str = one.reason) -> Outcome:
                    client = await self._cluster.client()
                    return await client.uninstall(name, by=BY, reason=reason)

                await self._ask(one, call, _of_outcome)
                if one.answer is Answer.ACCEPTED or await self._is_going(name):
                    break
                await asyncio.sleep(0.3)
            await self._until_gone(name)
            self._ledger.lives[name] += 1
            self._ledger.tell(f"{name} is gone")
            service.wanted, service.sure = services.first(service.kind), True
            await self.install(service)

    async def _is_going(self, name: str) -> bool:
        """Whether an uninstall that nobody answered was heard."""
        try:
            return (await (await self._cluster.client()).service(name)).uninstalling
        except NotFound:
            return True
        except (PlansError, ServerUnreachableError, RPCError):
            return False

    async def _until_gone(self, name: str) -> None:
        while True:
            try:
                if await (await self._cluster.client()).wait_until_gone(name):
                    return
            except (PlansError, ServerUnreachableError, RPCError):
                await asyncio.sleep(0.3)


def _of_deployment(result: DeployResult) -> Said:
    number = f"number {result.number} " if result.number else ""
    return Answer.ACCEPTED, f"{http_code(result.outcome)} {number}{result.outcome.message}"


def _of_outcome(outcome: Outcome) -> Said:
    """What is said to a plan that is over is answered by the client, and reaches no workflow."""
    over = not outcome.changed and outcome.message.endswith(OVER)
    answer = Answer.REFUSED if outcome.refused or over else Answer.ACCEPTED
    return answer, f"{http_code(outcome)} {outcome.message}"


def _text(wanted: Wanted) -> str:
    counts = ", ".join(f"{pod} {count}" for pod, count in wanted.counts.items())
    more = ", crashing" if wanted.crashing else ""
    more += ", hostile" if wanted.hostile else ""
    return f"v{wanted.version} ({counts}, cpus {wanted.cpus}, disk {wanted.disk}{more})"
