from acceptance.cluster import Cluster, ROOT


async def test_x(cluster: Cluster):
    print(
        await cluster.plan(
            "deploy",
            str(ROOT / "examples/hello-world/svc.yml"),
            "--env-file",
            str(ROOT / "examples/hello-world/hello-world.env"),
            "--wait",
            code=None,
        )
    )
    print(await cluster.plan("tasks"))
    print(await cluster.plan("agents"))
    print(cluster.running())
    await cluster.tear_down("hello-world")
    print(await cluster.plan("agents"))
    assert 0
