"""``demo --package``: the life of a package in a cluster, told by the commands that people type."""

import asyncio
import re
import shlex
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from pathlib import Path

from rich.text import Text
from temporalio.client import Plugin
from temporalio.runtime import Runtime

from temporal_plans.activities.kubernetes.cluster import Cluster
from temporal_plans.cli.actions.deploying_packages import report_package, report_package_preview
from temporal_plans.cli.actions.packages import verify_package
from temporal_plans.cli.actions.showing import follow_plan, limited, show_service
from temporal_plans.cli.actions.uninstalling import uninstall_service
from temporal_plans.cli.commands.operating import done_text
from temporal_plans.cli.inputs.author import whoami
from temporal_plans.cli.inputs.package_deployment import package_deployment
from temporal_plans.cli.inputs.package_flags import PackageFlags
from temporal_plans.cli.processes.demo_cluster import (
    Identity,
    change_by_hand,
    demo_cluster,
    left_in,
    objects_in,
    own_namespace,
)
from temporal_plans.cli.processes.local_cluster import LocalSettings, local_cluster
from temporal_plans.cli.processes.telling import told_until_stopped, while_running
from temporal_plans.cli.terminal.explaining import diagnosis_lines
from temporal_plans.cli.terminal.object_lines import object_lines
from temporal_plans.cli.terminal.output import print_error, print_line, print_lines
from temporal_plans.cli.terminal.time_line import Event, run_events, time_line
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.packages.package import OPERATOR_FILE
from temporal_plans.domain.plans.commands import Command, Verb
from temporal_plans.messages.owners import UninstallRequest
from temporal_plans.messages.packages import PackageDeployResult

SERVICE = "shop"
PACKAGE, NEWER = "store", "store-1.1.0"
"""Folders of the package and of its next version, in the demo's working folder."""

BACKUP = "before-the-change"
CHAPTERS = 8


@dataclass(frozen=True)
class PackageDemo:
    """``context`` is one of the user's kubeconfig, None for a control plane of our own. ``timeout``
    is for each plan. ``state_dir`` is the folder of all files, which stays with ``keep``."""

    state_dir: Path
    context: str | None
    timeout: timedelta
    keep: bool = False
    plugins: tuple[Plugin, ...] = ()
    runtime: Runtime | None = None


class _Failed(Exception):
    """A command of the story failed; it has said why."""


async def package_demo(settings: PackageDemo, *, proxy: int | None = None) -> int:
    """Tell the story until its end, Ctrl-C, or the end of the proxy (``signal_proxy``); return the
    exit code. Nothing is left in the cluster, whatever happens."""
    return await told_until_stopped(_played(settings), proxy)


async def _played(settings: PackageDemo) -> int:
    """Run everything that the story needs, and remove it afterwards, namespace last: the worker has
    stopped by then, and makes nothing again."""
    work = settings.state_dir / "packages"
    _write_packages(work)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(demo_cluster(settings.context))
        namespace = await stack.enter_async_context(own_namespace(cluster))
        print_line("Starting a Temporal server and a worker that has the cluster's credentials.")
        local = await stack.enter_async_context(
            local_cluster(
                LocalSettings(
                    state_dir=settings.state_dir,
                    agents=0,
                    ui=False,
                    clusters=(cluster.access,),
                    plugins=settings.plugins,
                    runtime=settings.runtime,
                )
            )
        )
        story = _Story(local.client, cluster.api, namespace, work, settings.timeout)
        code = await while_running(story.told(), local.run_until(asyncio.Event()), cluster.ended())
        print_line(f"\nStopping everything, and removing namespace {namespace}.")
    kept = f" State is in {settings.state_dir}." if settings.keep else ""
    print_line(f"Nothing is left running.{kept}")
    return code


def _write_packages(folder: Path) -> None:
    """Write the example package, and its next version with another version of the application."""
    with as_file(files("temporal_plans.cli") / "demo_package") as package:
        shutil.copytree(package, folder / PACKAGE, dirs_exist_ok=True)
        shutil.copytree(package, folder / NEWER, dirs_exist_ok=True)
    operator = folder / NEWER / OPERATOR_FILE
    text = re.sub(r"(?m)^operatorVersion:.*$", 'operatorVersion: "1.1.0"', operator.read_text())
    operator.write_text(re.sub(r"(?m)^appVersion:.*$", 'appVersion: "8.1"', text))


class _Story:
    """The chapters, each with the commands that it prints and executes."""

    def __init__(
        self,
        client: PlansClient,
        cluster: Cluster,
        namespace: str,
        packages: Path,
        timeout: timedelta,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._namespace = namespace
        self._packages = packages
        self._timeout = timeout
        self._chapter = 0
        self._events: list[Event] = []

    async def told(self) -> int:
        """Tell all; return 1 for a story that came to an early end."""
        before = await objects_in(self._cluster, self._namespace)
        try:
            self._verify()
            await self._install()
            await self._change()
            await self._back_up()
            await self._change_by_hand()
            await self._roll_back()
            await self._upgrade()
            await self._uninstall(before)
        except _Failed:
            print_error("the demo has come to an early end; the reason is above")
            return 1
        print_line()
        print_line(Text("What happened", style="bold"))
        print_lines(time_line(self._events))
        return 0

    def _verify(self) -> None:
        self._begin("A package is a folder: verify it")
        self._say("package", "verify", PACKAGE)
        _check(verify_package(str(self._packages / PACKAGE), styles=(), json=False))

    async def _install(self) -> None:
        self._begin("Install it as the service shop")
        where = ("--kube-namespace", self._namespace)
        self._say("deploy", PACKAGE, "-s", SERVICE, *where, "--wait")
        await self._deploy(PACKAGE, PackageFlags(kube_namespace=self._namespace))
        await self._show_objects()

    async def _change(self) -> None:
        self._begin("Change a parameter: first look at what would happen")
        metrics, replicas = ("-p", "METRICS=true"), ("-p", "REPLICAS=4")
        await self._diff(None, metrics)
        await self._diff(None, replicas)
        self._say("deploy", "-s", SERVICE, *replicas, "--wait")
        await self._deploy(None, PackageFlags(param=[replicas[1]]))

    async def _back_up(self) -> None:
        self._begin("Start a plan: a backup, with a parameter for this run only")
        self._say("start", "backup", "-s", SERVICE, "-p", f"BACKUP={BACKUP}", "--wait")
        command = Command(parameters={"BACKUP": BACKUP}, by=whoami())
        outcome = await self._client.command(f"{SERVICE}/backup", Verb.START, command)
        if not outcome.changed:
            print_error(outcome.message)
            raise _Failed
        print_line(done_text("backup", Verb.START, command))
        await self._follow(f"{SERVICE}/backup")

    async def _change_by_hand(self) -> None:
        self._begin("A person scales the store down in the cluster, beside us")
        print_line(
            f"(the demo does what `kubectl edit statefulset {SERVICE}` would: spec.replicas "
            "becomes 1)"
        )
        store = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": SERVICE, "namespace": self._namespace},
        }
        await change_by_hand(self._cluster, store, {"spec": {"replicas": 1}})
        self._note(f"StatefulSet {SERVICE} is scaled down by hand")
        await self._explain()
        await self._show_objects()

    async def _roll_back(self) -> None:
        self._begin("Roll back to the first configuration, which undoes that, too")
        why = "as it was installed"
        self._say("rollback", "1", "-s", SERVICE, "--reason", why, "--wait")
        result = await self._client.rollback_package(SERVICE, "1", by=whoami(), reason=why)
        await self._report(result)
        await self._explain()

    async def _upgrade(self) -> None:
        self._begin("Upgrade to the next version of the package")
        await self._diff(NEWER, ())
        self._say("deploy", NEWER, "-s", SERVICE, "--wait")
        await self._deploy(NEWER, PackageFlags())
        self._say("show", "-s", SERVICE)
        await show_service(self._client, SERVICE, json=False)

    async def _uninstall(self, before: set[Identity]) -> None:
        self._begin("Uninstall it, and what it has stored")
        self._say("uninstall", "-s", SERVICE, "--volumes", "--yes", "--wait")
        request = UninstallRequest(volumes=True, by=whoami())
        plan = f"{SERVICE}/{await self._client.removal_plan(SERVICE)}"
        _check(await uninstall_service(self._client, SERVICE, request, yes=True, wait=False))
        await self._follow(plan)
        await self._client.wait_until_gone(SERVICE)
        history = await self._client.history(SERVICE)
        self._events += run_events(history.runs)
        if left := await left_in(self._cluster, self._namespace, before):
            names = ", ".join(f"{kind} {name}" for kind, name in sorted(left))
            print_error(f"namespace {self._namespace}: {names} are left")
            raise _Failed
        print_line(f"Namespace {self._namespace} is as empty as it was.")
        self._note("nothing is left in the cluster")

    async def _diff(self, package: str | None, options: tuple[str, ...]) -> None:
        self._say("diff", *filter(None, [package]), "-s", SERVICE, *options)
        flags = PackageFlags(param=list(options[1:]))
        source = str(self._packages / package) if package else None
        preview = await self._client.preview_package(package_deployment(source, SERVICE, flags))
        _check(await report_package_preview(self._client, preview, json=False))

    async def _deploy(self, package: str | None, flags: PackageFlags) -> None:
        source = str(self._packages / package) if package else None
        deployment = package_deployment(source, SERVICE, flags, by=whoami())
        await self._report(await self._client.deploy_package(deployment))

    async def _report(self, result: PackageDeployResult) -> None:
        """Print what a change does, and follow its plan to its end."""
        _check(await report_package(self._client, SERVICE, result, wait=False))
        if result.plan:
            await self._follow(result.plan)

    async def _follow(self, plan: str) -> None:
        if await limited(follow_plan(self._client, plan), f"plan {plan}", self._timeout):
            await self._explain()
            raise _Failed

    async def _show_objects(self) -> None:
        self._say("objects", "-s", SERVICE)
        report = await self._client.objects(SERVICE)
        print_lines(object_lines(report))
        if report.problem:
            print_error(report.problem)
            raise _Failed

    async def _explain(self) -> None:
        self._say("explain", "-s", SERVICE)
        print_lines(diagnosis_lines(await self._client.explain_service(SERVICE)))

    def _begin(self, title: str) -> None:
        self._chapter += 1
        print_line()
        print_line(Text(f"[{self._chapter}/{CHAPTERS}] {title}", style="bold"))

    def _say(self, *words: str) -> None:
        print_line()
        print_line(Text(f"$ {shlex.join(('temporal-plan', *words))}", style="cyan"))

    def _note(self, what: str) -> None:
        self._events.append(Event(at=datetime.now(UTC), what=what))


def _check(code: int) -> None:
    if code:
        raise _Failed
