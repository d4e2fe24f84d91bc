"""Why an object of an instance is not as it should be, in words, and what to do.

``cause_of_report`` judges what was seen of an object, ``cause_of_refusal`` the text with which a
cluster refused a request: the API server has no codes for most of these.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum

from temporal_plans.domain.packages.object_report import ObjectReport, ObjectState
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import listed


class ObjectCause(StrEnum):
    """The causes that are known."""

    CHANGED = "changed-by-others"
    FOREIGN = "belongs-to-another-owner"
    MISSING = "missing"
    DELETED = "being-deleted"
    CRASHES = "pod-crashes"
    NO_IMAGE = "no-image"
    BAD_CONFIGURATION = "pod-configuration"
    NOT_SCHEDULED = "not-scheduled"
    JOB_FAILED = "job-failed"
    WEBHOOK_REFUSES = "webhook-refuses"
    WEBHOOK_DOWN = "webhook-down"
    QUOTA = "quota-full"
    NO_KIND = "no-such-kind"
    CREDENTIALS = "credentials-refused"
    FORBIDDEN = "forbidden"
    NAMESPACE_DELETED = "namespace-being-deleted"
    NO_NAMESPACE = "no-namespace"
    IMMUTABLE = "immutable-field"
    INVALID = "invalid"
    UNREACHABLE = "cluster-unreachable"
    SERVER = "server-error"
    OTHER = "other"


class ObjectExplanation(CompactValue):
    """A cause with its text, and how to remove it."""

    cause: ObjectCause
    text: str
    fix: str


def cause_of_report(report: ObjectReport) -> ObjectExplanation | None:
    """Return why an object is not healthy, or what others changed; None when nothing is wrong."""
    if report.state is ObjectState.HEALTHY:
        return _of_changes(report)
    subject, reason = str(report.ref), report.reason
    match report.state:
        case ObjectState.FOREIGN:
            return _explained(ObjectCause.FOREIGN, f"{subject}: {reason}", _FOREIGN_FIX)
        case ObjectState.MISSING:
            if (known := cause_of_refusal(reason)) is not None:
                return known.but(text=f"{subject}: {reason}")
            fix = "if it should be there, `start deploy` applies it again"
            return _explained(ObjectCause.MISSING, f"{subject}: {reason}", fix)
        case _:
            return _with_changes(report, _of_trouble(report))


def cause_of_refusal(text: str) -> ObjectExplanation | None:
    """Return what the text of a cluster's refusal means; None for one that is not known."""
    for cause, pattern, fix in _REFUSALS:
        if pattern.search(text):
            return _explained(cause, text, fix)
    return None


def cause_of_reason(text: str) -> ObjectExplanation | None:
    """Return what the reason of a step means, which is about an object that it applied or could not
    apply; None for one that is not known."""
    for cause, pattern, fix in (*_STEPS, *_PODS):
        if pattern.search(text):
            return _explained(cause, text, fix)
    return cause_of_refusal(text)


def _of_changes(report: ObjectReport) -> ObjectExplanation | None:
    if not report.changes:
        return None
    text = f"{report.ref}: {_changes(report)}"
    return _explained(ObjectCause.CHANGED, text, _CHANGED_FIX)


def _with_changes(report: ObjectReport, trouble: ObjectExplanation) -> ObjectExplanation:
    """What others changed may be why it is not healthy: the cause, unless a better is known."""
    if not report.changes:
        return trouble
    text = f"{trouble.text}; {_changes(report)}"
    if trouble.cause is ObjectCause.OTHER:
        return _explained(ObjectCause.CHANGED, text, _CHANGED_FIX)
    return trouble.but(text=text)


def _changes(report: ObjectReport) -> str:
    fields = listed([str(one) for one in report.changes], 3)
    return f"others have changed it since it was applied: {fields}"


def _of_trouble(report: ObjectReport) -> ObjectExplanation:
    """Pods say more than the objects that want them, and events more than a count of replicas."""
    if report.ref.kind == "Job" and report.state is ObjectState.FAILED:
        last = f": {report.pods[0]}" if report.pods else ""
        text = f"{report.ref}: {report.reason}{last}"
        return _explained(ObjectCause.JOB_FAILED, text, _JOB_FAILED_FIX)
    for cause, pattern, fix in _PODS:
        if line := _first(report.pods, pattern):
            return _explained(cause, f"{report.ref}: {report.reason}: {line}", fix)
    for note in (report.reason, *report.events):
        if (known := cause_of_refusal(note)) is not None:
            text = note if note == report.reason else f"{report.reason}: {note}"
            return known.but(text=f"{report.ref}: {text}")
    if report.reason.startswith("it is being deleted"):
        fix = "wait until it is gone, or remove the finalizers that hold it; then `start deploy`"
        return _explained(ObjectCause.DELETED, f"{report.ref}: {report.reason}", fix)
    notes = [*report.pods[:1], *report.events[:1]]
    text = ": ".join([f"{report.ref}: {report.reason}", *notes])
    return _explained(ObjectCause.OTHER, text, "wait, or look at the object with kubectl describe")


def _first(lines: Iterable[str], pattern: re.Pattern[str]) -> str:
    return next((line for line in lines if pattern.search(line)), "")


def _explained(cause: ObjectCause, text: str, fix: str) -> ObjectExplanation:
    return ObjectExplanation(cause=cause, text=text, fix=fix)


_Row = tuple[ObjectCause, re.Pattern[str], str]


def _rows(*rows: tuple[ObjectCause, str, str]) -> Sequence[_Row]:
    return [(cause, re.compile(pattern), fix) for cause, pattern, fix in rows]


_CHANGED_FIX = "write the change into the package or a parameter, or `start deploy` to undo it"
_JOB_FAILED_FIX = "read the logs of its pod, correct the cause, then `restart` the step"
_FOREIGN_FIX = "uninstall the one or the other, or rename the object in the template"

_STEPS = _rows(
    (ObjectCause.JOB_FAILED, r"the Job failed", _JOB_FAILED_FIX),
    (ObjectCause.FOREIGN, r"it (belongs to the instance|is controlled by) ", _FOREIGN_FIX),
)
"""Reasons that only steps have as texts."""

_PODS = _rows(
    (
        ObjectCause.NO_IMAGE,
        r"ImagePullBackOff|ErrImage|InvalidImageName",
        "correct the name of the image or its parameter, or give the namespace a pull secret",
    ),
    (
        ObjectCause.BAD_CONFIGURATION,
        r"CreateContainerConfigError|CreateContainerError|RunContainerError",
        "see that the ConfigMaps, Secrets and commands that the pod names are right",
    ),
    (
        ObjectCause.CRASHES,
        r"CrashLoopBackOff|OOMKilled|ended \(",
        "read the pod's logs (kubectl logs --previous), then correct the package or a parameter",
    ),
    (
        ObjectCause.NOT_SCHEDULED,
        r"is not scheduled",
        "ask for less, or give the cluster nodes with what the pod asks for",
    ),
)

_REFUSALS = _rows(
    (
        ObjectCause.QUOTA,
        r"exceeded quota|status unknown for quota",
        "raise the quota of the namespace, or ask for less; it is tried again by itself",
    ),
    (
        ObjectCause.WEBHOOK_DOWN,
        r"failed calling webhook",
        "bring the webhook's service back, or delete its configuration; it is tried again by "
        "itself",
    ),
    (
        ObjectCause.WEBHOOK_REFUSES,
        r"admission webhook .* denied|denied (the )?request",
        "change the object as the policy says, or let who keeps the policy make an exception; "
        "then `restart` the step",
    ),
    (
        ObjectCause.NO_KIND,
        r"has no such kind",
        "apply the CustomResourceDefinition in an earlier step, or install what brings it",
    ),
    (
        ObjectCause.CREDENTIALS,
        r"\(401\)|Unauthorized|credentials: can't be used",
        "renew the credentials of the cluster's worker; it reads them again by itself",
    ),
    (
        ObjectCause.NAMESPACE_DELETED,
        r"is being terminated|Namespace \S+ is being deleted",
        "wait until the namespace is gone, then install again, or choose another",
    ),
    (
        ObjectCause.NO_NAMESPACE,
        r'namespaces "[^"]*" not found',
        "create the namespace, then `restart` the step",
    ),
    (
        ObjectCause.FORBIDDEN,
        r"cannot \w+ resource|\(403\)",
        "give the worker's account the role for it (examples/kubernetes/rbac.yaml)",
    ),
    (
        ObjectCause.IMMUTABLE,
        r"immutable|updates to \w+ spec for fields other than",
        "give the object another name in the template, or delete it; then `restart` the step",
    ),
    (
        ObjectCause.INVALID,
        r'" is invalid: |failed to create typed patch object|failed to convert new object',
        "correct the template, or the parameter that it shows, and deploy it again",
    ),
    (
        ObjectCause.UNREACHABLE,
        r"the API server (can't be reached|did not answer)|answer of the API server can't be read",
        "see that the cluster is up and the worker reaches it; it is tried again by itself",
    ),
    (
        ObjectCause.SERVER,
        r"\((429|5\d\d)\)",
        "look at the API server, its load, and what is before it; it is tried again by itself",
    ),
)
"""What the API server says: the first that fits; the reason of a quota is forbidden, too."""
