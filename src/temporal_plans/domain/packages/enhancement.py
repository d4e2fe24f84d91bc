"""What every object that is applied gets: whose it is, which run made it, and where it belongs."""

from copy import deepcopy

from temporal_plans.domain.packages.manifests import (
    Manifest,
    Object,
    entries,
    group_kind,
    part,
    pod_template_path,
    put,
)
from temporal_plans.domain.values.model import CompactValue

OPERATOR_LABEL, INSTANCE_LABEL = "kudo.dev/operator", "kudo.dev/instance"
HERITAGE = {"heritage": "kudo"}
PLAN_KEY, PHASE_KEY, STEP_KEY = "kudo.dev/plan", "kudo.dev/phase", "kudo.dev/step"
RUN_KEY = "kudo.dev/last-plan-execution-uid"
VERSION_KEY = "kudo.dev/operator-version"
NAMESPACE_KEY = "temporal-plans/namespace"
"""At objects of the cluster: the namespace of their instance. The labels are the same for every
instance of its name."""
_LABELS, _ANNOTATIONS = ("metadata", "labels"), ("metadata", "annotations")


class Origin(CompactValue):
    """Where objects come from: the instance of a package, and the run (``uid``) and the step of a
    plan that applies them. Without a plan, what belongs to the instance as a whole."""

    operator: str
    operator_version: str = ""
    instance: str
    namespace: str
    plan: str = ""
    phase: str = ""
    step: str = ""
    uid: str = ""

    @property
    def labels(self) -> dict[str, str]:
        return {
            **HERITAGE,
            OPERATOR_LABEL: self.operator,
            INSTANCE_LABEL: self.instance,
        }

    @property
    def annotations(self) -> dict[str, str]:
        found = {
            PLAN_KEY: self.plan,
            PHASE_KEY: self.phase,
            STEP_KEY: self.step,
            RUN_KEY: self.uid,
        }
        return {key: value for key, value in found.items() if value}


def enhanced(manifest: Manifest, origin: Origin, *, namespaced: bool) -> Object:
    """Return the object with the labels and annotations of its origin, in the instance's namespace
    if its kind has one, and without a status.

    What is about one run stands at the object alone: in a template of pods it would replace them
    with each run.
    """
    made: Object = deepcopy(dict(manifest))
    made.pop("status", None)
    put(made, _LABELS, origin.labels)
    put(made, _ANNOTATIONS, origin.annotations)
    if isinstance(made["metadata"], dict):
        made["metadata"].pop("namespace", None)
    if namespaced:
        put(made, ("metadata",), {"namespace": origin.namespace})
    else:
        put(made, _ANNOTATIONS, {NAMESPACE_KEY: origin.namespace})
    if template := pod_template_path(made):
        put(made, (*template, *_LABELS), origin.labels)
        put(made, (*template, *_ANNOTATIONS), {VERSION_KEY: origin.operator_version})
    if group_kind(made) == ("apps", "StatefulSet"):
        for claim in entries(part(made, "spec"), "volumeClaimTemplates"):
            if isinstance(claim, dict):
                put(claim, _LABELS, origin.labels)
    return made


def controller_of(manifest: Manifest) -> Manifest | None:
    """Return the owner that controls an object; None without one."""
    owners = entries(part(manifest, "metadata"), "ownerReferences")
    return next((owner for owner in owners if owner.get("controller") is True), None)
