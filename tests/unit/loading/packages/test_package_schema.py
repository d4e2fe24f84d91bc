"""The JSON Schema of package files."""

from temporal_plans.loading.packages.schema import package_schema


def test_keys_of_plans_may_be_written_in_both_ways() -> None:
    keys = package_schema()["$defs"]["PackagePlan"]["properties"]
    assert keys["conflictsWith"] == keys["conflicts-with"]
    assert {"const": "*"} in keys["conflictsWith"]["anyOf"]
    assert keys["onError"] == keys["on-error"]
    assert keys["onError"]["enum"] == ["continue", "stop"]
    assert keys["strategy"]["type"] == ["string", "object"]
