"""The plan of release.yml in Python, made from a list of servers.

python release.py > release.json    writes it as a plan file
"""

from collections.abc import Iterator

from activities.site import Installation, Release, build_site, install_site
from workflows.close_release import CloseRelease

from temporal_plans.sdk import PlanSpec, build

SERVERS = ("a-web1", "a-web2", "b-web1", "b-web2")
RELEASE = Release(version="${VERSION}", root="${ROOT}")


def roll_out() -> Iterator[build.Step]:
    for server in SERVERS:
        installation = Installation(RELEASE.version, RELEASE.root, server=server)
        install = build.activity(install_site, installation, name=f"{server}-install")
        yield install
        yield build.custom(
            "http-check",
            {
                "url": f"${{URL}}/servers/{server}/index.html",
                "expect": "Version ${VERSION}",
                "every": "${EVERY}",
                "within": "${WITHIN}",
            },
            name=f"{server}-check",
            depends_on=[install],
        )


def release_plan() -> PlanSpec:
    return build.plan(
        "release-site",
        build.phase("build", build.activity(build_site, RELEASE, name="build")),
        build.phase(
            "roll-out", *roll_out(), strategy=build.strategy("zone-by-zone", separator="-")
        ),
        build.phase("close", build.workflow(CloseRelease, RELEASE, name="record")),
        description="Brings a version of the site to all servers, zone by zone",
        parameters=[
            build.parameter("VERSION", required=True, pattern=r"[0-9]+(\.[0-9]+)*"),
            build.parameter(
                "ROOT", default="site", description="the folder that the web servers serve"
            ),
            build.parameter(
                "URL", default="http://127.0.0.1:8099", description="the URL of the web servers"
            ),
            build.parameter(
                "EVERY", default="2s", description="interval of the checks of a server"
            ),
            build.parameter(
                "WITHIN",
                default="1m",
                description="how long a server may take to show the version",
            ),
        ],
    )


if __name__ == "__main__":
    print(release_plan().model_dump_json(by_alias=True, indent=2))
