"""Activities for a web site. Folders stand for servers here: each server serves its own folder.

Every activity may be retried after a crash, so each is idempotent.
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
    """The answer of a server. Without an answer: status 0, and the reason in ``text``."""

    status: int
    text: str


@activity.defn
def build_site(release: Release) -> None:
    release.build.mkdir(parents=True, exist_ok=True)
    template = Template((TEMPLATES / "index.html").read_text())
    (release.build / "index.html").write_text(template.substitute(version=release.version))


@activity.defn
def install_site(installation: Installation) -> None:
    """Replace the page in one step, so that no reader gets half a page."""
    page = installation.page
    page.parent.mkdir(parents=True, exist_ok=True)
    new = page.with_suffix(".new")
    shutil.copyfile(installation.build / "index.html", new)
    os.replace(new, page)


@activity.defn
def fetch_page(url: str) -> Page:
    """Fetch a page. A server without an answer is a result, too; the caller decides."""
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
    """Remove all builds except those of the last ``keep`` releases; return the removed versions."""
    record = Path(release.root) / "releases.txt"
    kept = record.read_text().splitlines()[-keep:]
    builds = [path for path in release.build.parent.iterdir() if path.name not in kept]
    for path in builds:
        shutil.rmtree(path)
    return sorted(path.name for path in builds)
