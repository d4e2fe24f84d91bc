"""What people do to a fleet in a soak test: any request, at any time, in any order."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from temporalio.service import RPCError

from acceptance.fleet_soak.catalogue import NEEDS, Catalogues
from acceptance.fleet_soak.environments import Wanted, entity_names, three
from acceptance.fleet_soak.place import ANSWER_WITHIN, SILENT, Place
from acceptance.fleet_soak.timeline import Timeline
from temporal_plans.client.errors import Refused
from temporal_plans.domain.fleets.plans import CommandType, EndStatus
from temporal_plans.domain.fleets.suppressions import Origin, WindowClass
from temporal_plans.messages.fleets.commands import CancelPlans, FleetCommand, ResolvePlan
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus, StatusRow
from temporal_plans.messages.fleets.products import Publish, RecallRelease, RevertRecall
from temporal_plans.messages.fleets.stops import OverrideWindows, Suppress, Unsuppress

if TYPE_CHECKING:
    from temporal_plans.client.verbs.fleets import EnvironmentRequest

BY = "soak"

Act = Callable[[Random], Awaitable[None]]


@dataclass
class People:
    """``pause`` are the seconds from one act of a person to the next, on average. ``terminated``
    are the ids of plans whose workflow somebody ended, ``resolved`` of those of which a person said
    how they ended."""

    place: Place
    timeline: Timeline
    pause: float
    catalogues: Catalogues = field(default_factory=Catalogues)
    environments: dict[str, Wanted] = field(default_factory=three)
    terminated: set[str] = field(default_factory=set[str])
    resolved: set[str] = field(default_factory=set[str])
    count: int = 0

    @property
    def names(self) -> list[str]:
        return list(self.environments)

    # --- one request ---

    def _reason(self) -> str:
        self.count += 1
        return f"soak-{self.count:04d}"

    async def _ask(self, what: str, call: Callable[[str], Awaitable[Any]]) -> bool:
        """Give a request; whether it was taken, as far as is known."""
        reason = self._reason()
        kind = what.split()[0]
        said = "taken"
        try:
            async with asyncio.timeout(ANSWER_WITHIN):
                await call(reason)
        except Refused as error:
            said = f"refused: {error}"[:120]
        except SILENT as error:
            said = f"unknown: {error!r}"[:120]
        self.timeline.counts[f"{kind} {said.split(':', maxsplit=1)[0]}"] += 1
        self.timeline.tell(f"{reason} {what}: {said}")
        return said == "taken"

    async def _of(self, name: str, what: str, make: Callable[[str], "EnvironmentRequest"]) -> bool:
        async def call(reason: str) -> None:
            client = await self.place.client()
            await client.ask_environment(name, make(reason))

        return await self._ask(f"{what} ({name})", call)

    # --- the beginning and the end ---

    async def begin(self) -> None:
        """All environments, and 1.0.0 of all products."""
        for product in NEEDS:
            self.catalogues.first(product)
        await asyncio.gather(
            *(self.publish(product, "1.0.0", insist=True) for product in NEEDS),
            *(self.apply(name, insist=True) for name in self.environments),
        )

    async def calm(self) -> None:
        """Everything as it is to be in the end: windows open, nothing marked to be uninstalled, and
        all releases there of which it is not known."""
        for wanted in self.environments.values():
            wanted.open = True
            wanted.leaving.clear()
        unsure = [
            (catalogue.name, version)
            for catalogue in self.catalogues.products.values()
            for version, published in catalogue.releases.items()
            if not published.sure
        ]
        await asyncio.gather(
            *(self.publish(product, version, insist=True) for product, version in unsure),
            *(self.apply(name, insist=True) for name in self.environments),
        )

    async def lift_all(self) -> bool:
        """Remove what was stopped by hand; whether there was anything."""
        found = [
            (name, one.id)
            for name, status in (await self.place.statuses(self.names)).items()
            for one in status.suppressions
            if one.origin is Origin.MANUAL
        ]
        for name, id in found:
            await self._unsuppress(name, id)
        return bool(found)

    async def resolve_all(self) -> None:
        """Say of every plan that was terminated what it did. What became of others is found out by
        itself."""
        for name, status in (await self.place.statuses(self.names)).items():
            for row in status.rows:
                if row.plan_status == "UNKNOWN" and row.plan_id in self.terminated:
                    await self._say(name, row)

    # --- acts ---

    @property
    def acts(self) -> Mapping[str, tuple[float, Act]]:
        return {
            "publish": (5, self._publish),
            "recall": (1.6, self._recall),
            "revert": (1, self._revert),
            "suppress": (1.5, self._suppress),
            "unsuppress": (2, self._lift),
            "window": (1, self._window),
            "override": (1.5, self._override),
            "cancel": (2, self._cancel),
            "command": (1, self._command),
            "configure": (1.5, self._configure),
            "leave": (0.8, self._leave),
            "terminate": (0.4, self._terminate),
            "resolve": (1, self._resolve),
        }

    async def run(self, chance: Random) -> None:
        """Until it is cancelled."""
        acts = self.acts
        weights = [weight for weight, _ in acts.values()]
        while True:
            await asyncio.sleep(self.pause * chance.uniform(0.2, 1.8))
            act = chance.choices(list(acts), weights)[0]
            try:
                await acts[act][1](chance)
            except SILENT as error:
                self.timeline.tell(f"{act}: nothing is known: {error!r}"[:150])

    async def _publish(self, chance: Random) -> None:
        product = chance.choice(list(NEEDS))
        catalogue = self.catalogues.products[product]
        unsure = [one.version for one in catalogue.releases.values() if not one.sure]
        version = unsure[0] if unsure else self.catalogues.next(product, chance).version
        await self.publish(product, version)

    async def publish(self, product: str, version: str, *, insist: bool = False) -> None:
        catalogue = self.catalogues.products[product]
        published = catalogue.releases[version]

        async def call(reason: str = "insisted") -> None:
            client = await self.place.client()
            request = Publish(
                release=published.release, payload=published.payload, by=BY, reason=reason
            )
            await client.publish(product, request)

        if insist:
            await self.place.insist(f"publish {product} {version}", call)
            catalogue.taken(version)
        elif await self._ask(f"publish {product} {version}", call):
            catalogue.taken(version)

    async def _recall(self, chance: Random) -> None:
        product = chance.choice(list(NEEDS))
        recall = self.catalogues.recall(product, f"r{self.count}", chance)

        async def call(reason: str) -> None:
            client = await self.place.client()
            await client.recall(product, RecallRelease(recall=recall, by=BY, reason=reason))

        back = " down" if recall.roll_off.allow_downgrade else ""
        await self._ask(f"recall {product} {recall.start} to {recall.end}{back}", call)

    async def _revert(self, chance: Random) -> None:
        product = chance.choice(list(NEEDS))
        view = await (await self.place.client()).releases(product)
        active = [one.id for one in view.recalls if one.status == "active"]
        if not active:
            return
        id = chance.choice(active)

        async def call(reason: str) -> None:
            client = await self.place.client()
            await client.revert_recall(product, RevertRecall(id=id, by=BY, reason=reason))

        await self._ask(f"revert {product} {id}", call)

    async def _suppress(self, chance: Random) -> None:
        name, entity = self._one(chance, none=0.2)
        length = timedelta(seconds=chance.uniform(1, 12)) if chance.random() < 0.7 else None
        cancel = chance.random() < 0.3

        def make(reason: str) -> Suppress:
            return Suppress(
                entity=entity, duration=length, cancel_active=cancel, by=BY, reason=reason
            )

        await self._of(name, f"suppress {entity} for {length}", make)

    async def _lift(self, chance: Random) -> None:
        name, _ = self._one(chance)
        found = (await self._status(name)).suppressions
        if found:
            await self._unsuppress(name, chance.choice([one.id for one in found]))

    async def _unsuppress(self, name: str, id: str) -> None:
        await self._of(name, f"unsuppress {id}", lambda why: Unsuppress(id=id, by=BY, reason=why))

    async def _window(self, chance: Random) -> None:
        name, _ = self._one(chance)
        self.environments[name].open = not self.environments[name].open
        await self.apply(name)

    async def apply(self, name: str, *, insist: bool = False) -> None:
        wanted = self.environments[name]

        async def call(reason: str = "insisted") -> None:
            await self.place.apply(wanted.request(reason), wanted.begin)

        if insist:
            await self.place.insist(f"apply {name}", call)
        else:
            await self._ask(f"apply {name} open={wanted.open} leaving={wanted.leaving}", call)

    async def _override(self, chance: Random) -> None:
        name, entity = self._one(chance, none=0.5)
        length = timedelta(seconds=chance.uniform(1, 10))
        admits = chance.choice(list(WindowClass))

        def make(reason: str) -> OverrideWindows:
            return OverrideWindows(
                entity=entity, admits=admits, duration=length, by=BY, reason=reason
            )

        await self._of(name, f"override {admits} {entity} for {length}", make)

    async def _cancel(self, chance: Random) -> None:
        """Mostly of a plan that runs."""
        name, entity = self._one(chance, none=0.1)
        running = [row.entity for row in (await self._status(name)).rows if row.plan_status]
        if entity is not None and running and chance.random() < 0.9:
            entity = chance.choice(running)
        rest = timedelta(seconds=chance.uniform(0.5, 6))

        def make(reason: str) -> CancelPlans:
            return CancelPlans(entity=entity, suppress=rest, by=BY, reason=reason)

        await self._of(name, f"cancel {entity}", make)

    async def _command(self, chance: Random) -> None:
        """None that sets a version: it may break a dependency, as it is meant to."""
        name, entity = self._one(chance)
        kind = chance.choice([CommandType.RESTART, CommandType.ENFORCE_CONFIG])

        def make(reason: str) -> FleetCommand:
            return FleetCommand(entity=entity or "", command=kind, by=BY, reason=reason)

        await self._of(name, f"command {kind} {entity}", make)

    async def _configure(self, chance: Random) -> None:
        name, entity = self._one(chance)
        self.environments[name].colours[entity or ""] = f"colour-{self.count}"
        await self.apply(name)

    async def _leave(self, chance: Random) -> None:
        """Mark an entity to be uninstalled, or no longer."""
        name, entity = self._one(chance)
        self.environments[name].leaving ^= {entity or ""}
        await self.apply(name)

    async def _terminate(self, chance: Random) -> None:
        """A plan's workflow, behind the back of its environment."""
        name, _ = self._one(chance)
        plans = [row.plan_id for row in (await self._status(name)).rows if row.plan_status]
        if not plans:
            return
        plan = chance.choice(plans)
        self.terminated.add(plan)

        async def call(reason: str) -> None:
            client = await self.place.bare_client(self.place.plans_address(name))
            try:
                await client.get_workflow_handle(plan).terminate(reason)
            except RPCError as error:
                self.timeline.tell(f"{plan} has ended: {error}"[:100])

        await self._ask(f"terminate {plan}", call)

    async def _resolve(self, chance: Random) -> None:
        name, _ = self._one(chance)
        unknown = [row for row in (await self._status(name)).rows if row.plan_status == "UNKNOWN"]
        if unknown:
            await self._say(name, chance.choice(unknown))

    async def _say(self, name: str, row: StatusRow) -> None:
        """What the plan wrote down."""
        done = self.place.ledger.has_done(row.plan_id)
        outcome = EndStatus.SUCCEEDED if done else EndStatus.FAILED
        self.resolved.add(row.plan_id)

        def make(reason: str) -> ResolvePlan:
            return ResolvePlan(entity=row.entity, outcome=outcome, by=BY, reason=reason)

        await self._of(name, f"resolve {row.plan_id} {outcome}", make)

    # --- details ---

    async def _status(self, name: str) -> EnvironmentStatus:
        return (await self.place.statuses([name]))[name]

    def _one(self, chance: Random, *, none: float = 0.0) -> tuple[str, str | None]:
        """An environment, and an entity of it; with a chance of ``none`` the whole."""
        name = chance.choice(self.names)
        entity = chance.choice(entity_names())
        return name, None if chance.random() < none else entity
