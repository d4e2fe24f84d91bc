"""The work of command steps."""

from temporal_plans.domain.kinds.command import CommandWork


def test_a_zero_byte_is_a_fault_of_the_field() -> None:
    work = CommandWork(cmd="echo \0", env={"A": "1", "B": "\0", "C\0": "1"}, uris=("/a", "\0"))
    assert [fault.field for fault in work.faults("steps.s")] == [
        "steps.s.cmd",
        "steps.s.env.B",
        "steps.s.env.C\0",
        "steps.s.uris.1",
    ]
