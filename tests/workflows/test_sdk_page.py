"""The test that docs/sdk.md prints runs: its strategy and its step kind work on a real server."""

from pathlib import Path

from documents import carried_out

SDK_PAGE = Path(__file__).parents[2] / "docs" / "sdk.md"


async def test_the_release_of_the_page() -> None:
    await carried_out(SDK_PAGE)["test_a_release"]()


async def test_the_replay_of_the_page(tmp_path: Path) -> None:
    await carried_out(SDK_PAGE)["test_the_code_replays_what_runs"](tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 3
