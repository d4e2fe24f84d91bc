"""The objects of an instance: what its plans applied."""

from temporalio import workflow

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.packages import OBJECTS_LIMIT, SERVICES_LIMIT, Recorded, RecordObjects
from temporal_plans.workflows.owners.owner import Owner


class InventoryMessages(Owner):
    """A base class of the Instance workflow. ``_uids`` are the ids of the newest runs, by plan."""

    _inventory: dict[tuple[str, str, str, str], ObjectRef]
    _services: tuple[str, ...]
    _uids: dict[str, str]

    @workflow.update(
        name="record_objects",
        description="From a run of a plan: the objects that it is about to apply.",
    )
    def record_objects(self, record: RecordObjects) -> Recorded:
        gone = {one.key for one in record.gone}
        kept = {key: one for key, one in self._inventory.items() if key not in gone}
        self._inventory = {**kept, **{one.key: one for one in record.objects}}
        self._services = tuple(dict.fromkeys((*self._services, *record.services)))
        return Recorded(objects=len(self._inventory))

    @record_objects.validator
    def _check_record(self, record: RecordObjects) -> None:
        current = self._uids.get(record.plan) == record.uid and self.plans.is_open(record.plan)
        if not current:
            problem = f"this run of plan {record.plan} is over: another one took its place"
            raise refusal_error(Refusal.of(Code.ENDING, problem))
        if len(self._inventory.keys() | {one.key for one in record.objects}) > OBJECTS_LIMIT:
            problem = f"an instance has at most {OBJECTS_LIMIT} objects"
            raise refusal_error(Refusal.of(Code.INVALID, problem, field="objects"))
        if len({*self._services, *record.services}) > SERVICES_LIMIT:
            problem = f"an instance has at most {SERVICES_LIMIT} services of nested packages"
            raise refusal_error(Refusal.of(Code.INVALID, problem, field="services"))
