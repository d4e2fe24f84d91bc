"""What is done to a web site. Files stand for servers here: each serves a folder of its own.

Every activity may be tried again after a crash, so each does the same when it is done twice.
"""

import os
import shutil
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from string import Template

from temporalio import activity

TEMPLATES = Path(__file__).parent.parent / "templates"


@dataclass(frozen=True)
class Release:
    """A version of the site, below the folder ``root``."""

    version: str
    root: str = "site"

    @property
    def build(self) -> Path:
        return Path(self.root) / "builds" / self.version


@dataclass(frozen=True)
class Installation(Release):
    """A version on one server."""

    server: str = ""

    @property
    def page(self) -> Path:
        return Path(self.root) / "servers" / self.server / "index.html"


@dataclass(frozen=True)
class Page:
    """What a server answered; status 0 when it did not, and why in ``text``."""

    status: int
    text: str


@activity.defn
def build_site(release: Release) -> None:
    release.build.mkdir(parents=True, exist_ok=True)
    template = Template((TEMPLATES / "index.html").read_text())
    (release.build / "index.html").write_text(template.substitute(version=release.version))


@activity.defn
def install_site(installation: Installation) -> None:
    """Nobody sees half a page: the new one takes the place of the old one in one go."""
    page = installation.page
    page.parent.mkdir(parents=True, exist_ok=True)
    new = page.with_suffix(".new")
    shutil.copyfile(installation.build / "index.html", new)
    os.replace(new, page)


@activity.defn
def fetch_page(url: str) -> Page:
    """A server that does not answer is an answer too: what to make of it is the caller's."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return Page(response.status, response.read().decode(errors="replace"))
    except urllib.error.HTTPError as error:
        return Page(error.code, error.reason)
    except OSError as error:
        return Page(0, str(error))


@activity.defn
def record_release(release: Release) -> None:
    record = Path(release.root) / "releases.txt"
    known = record.read_text().splitlines() if record.exists() else []
    if release.version not in known:
        record.write_text("\n".join([*known, release.version]) + "\n")


@activity.defn
def prune_builds(release: Release, keep: int) -> list[str]:
    """Removes all builds but those of the last releases; the versions that it removed."""
    record = Path(release.root) / "releases.txt"
    kept = record.read_text().splitlines()[-keep:]
    builds = [path for path in release.build.parent.iterdir() if path.name not in kept]
    for path in builds:
        shutil.rmtree(path)
    return sorted(path.name for path in builds)
