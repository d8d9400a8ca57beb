"""`plimsoll reports promises`: what was predicted and what came, by month, once it was compared for 30 days."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from plimsoll.domain.reports import Score, WorkloadScore
from tests.support.builders import NOON
from tests.support.cli_environment import MemoryEnvironment, a_cluster, run

WEB = "Deployment shop/web"


@pytest.fixture
def environment() -> MemoryEnvironment:
    found = MemoryEnvironment()
    found.registry.add(a_cluster())
    found.registry.add(a_cluster("quay"))
    return found


def keep(
    environment: MemoryEnvironment,
    month: str,
    days: float,
    *,
    cluster: str = "harbor",
    minutes: tuple[float, float] = (31, 12),
    **how: int,
) -> None:
    predicted, came = (timedelta(minutes=each) for each in minutes)
    web = WorkloadScore(judged=timedelta(days=days), predicted=predicted, observed=came, until=NOON)
    score = Score(
        cluster=cluster,
        month=month,
        at=NOON,
        judged=timedelta(days=days),
        workloads={WEB: web},
        **how,
    )
    environment.reports.put_score(score)


def rows(environment: MemoryEnvironment, *words: str) -> list[str]:
    result = run(environment, "reports", "promises", *words)
    assert result.exit_code == 0, result.output
    return [" ".join(row.split()) for row in result.stdout.splitlines()[1:]]


def test_a_month_is_scored_once_thirty_days_were_compared(environment):
    keep(environment, "2025-12", 28.5)
    keep(environment, "2026-01", 2)
    keep(environment, "2026-01", 3, cluster="quay")
    assert rows(environment) == [
        "harbor 2026-01 all 2.0 days predicted 31 min, came 12 min",
        "harbor 2025-12 all 28.5 days not yet scored: compared for 28 of 30 days",
        "quay 2026-01 all 3.0 days not yet scored: compared for 3 of 30 days",
    ]


def test_the_page_shows_exactly_what_the_command_prints(environment):
    keep(environment, "2025-12", 31, minutes=(6.6, 4.2))
    keep(environment, "2026-01", 1.5, minutes=(0.3, 0))
    said = run(environment, "reports", "promises").stdout
    shown = "\n".join(line.rstrip() for line in said.splitlines())
    page = Path(__file__).parents[4] / "docs" / "guides" / "load-line.md"
    assert f"$ plimsoll reports promises\n{shown}\n```" in page.read_text()


def test_of_one_cluster_each_workload_is_shown_and_how_many_are_left_out(environment):
    keep(environment, "2026-01", 30, left_out=4)
    assert rows(environment, "--cluster", "harbor") == [
        "harbor 2026-01 all 30.0 days predicted 31 min, came 12 min",
        "Deployment shop/web 30.0 days predicted 31 min, came 12 min",
        "4 more - too many to be scored",
    ]


def test_json_holds_seconds(environment):
    keep(environment, "2026-01", 30)
    said = run(environment, "reports", "promises", "--output", "json").stdout
    (january,) = json.loads(said)["promises"]
    assert (january["month"], january["score"]) == ("2026-01", "predicted 31 min, came 12 min")
    assert january["workloads"] == [
        {
            "workload": WEB,
            "compared_seconds": 2_592_000.0,
            "predicted_seconds": 1860.0,
            "observed_seconds": 720.0,
        }
    ]


def test_where_nothing_was_compared_it_says_how_to_begin(environment):
    said = run(environment, "reports", "promises").output
    assert "plimsoll.dev/keep-ready" in said
    unknown = run(environment, "reports", "promises", "--cluster", "none")
    assert unknown.exit_code == 2
