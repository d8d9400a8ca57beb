"""`plimsoll plan --keep-ready`: the line of each Deployment, as a table, in words and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.domain.placement.load_line import LoadLine
from plimsoll.domain.placement.spread_groups import Layout
from plimsoll.domain.spot import CapacityPool, HeldPool
from plimsoll_cli.plan.load_lines import _below, _kept_percent
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.shop import a_shop


@pytest.fixture
def environment() -> MemoryEnvironment:
    return a_shop()


def lines(environment: MemoryEnvironment, *words: str) -> list[dict[str, Any]]:
    result = run(environment, "plan", *words, "--output", "json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)["lines"]
    return found


def test_each_deployment_has_a_line_whether_it_has_a_floor_or_not(environment):
    found = lines(environment, "--cluster", "harbor", "--keep-ready", "50%")
    assert {each["workload"] for each in found} == {
        "Deployment shop/web",
        "Deployment shop/cart",
        "Deployment shop/search",
    }
    for each in found:
        assert each["layouts"][-1]["layout"] == "on-demand"
        assert each["kept"]
        assert each["line"] in each["layouts"]


def test_the_table_follows_the_plan_and_names_what_cannot_be_kept(environment):
    said = run(environment, "plan", "--cluster", "harbor", "--keep-ready", "5").stdout
    assert "WORKLOAD" in said
    assert "LAYOUT" in said
    rows = [" ".join(row.split()) for row in said.splitlines() if " of " in row]
    assert any("shop/cart 5 of 4 (not possible)" in row for row in rows)
    assert any("shop/web 5 of 9" in row and "min a month" in row for row in rows)


def test_the_arithmetic_of_one_workload_in_words(environment):
    words = ("plan", "--cluster", "harbor", "--keep-ready", "60%, 99%", "--explain", "shop/search")
    result = run(environment, *words)
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    for part in (
        "shop/search keeps 4 of 6 Ready for",
        "(promised: 99 %)",
        "a pod is missing for",
        "c5 has a pool that was not seen before: 0.5000 reclaims an hour",
        "with all spot gone at once",
        "100 % of the on-demand price",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("below", "minutes", "kept"),
    [
        (0, "0 min", "100 %"),
        (1e-9, "under 0.01 min", "99.9999 %"),
        (0.0001, "4.4 min", "99.99 %"),
        (0.05, "2,190 min", "95 %"),
        (1, "43,800 min", "0 %"),
    ],
)
def test_what_is_lost_is_never_rounded_to_nothing(below, minutes, kept):
    line = LoadLine(layout=Layout(1, 3), floor=2, largest=3, cost=0.5, below=below)
    assert (_below(line), _kept_percent(line)) == (f"{minutes} a month", kept)


def test_a_stack_knows_the_pools_and_a_kubeconfig_does_not(environment):
    now = environment.clock.now()
    for kind in ("c5.large", "m5.large"):
        pool = CapacityPool(kind, "us-east-1a", "spot")
        row = HeldPool(pool=pool, since=now.replace(year=2025), hours=240.0, at=now)
        environment.pools.count("us-east-1", None, row)

    def below(*words: str) -> float:
        found = lines(environment, *words, "--keep-ready", "100%")
        web = next(each for each in found if each["workload"].endswith("web"))
        return float(web["layouts"][0]["below"])

    assert below("--cluster", "harbor") < below("--context", "harbor") / 50


def test_a_bad_promise_and_a_workload_without_a_line_are_refused(environment):
    bad = run(environment, "plan", "--cluster", "harbor", "--keep-ready", "often")
    assert (bad.exit_code, "is no promise" in bad.output) == (2, True)
    words = ("--keep-ready", "60%", "--explain", "shop/none")
    none = run(environment, "plan", "--cluster", "harbor", *words)
    assert (none.exit_code, "has no load line" in none.output) == (2, True)
