"""What `plimsoll plan` says of promises: in the table, in words, as JSON and on the page."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from plimsoll.domain.placement import Layout, LoadLine
from plimsoll.domain.reports import Score, WorkloadScore
from plimsoll.domain.spot import CapacityPool, HeldPool
from plimsoll_cli.plan.load_lines import _kept_percent, _minutes
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.shop import a_deployment, a_promised_shop, a_shop

WEB = "Deployment shop/web"
PLAN = ("plan", "--cluster", "harbor")


PAGE = Path(__file__).parents[4] / "docs" / "guides" / "load-line.md"


def shown_on_the_page(command: str) -> list[str]:
    block = PAGE.read_text().partition(f"$ plimsoll {command}\n")[2].partition("\n```")[0]
    return [line for line in block.splitlines() if line != "..."]


def test_the_page_shows_what_the_command_prints_of_the_arithmetic():
    command = "plan --cluster harbor --explain shop/web"
    said = [line.rstrip() for line in run(a_promised_shop(), *command.split()).stdout.splitlines()]
    shown = shown_on_the_page(command)
    assert len(shown) > 5
    assert [line for line in said if line in shown] == shown


@pytest.fixture
def environment() -> MemoryEnvironment:
    return a_shop()


def promise(environment: MemoryEnvironment, name: str, text: str) -> None:
    environment.transports["harbor"].call(
        "PATCH",
        f"/apis/apps/v1/namespaces/shop/deployments/{name}",
        body={"metadata": {"annotations": {"plimsoll.dev/keep-ready": text}}},
        content_type="application/merge-patch+json",
    )


def lines(environment: MemoryEnvironment, *words: str) -> list[dict[str, Any]]:
    result = run(environment, "plan", *words, "--output", "json")
    found: list[dict[str, Any]] = json.loads(result.stdout)["lines"]
    return found


def words_of(environment: MemoryEnvironment, *words: str) -> str:
    return " ".join(run(environment, *words).stdout.split())


def rows(environment: MemoryEnvironment, *words: str) -> list[str]:
    said = run(environment, *PLAN, *words).stdout
    return [" ".join(row.split()) for row in said.splitlines() if row.startswith("Deployment ")]


def test_where_nothing_is_promised_the_plan_is_as_it_was(environment):
    said = run(environment, *PLAN).stdout
    assert "KEPT " not in said.replace("KEPT BY", "")
    assert lines(environment, "--cluster", "harbor") == []


def test_line_and_kept_stand_beside_the_floor_of_those_of_which_something_is_promised(environment):
    promise(environment, "web", "60%")
    cart, web = rows(environment)
    assert web.startswith("Deployment shop/web 3 of 9 60% 99.9")
    assert cart.startswith("Deployment shop/cart 1 of 4 1 ")


def test_one_without_a_floor_has_a_row_for_its_promise(environment):
    promise(environment, "search", "2, 90%")
    search = next(row for row in rows(environment) if "shop/search" in row)
    assert search.startswith("Deployment shop/search none 2 9")
    assert {each["workload"] for each in lines(environment, "--cluster", "harbor")} == {
        "Deployment shop/search"
    }


def test_what_if_promises_the_same_of_all_others(environment):
    promise(environment, "web", "60%, 99%")
    found = lines(environment, "--cluster", "harbor", "--keep-ready", "50%")
    assert {each["workload"]: each["promised"]["ready"] for each in found} == {
        WEB: "60%",
        "Deployment shop/cart": "50%",
        "Deployment shop/search": "50%",
    }
    for each in found:
        assert each["layouts"][-1]["layout"] == "on-demand"
        assert each["kept"]
        assert each["line"] in each["layouts"]


def test_what_no_layout_keeps_is_said(environment):
    promise(environment, "cart", "5")
    assert "5 0 % on-demand (not enough)" in rows(environment)[0]
    words = (*PLAN, "--explain", "shop/cart")
    assert "no layout keeps what is promised of 4 replicas" in words_of(environment, *words)


def test_the_arithmetic_of_one_workload_in_words(environment):
    said = words_of(environment, *PLAN, "--keep-ready", "60%, 99%", "--explain", "shop/search")
    for part in (
        "shop/search keeps 4 of 6 Ready for",
        "in 19 of 20 months at most",
        "(promised: 99 %, 438 min)",
        "not yet scored: compared for 0 of 30 days",
        "a lost pod is missing for",
        "c5 has a pool that was not seen before: 0.5000 reclaims an hour",
        "may be missing: ",
        "with all spot gone at once",
        "Without a floor it would be",
        "the cheapest that keeps the promise",
        "100 % of the on-demand price",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("ready", "says"),
    [
        ("9", "the loss of one group breaks the promise"),
        ("5", "no group alone breaks the promise, several within minutes or a loss of all spot do"),
        ("2", "not even a loss of all spot breaks the promise"),
    ],
)
def test_which_losses_break_a_promise_is_said(environment, ready, says):
    promise(environment, "web", ready)
    assert says in words_of(environment, *PLAN, "--explain", "shop/web")


def test_the_score_stands_beside_the_claim_once_there_is_one(environment):
    promise(environment, "web", "60%")
    for month, days in (("2026-01", 11), ("2025-12", 28)):
        environment.reports.put_score(
            Score(
                cluster="harbor",
                month=month,
                at=environment.clock.now(),
                judged=timedelta(days=days),
                workloads={
                    WEB: WorkloadScore(
                        judged=timedelta(days=days),
                        predicted=timedelta(minutes=days),
                        observed=timedelta(minutes=6),
                        until=environment.clock.now(),
                    )
                },
            )
        )
    said = words_of(environment, *PLAN, "--explain", "shop/web")
    assert "predicted 39 min, came 12 min" in said
    (web,) = lines(environment, "--cluster", "harbor")
    assert web["score"] == "predicted 39 min, came 12 min"
    (web,) = lines(environment, "--context", "harbor")
    assert web["score"] == "not yet scored: no stack compares it with what comes"


def test_the_page_shows_promises_and_what_they_follow_from(environment, tmp_path):
    promise(environment, "web", "60%")
    page = tmp_path / "plan.html"
    assert run(environment, *PLAN, "--html", str(page)).exit_code == 0
    drawn = Path(page).read_text()
    assert "shop/web keeps 6 of 9 Ready for" in drawn
    assert "<th" in drawn
    assert "kept</th>" in drawn


def test_one_whose_pods_tell_nothing_is_promised_and_unknown(environment):
    deployment = a_deployment("slow", 3, None, nodeSelector={"none": "such"})
    deployment["metadata"]["annotations"] = {"plimsoll.dev/keep-ready": "60%"}
    environment.transports["harbor"].call(
        "POST", "/apis/apps/v1/namespaces/shop/deployments", body=deployment
    )
    assert any(row.startswith("Deployment shop/slow none 60% unknown") for row in rows(environment))
    assert "nothing is known of it" in words_of(environment, *PLAN, "--explain", "shop/slow")


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
    assert (_minutes(line), _kept_percent(line)) == (minutes, kept)


def test_a_stack_knows_the_pools_and_a_kubeconfig_does_not(environment):
    now = environment.clock.now()
    for kind in ("c5.large", "m5.large"):
        pool = CapacityPool(kind, "us-east-1a", "spot")
        row = HeldPool(pool=pool, since=now.replace(year=2025), hours=240.0, at=now)
        environment.pools.count("us-east-1", None, row)

    def below(*words: str) -> float:
        found = lines(environment, *words, "--keep-ready", "100%")
        web = next(each for each in found if each["workload"] == WEB)
        return float(web["layouts"][0]["below"])

    assert below("--cluster", "harbor") < below("--context", "harbor") / 50


def test_a_bad_promise_and_a_workload_of_which_nothing_is_said_are_refused(environment):
    bad = run(environment, *PLAN, "--keep-ready", "often")
    assert (bad.exit_code, "is no promise" in bad.output) == (2, True)
    none = run(environment, *PLAN, "--keep-ready", "60%", "--explain", "shop/none")
    assert (none.exit_code, "no on-demand floor and no promise" in none.output) == (2, True)


def test_a_promise_that_nobody_understands_is_a_problem_of_the_plan(environment):
    promise(environment, "web", "most")
    result = run(environment, *PLAN)
    said = " ".join(result.stdout.split())
    assert result.exit_code == 1
    assert "problem: Deployment shop/web: the annotation plimsoll.dev/keep-ready: 'most' is" in said


def test_the_snippet_has_the_layout_that_was_chosen_for_a_promise(environment):
    promise(environment, "web", "100%, 100%")
    said = run(environment, "plan", "snippet", "shop/web", "--cluster", "harbor").stdout
    assert "the layout on-demand was chosen for what is promised" in said
    assert "requiredDuringSchedulingIgnoredDuringExecution" in said
