"""The three services of the soak test, and what a configuration of one can be."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy

PATIENT = Backoff(initial=timedelta(seconds=0.3), factor=1.5, maximum=timedelta(seconds=2))
"""Long enough that a crash loop reads DELAYED, short enough for a test."""


@dataclass(frozen=True)
class Kind:
    """A service: its file, its pods with the fewest and most instances, and what may be done.

    ``tasks`` are what runs for ever in each pod, ``jobs`` what finishes in it; ``beside`` are the
    cpus of those of a pod's tasks that are the same in all configurations; ``restless``: once in
    the test it is uninstalled and installed again; ``plan`` is its custom plan.
    """

    name: str
    text: str
    limits: Mapping[str, tuple[int, int]]
    tasks: Mapping[str, tuple[str, ...]]
    jobs: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    beside: Mapping[str, float] = field(default_factory=dict[str, float])
    shrinks: bool = True
    restless: bool = False
    plan: str = ""
    recovery: RecoveryPolicy = field(default_factory=RecoveryPolicy)


@dataclass(frozen=True)
class Wanted:
    """A configuration as an operator thinks of it. ``crashing``: its tasks end at once;
    ``hostile``: they replace their output, and leave processes in sessions of their own."""

    version: int
    counts: Mapping[str, int]
    cpus: float = 0.1
    disk: int = 16
    crashing: bool = False
    hostile: bool = False

    @property
    def values(self) -> dict[str, object]:
        """For the service's file."""
        counts = {f"{pod.upper()}_COUNT": count for pod, count in self.counts.items()}
        ending = "sleep 0.3; exit 1" if self.crashing else "exec sleep 86400"
        ending = f"{_HARM if self.hostile else ''}{ending}"
        return {
            "VERSION": self.version,
            "CPUS": self.cpus,
            "DISK": self.disk,
            "CMD": ending,
            **counts,
        }


_HARM = "rm -f stdout stderr; mkfifo stdout; ln -s /etc/passwd stderr; (setsid sleep 86400 &); "

_ALPHA = """
name: {{NAME}}
pods:
  web:
    count: {{WEB_COUNT}}
    allow-decommission: true
    placement: '[["hostname", "MAX_PER", "2"]]'
    resource-sets:
      main: {cpus: {{CPUS}}, memory: 32, volume: {path: data, type: ROOT, size: {{DISK}}}}
      side: {cpus: 0.1, memory: 16}
    tasks:
      server:
        goal: RUNNING
        cmd: "{{CMD}}"
        resource-set: main
        env: {VERSION: "{{VERSION}}"}
        readiness-check: {cmd: "test -d data", interval: 2, timeout: 5}
      backup:
        goal: ONCE
        cmd: "test -n \\"$LABEL\\" && sleep 0.5"
        resource-set: side
        env: {VERSION: "{{VERSION}}"}
  api:
    count: {{API_COUNT}}
    allow-decommission: true
    tasks:
      server:
        {goal: RUNNING, cmd: "{{CMD}}", cpus: {{CPUS}}, memory: 32, env: {VERSION: "{{VERSION}}"}}
plans:
  deploy:
    strategy: serial
    phases:
      web: {strategy: {name: max-parallel, limit: 2}, pod: web, steps: [default: [[server]]]}
      api: {strategy: parallel, pod: api}
  backup:
    strategy: serial
    parameters: [{name: LABEL, required: true}]
    phases:
      web: {strategy: parallel, pod: web, steps: [default: [[backup]]]}
"""

_BETA = """
name: {{NAME}}
pods:
  node:
    count: {{NODE_COUNT}}
    allow-decommission: true
    tasks:
      main:
        goal: RUNNING
        cmd: "{{CMD}}"
        cpus: {{CPUS}}
        memory: 32
        env: {VERSION: "{{VERSION}}"}
      aux:
        goal: RUNNING
        essential: false
        cmd: "trap '' TERM; while true; do sleep 1; done"
        cpus: 0.1
        memory: 32
        kill-grace-period: 1
        env: {VERSION: "{{VERSION}}"}
plans:
  deploy:
    strategy: serial
    phases:
      node: {strategy: serial-canary, pod: node}
"""

_GAMMA = """
name: {{NAME}}
pods:
  box:
    count: {{BOX_COUNT}}
    resource-sets:
      main: {cpus: {{CPUS}}, memory: 32, volume: {path: data, type: ROOT, size: {{DISK}}}}
    tasks:
      prepare:
        goal: FINISH
        cmd: "sleep 0.2"
        resource-set: main
        env: {VERSION: "{{VERSION}}"}
      server:
        goal: RUNNING
        cmd: "{{CMD}}"
        resource-set: main
        env: {VERSION: "{{VERSION}}"}
plans:
  deploy:
    strategy: parallel
    phases:
      box: {strategy: parallel, pod: box, steps: [default: [[prepare], [server]]]}
"""

KINDS = (
    Kind(
        "alpha",
        _ALPHA,
        limits={"web": (1, 4), "api": (1, 3)},
        tasks={"web": ("server",), "api": ("server",)},
        beside={"web": 0.1},
        plan="backup",
    ),
    Kind(
        "beta",
        _BETA,
        limits={"node": (1, 4)},
        tasks={"node": ("main", "aux")},
        beside={"node": 0.1},
        recovery=RecoveryPolicy(
            permanent_failure_timeout=timedelta(seconds=15), min_replace_delay=timedelta(seconds=1)
        ),
    ),
    Kind(
        "gamma",
        _GAMMA,
        limits={"box": (1, 3)},
        tasks={"box": ("server",)},
        jobs={"box": ("prepare",)},
        shrinks=False,
        restless=True,
    ),
)


def first(kind: Kind) -> Wanted:
    """What the service is installed with."""
    return Wanted(1, {pod: low + 1 for pod, (low, _) in kind.limits.items()})


def changed(kind: Kind, before: Wanted, version: int, chance: Random) -> Wanted:
    """Another configuration that the service has to take."""
    after = replace(before, version=version, crashing=False)
    what = chance.choices(("count", "cpus", "env", "crash", "harm"), (5, 2, 2, 1, 2))[0]
    match what:
        case "count":
            pod = chance.choice(sorted(kind.limits))
            low, high = kind.limits[pod]
            low = low if kind.shrinks else before.counts[pod]
            count = chance.randint(low, high)
            version = version if chance.random() < 0.3 else before.version
            return replace(after, version=version, counts={**before.counts, pod: count})
        case "cpus":
            return replace(after, cpus=chance.choice((0.1, 0.15, 0.2)))
        case "crash":
            return replace(after, crashing=True)
        case "harm":
            return replace(after, hostile=not before.hostile)
        case _:
            return after


def mended(wanted: Wanted, version: int) -> Wanted:
    """A configuration like it that works, and differs in every pod."""
    return replace(wanted, version=version, crashing=False)


def refused(kind: Kind, before: Wanted, version: int, chance: Random) -> Wanted | None:
    """Another configuration that the service must not take."""
    wrong = replace(before, version=version)
    if not kind.shrinks:
        pod = chance.choice(sorted(kind.limits))
        count = before.counts[pod] - 1
        return replace(wrong, counts={**before.counts, pod: count}) if count > 0 else None
    return replace(wrong, disk=before.disk + 16) if "{{DISK}}" in kind.text else None
