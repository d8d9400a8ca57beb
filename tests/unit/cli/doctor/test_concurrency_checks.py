"""`plimsoll doctor` and Lambda's concurrency: no other function of the account keeps a notice waiting."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll_cli.doctor.concurrency_checks import LEAST_UNRESERVED
from plimsoll_cli.stack import RESERVES
from tests.package.template import functions, template
from tests.support.cli_environment import MemoryEnvironment, an_environment, run

QUOTA_CODE = "aws service-quotas request-service-quota-increase --service-code lambda"


def an_account(
    quota: int, size: str = "usual", *, reserved: bool = False, by_others: int = 0
) -> MemoryEnvironment:
    """Return an account with a stack of a size, with all of its reserves or none."""
    environment, _ = an_environment()
    environment.quota, environment.reserved_by_others = quota, by_others
    environment.parameters["Size"] = size
    wanted = RESERVES[size]
    environment.reserved.clear()
    environment.reserved.update(wanted if reserved else dict.fromkeys(wanted))
    return environment


def finding(environment: MemoryEnvironment, *args: str) -> dict[str, Any]:
    result = run(environment, "doctor", "--cluster", "harbor", "--output", "json", *args)
    (found,) = (f for f in json.loads(result.stdout)["findings"] if f["check"] == "concurrency")
    return dict(found)


def test_the_reserves_are_those_of_the_template():
    for size, said in template()["Mappings"]["Concurrency"].items():
        for name, function in functions().items():
            reserve = function["Properties"]["ReservedConcurrentExecutions"]["Fn::If"][1]
            at_once = said[reserve["Fn::FindInMap"][2]] if isinstance(reserve, dict) else reserve
            assert RESERVES[size][name] == at_once, (size, name)
        assert RESERVES[size].keys() == functions().keys()


def test_a_reserve_that_is_there_is_right_and_what_is_left_is_said():
    found = finding(an_account(1000, reserved=True))
    assert found["state"] == "ok"
    assert "32 of 1000" in found["says"]
    assert "968 are left" in found["says"]


def test_a_reserve_that_fits_and_is_not_there_must_be_set():
    found = finding(an_account(1000))
    assert found["state"] == "fail"
    assert "968 would be left" in found["says"]
    assert "plimsoll doctor --cluster harbor --fix reserve --stack plimsoll" in found["cure"]
    assert "ReserveConcurrency=true" in found["cure"]


@pytest.mark.parametrize(
    ("quota", "size", "by_others", "state", "cure"),
    [
        (10, "usual", 0, "fail", "a smaller Size"),
        (10, "small", 0, "info", "--desired-value 1000"),
        (131, "usual", 0, "info", "--desired-value 1000"),
        (1000, "usual", 900, "info", "--desired-value 1032"),
    ],
    ids=["it cannot even start all", "a new account", "one too few", "others reserve the most"],
)
def test_where_no_reserve_fits_the_quota_to_ask_for_is_named(
    quota: int, size: str, by_others: int, state: str, cure: str
):
    found = finding(an_account(quota, size, by_others=by_others))
    assert found["state"] == state
    assert cure in found["cure"]
    assert QUOTA_CODE in found["cure"]


def test_a_reserve_below_what_the_queue_may_start_must_be_raised():
    environment = an_account(1000, reserved=True)
    environment.reserved["NoticesFunction"] = 3
    found = finding(environment)
    assert found["state"] == "fail"
    assert "notices share" in found["says"]
    assert finding(environment, "--fix", "reserve")["state"] == "ok"


@pytest.mark.parametrize("size", RESERVES)
def test_the_reserve_is_set_where_it_fits(size: str):
    environment = an_account(1000, size)
    assert finding(environment, "--fix", "reserve")["state"] == "ok"
    assert environment.reserved == RESERVES[size]


@pytest.mark.parametrize("quota", [10, 131])
def test_nothing_is_set_where_the_reserve_does_not_fit(quota: int):
    environment = an_account(quota)
    result = run(environment, "doctor", "--cluster", "harbor", "--fix", "reserve")
    assert result.exit_code == 2
    assert f"Lambda keeps {LEAST_UNRESERVED}" in result.output
    assert QUOTA_CODE in result.output
    assert set(environment.reserved.values()) == {None}
