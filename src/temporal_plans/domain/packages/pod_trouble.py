"""What is wrong with a pod, and what the events of an object say, in a line each."""

from collections.abc import Iterable, Iterator, Sequence

from temporal_plans.domain.packages.manifests import Manifest, entries, name_of, part
from temporal_plans.domain.packages.object_report import NOTE_LIMIT, NOTES_LIMIT
from temporal_plans.domain.values.text import shortened

_STARTING = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons to wait that pass in any pod."""


def in_trouble(pods: Iterable[Manifest]) -> list[Manifest]:
    """Return the pods that something is wrong with."""
    return [pod for pod in pods if _trouble(pod)]


def troubles(pods: Iterable[Manifest]) -> tuple[str, ...]:
    """Return a line for each of the first pods in trouble: ``Pod web-1: main: CrashLoopBackOff
    (exit code 1, 5 restarts)``. One that only waits for its containers is named last."""
    found = [(name_of(pod), _trouble(pod)) for pod in pods]
    lines = [(only_starts(text), f"Pod {name}: {text}") for name, text in found if text]
    lines.sort()
    return tuple(shortened(line, NOTE_LIMIT) for _, line in lines[:NOTES_LIMIT])


def only_starts(line: str) -> bool:
    """Return whether all that a line says is that the pod waits for its containers."""
    return line.endswith(tuple(_STARTING))


def _trouble(pod: Manifest) -> str:
    """Return what keeps a pod from being ready; empty when nothing is known."""
    status = part(pod, "status")
    if part(pod, "metadata").get("deletionTimestamp"):
        return "is being deleted"
    if status.get("phase") == "Succeeded":
        return ""
    texts = [text for text in map(_container, _containers(status)) if text]
    if texts:
        return ", ".join(texts)
    for one in entries(status, "conditions"):
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return f"is not scheduled: {one.get('message') or one.get('reason')}"
    if status.get("phase") == "Failed":
        return f"failed: {status.get('message') or status.get('reason') or 'without a reason'}"
    return ""


def _containers(status: Manifest) -> Iterator[Manifest]:
    yield from entries(status, "initContainerStatuses")
    yield from entries(status, "containerStatuses")


def _container(one: Manifest) -> str:
    waiting = part(one, "state", "waiting")
    ended = part(one, "state", "terminated") or part(one, "lastState", "terminated")
    reason = waiting.get("reason")
    if not reason and (one.get("ready") or not ended or ended.get("exitCode") == 0):
        return ""
    details = [_ending(ended)] if ended else []
    if restarts := one.get("restartCount"):
        details.append(f"{restarts} restarts")
    text = f"{one.get('name')}: {reason or 'ended'}"
    return f"{text} ({', '.join(details)})" if details else text


def _ending(ended: Manifest) -> str:
    reason = ended.get("reason")
    code = f"exit code {ended.get('exitCode')}"
    return f"{reason}, {code}" if reason not in (None, "Error") else code


def warnings(events: Sequence[Manifest]) -> tuple[str, ...]:
    """Return a line for each of the last warnings, the last one first: ``BackOff: restarting failed
    container (5 times)``."""
    serious = [one for one in events if one.get("type") == "Warning"]
    serious.sort(key=_time, reverse=True)
    lines = dict.fromkeys(_line(one) for one in serious)
    return tuple(lines)[:NOTES_LIMIT]


def _time(event: Manifest) -> str:
    times = (event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"))
    return next((str(time) for time in times if time), "")


def _line(event: Manifest) -> str:
    count = event.get("count")
    times = f" ({count} times)" if isinstance(count, int) and count > 1 else ""
    text = f"{event.get('reason') or 'Warning'}: {event.get('message') or ''}"
    return shortened(text, NOTE_LIMIT - len(times)) + times
