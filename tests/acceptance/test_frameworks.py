"""Service files as existing frameworks have them deploy with their packages' own values.

Their programs are stand-ins: shell scripts in the place of what an archive would bring. The service
file of a database comes from the corpus, which is not part of this project: where it is not, that
test is skipped.
"""

import getpass
import io
import os
import resource
import tarfile
import zipfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from acceptance.cluster import ROOT, Cluster
from temporal_plans.activities.agent.host.layout import WorkDir
from temporal_plans.activities.agent.sandbox.rlimits import can_raise_rlimits
from temporal_plans.cli.inputs.deployment import deployment
from temporal_plans.cli.inputs.files import ServiceFileOptions
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status

EXAMPLES = ROOT / "examples" / "frameworks"
CORPUS = ROOT.parent / "shared" / "corpus" / "dcos"

Deployed = Callable[..., AbstractAsyncContextManager[None]]


@pytest.fixture
def deployed(cluster: Cluster) -> Deployed:
    """``async with deployed(service, file, values, NAME=value)``: COMPLETE; torn down afterwards.

    As ``temporal plan deploy`` does it, in this process: the command has tests of its own.
    """

    @asynccontextmanager
    async def deploying(
        service: str, file: Path, values: Path, **more: object
    ) -> AsyncGenerator[None]:
        if os.geteuid() != 0:
            more["SERVICE_USER"] = getpass.getuser()
        given = [f"{name}={text}" for name, text in more.items()]
        options = ServiceFileOptions(file, given, [values])
        try:
            result = await (await cluster.client()).deploy(deployment(options, by="test"))
            assert not result.outcome.refused, result
            await cluster.until_status(f"{service}/deploy", Status.COMPLETE)
            yield
        finally:
            await cluster.tear_down(service)

    return deploying


async def sandbox_of(cluster: Cluster, service: str, task: str) -> Path:
    """The sandbox of the newest launch of a task."""
    records = await (await cluster.client()).tasks(service)
    [record] = [record for record in records if record.name == task]
    return WorkDir(cluster.work_dir(record.agent)).task(record.task_id).sandbox


@pytest.mark.long
async def test_a_file_store(cluster: Cluster, deployed: Deployed) -> None:
    folder = EXAMPLES / "filestore"
    async with deployed("filestore", folder / "svc.yml", folder / "filestore.env"):
        await cluster.until_running(
            [
                *("data-0-node", "data-1-node", "journal-0-node", "journal-1-node"),
                *("journal-2-node", "name-0-monitor", "name-0-node"),
                *("name-1-monitor", "name-1-node"),
            ]
        )
        journal = await sandbox_of(cluster, "filestore", "journal-1-node")
        site = (journal / "conf/site.xml").read_text()
        assert "<name>quorum.root</name><value></value>" in site
        assert f"<value>{journal}/journal-data</value>" in site
        assert "<name>replication</name><value>2</value>" in site
        assert "transport" not in site
        noted = (journal / "stderr").read_text()
        assert "wrote conf/site.xml; no value for SERVICE_ZK_ROOT: empty text" in noted
        assert "wrote conf/metrics.properties; no value for STATSD_UDP_PORT: empty text" in noted

        first = await sandbox_of(cluster, "filestore", "name-0-node")
        assert (first / "name-data/version").read_text() == "formatted name-0-format\n"
        assert "<name>role</name><value>first</value>" in (first / "conf/site.xml").read_text()
        monitor = await sandbox_of(cluster, "filestore", "name-1-monitor")
        assert (monitor / "stdout").read_text() == "watch=name-1-monitor\nroot=\ncluster=\n"

        await cluster.command("filestore/check", Verb.START, DEPTH="full")
        await cluster.until_status("filestore/check", Status.COMPLETE)
        check = await sandbox_of(cluster, "filestore", "data-1-check")
        assert (check / "stdout").read_text().startswith("full check of data-1-check at ")


async def test_brokers(cluster: Cluster, deployed: Deployed) -> None:
    folder = EXAMPLES / "broker"
    async with deployed("broker", folder / "svc.yml", folder / "broker.env"):
        await cluster.until_running(
            ["broker-0-server", "broker-1-server", "broker-2-server", "registry-0-server"]
        )
        broker = await sandbox_of(cluster, "broker", "broker-2-server")
        lines = (broker / "config/server.properties").read_text().splitlines()
        assert {"broker.id=2", "quorum.connect=quorum.example.org:2181", "metrics=:"} <= {*lines}
        assert "protocol=PLAINTEXT" in lines
        assert "password=" not in "".join(lines)
        assert (broker / "config/security.conf").read_text() == ""
        noted = (broker / "bootstrap.log").read_text()
        assert "no value for ZONE, STATSD_UDP_HOST, STATSD_UDP_PORT: empty text" in noted
        registry = await sandbox_of(cluster, "broker", "registry-0-server")
        assert "heap: 16\n" in (registry / "config/registry.yml").read_text()

        await cluster.command("broker/rebalance", Verb.START, TOPIC="orders")
        await cluster.until_status("broker/rebalance", Status.COMPLETE)
        moved = "moved orders using connect=quorum.example.org:2181\n"
        assert (broker / "broker-log/moves").read_text() == moved


# --- a database from the corpus -------------------------------------------------------------------

DATABASE = "apache-cassandra-3.11.6"
RUNS = "exec sleep 100000\n"
PROGRAMS = {
    "java.tar.gz": {"jdk11/bin/java": "exit 1\n"},
    "openssl.tar.gz": {"openssl-dist/libssl.so": ""},
    "python.tar.gz": {
        "python-dist/bin/python": "echo Python 2.7.18\n",
        "python-dist/bin/aws": 'echo "aws $*"\n',
    },
    "database.tar.gz": {
        f"{DATABASE}/bin/cassandra": f"""
set -e
cd "$(dirname "$0")/../conf"
grep -q '^listen_address: ..*' cassandra.yaml
grep -q 'JMX_PORT="7199"' cassandra-env.sh
test -s jvm.options -a -s cassandra-rackdc.properties
touch ../up
{RUNS}""",
        f"{DATABASE}/bin/nodetool": """
cd "$(dirname "$0")/.."
case "$1" in
status) test -e up && echo "UN  $MESOS_CONTAINER_IP  100 KiB  256" ;;
*) echo "nodetool $*" ;;
esac
""",
        f"{DATABASE}/bin/cqlsh": 'echo "cqlsh $*"\n',
        f"{DATABASE}/conf/cassandra-env.sh": 'JMX_PORT="7000"\n',
    },
    "bootstrap.zip": {"bootstrap": "\x7fELF waits for a name that no DNS server has"},
}
TEMPLATES = {
    "cassandra.yaml": """\
cluster_name: '{{CASSANDRA_CLUSTER_NAME}}'
num_tokens: {{CASSANDRA_NUM_TOKENS}}
listen_address: {{MESOS_CONTAINER_IP}}
seeds: "{{LOCAL_SEEDS}}{{#REMOTE_SEEDS}},{{REMOTE_SEEDS}}{{/REMOTE_SEEDS}}"
authenticator: {{CASSANDRA_AUTHENTICATOR}}
key_cache_size_in_mb: {{CASSANDRA_KEY_CACHE_SIZE_IN_MB}}
java: {{JAVA_HOME}}
""",
    "jvm_CMS.options": "-Xms{{CASSANDRA_HEAP_SIZE_MB}}M\n",
    "metrics-reporter-config.yaml": "host: {{STATSD_UDP_HOST}}\nport: {{STATSD_UDP_PORT}}\n",
    "cassandra-rackdc.properties": "dc={{CASSANDRA_LOCATION_DATA_CENTER}}\nrack={{ZONE}}\n",
    "cqlshrc": "[connection]\nhostname = {{FRAMEWORK_HOST}}\n",
}


def archive(name: str) -> bytes:
    data = io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(data, "w") as packed:
            for path, text in PROGRAMS[name].items():
                packed.writestr(path, text)
        return data.getvalue()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for path, text in PROGRAMS[name].items():
            content = (f"#!/bin/sh\n{text}" if "/bin/" in path else text).encode()
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    return data.getvalue()


class Archives(BaseHTTPRequestHandler):
    """A server of the archives."""

    def do_GET(self) -> None:
        data = archive(self.path.lstrip("/"))
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def archives() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Archives)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the service files of ../shared/corpus/dcos are not here"
)
async def test_a_database_of_the_corpus(
    cluster: Cluster, deployed: Deployed, archives: str, tmp_path: Path
) -> None:
    file = tmp_path / "svc.yml"
    file.write_text((CORPUS / "cassandra-svc.yml").read_text())
    for name, text in TEMPLATES.items():
        (tmp_path / name).write_text(text)
    values: dict[str, object] = {
        "CASSANDRA_JAVA_URI": f"{archives}/java.tar.gz",
        "CASSANDRA_PYTHON_URI": f"{archives}/python.tar.gz",
        "CASSANDRA_OPENSSL_URI": f"{archives}/openssl.tar.gz",
        "CASSANDRA_URI": f"{archives}/database.tar.gz",
        "BOOTSTRAP_URI": f"{archives}/bootstrap.zip",
        "READINESS_CHECK_INTERVAL": 1,
    }
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if not can_raise_rlimits() and 0 <= hard < 128_000:
        values |= {"RLIMIT_NOFILE_SOFT": hard, "RLIMIT_NOFILE_HARD": hard}
    async with deployed("cassandra", file, CORPUS / "cassandra.env", **values):
        await cluster.until_running([f"node-{index}-server" for index in range(3)])
        server = await sandbox_of(cluster, "cassandra", "node-2-server")
        conf = (server / DATABASE / "conf/cassandra.yaml").read_text()
        assert "cluster_name: 'cassandra'\nnum_tokens: 256\n" in conf
        assert 'seeds: ""\nauthenticator: AllowAllAuthenticator\nkey_cache_size_in_mb: \n' in conf
        assert f"java: {server}/jdk11/\n" in conf, "the command exported it"
        assert (server / "bootstrap.fetched").exists()
        keyspaces = await sandbox_of(cluster, "cassandra", "node-0-init_system_keyspaces")
        assert (keyspaces / "stdout").read_text().count("alter keyspace") == 3
        assert (keyspaces / DATABASE / "conf/cqlshrc").read_text() == "[connection]\nhostname = \n"

        for plan in ("repair", "cleanup"):
            await cluster.command(f"cassandra/{plan}", Verb.START, CASSANDRA_KEYSPACE="k")
            await cluster.until_status(f"cassandra/{plan}", Status.COMPLETE)
        repair = await sandbox_of(cluster, "cassandra", "node-1-repair")
        assert (repair / "stdout").read_text() == "nodetool repair -pr -p 7199 -- k\n"
        backup = {"SNAPSHOT_NAME": "s1", "CASSANDRA_KEYSPACES": "k", "S3_BUCKET_NAME": "b"}
        await cluster.command("cassandra/backup-s3", Verb.START, **backup)
        await cluster.until_status("cassandra/backup-s3", Status.COMPLETE)
        upload = await sandbox_of(cluster, "cassandra", "node-2-upload-s3")
        assert "s3://b/s1/node-2/ --recursive" in (upload / "stdout").read_text()
