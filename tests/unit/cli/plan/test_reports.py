"""`plimsoll reports`: what interruptions cost."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from itertools import chain

from plimsoll.domain.drain import added_entry
from plimsoll.domain.placement import report_of
from plimsoll.domain.reports import Reason, Report
from tests.support.builders import NOON, a_group
from tests.support.cli_environment import SPOT, MemoryEnvironment, a_cluster, run

AGAIN = "i-0aaaaaaaaaaaaaaaa"


def a_report(instance: str = SPOT, minute: int = 0, cluster: str = "harbor") -> Report:
    noticed = NOON + timedelta(minutes=minute)
    return Report(
        interruption=f"{instance}@{minute}",
        cluster=cluster,
        node=f"node-{minute}",
        kind="spot-interruption",
        noticed=noticed,
        deadline=noticed + timedelta(seconds=118),
        cordoned=noticed + timedelta(seconds=1.5),
        capacity_asked=noticed + timedelta(seconds=3),
        replaced=noticed + timedelta(seconds=61),
        emptied=noticed + timedelta(seconds=80),
        lowest_ready={"Deployment default/web": 2},
        killed=("default/late",),
        reasons=(
            Reason(why="cordoned: spot reclaims it"),
            Reason(why="grown: headroom for 2 pods"),
        ),
    )


def an_environment(*found: Report) -> MemoryEnvironment:
    environment = MemoryEnvironment()
    for name in ("harbor", "quay"):
        environment.registry.add(a_cluster(name))
    for report in found:
        environment.reports.merge(report)
    return environment


def test_a_row_says_how_long_each_step_took_after_the_notice():
    result = run(an_environment(a_report()), "reports")
    assert result.exit_code == 0
    row = next(line for line in result.stdout.splitlines() if SPOT in line)
    assert "1.5 s 3 s 61 s 80 s - Deployment default/web: 2 1" in " ".join(row.split())


def test_the_newest_of_all_clusters_come_first_and_the_limit_is_for_all():
    environment = an_environment(a_report(), a_report(minute=2, cluster="quay"), a_report(minute=1))
    said = json.loads(run(environment, "reports", "--limit", "2", "--output", "json").stdout)
    assert [r["cluster"] for r in said["reports"]] == ["quay", "harbor"]
    assert [r["node"] for r in said["reports"]] == ["node-2", "node-1"]


def test_one_cluster_is_chosen_by_name():
    environment = an_environment(a_report(), a_report(minute=2, cluster="quay"))
    said = json.loads(run(environment, "reports", "--cluster", "harbor", "--output", "json").stdout)
    (one,) = said["reports"]
    assert one["seconds_after_notice"] == {
        "cordoned": 1.5,
        "capacity_asked": 3.0,
        "replaced": 61.0,
        "emptied": 80.0,
        "gone": None,
    }
    assert one["killed"] == ["default/late"]


def test_a_cluster_that_is_not_registered_is_refused():
    assert run(an_environment(), "reports", "--cluster", "nowhere").exit_code == 2


def test_no_report_is_an_answer_too():
    result = run(an_environment(), "reports")
    assert result.exit_code == 0
    assert "no report yet" in result.stdout
    assert json.loads(run(an_environment(), "reports", "--output", "json").stdout) == {
        "reports": []
    }


def test_an_empty_stack_says_what_to_do():
    assert "plimsoll clusters add" in run(MemoryEnvironment(), "reports").stderr


def test_shows_every_reason_of_one_interruption():
    environment = an_environment(a_report(), a_report(AGAIN, minute=1))
    result = run(environment, "reports", "show", SPOT)
    assert result.exit_code == 0
    assert "- cordoned: spot reclaims it" in result.stdout
    assert "- grown: headroom for 2 pods" in result.stdout
    assert "default/late" in result.stdout
    assert AGAIN not in result.stdout


def test_says_how_many_nodes_were_added_to_which_group_or_taken_back():
    workers, spare = a_group("workers"), a_group("spare")
    told = [
        added_entry(workers, 4, NOON, "t1"),
        added_entry(workers, 2, NOON, "t2"),
        added_entry(workers, 2, NOON + timedelta(seconds=5), "t2"),
        added_entry(spare, -1, NOON, "i-1"),
    ]
    report = replace(
        a_report("queues"),
        node="",
        kind="queues",
        added=dict(chain.from_iterable(each.items() for each in told)),
    )
    environment = an_environment(report)
    said = run(environment, "reports", "show", "queues").stdout
    assert said.startswith("queues@0: queues in harbor")
    assert "nodes added   asg/workers: +6" in said
    assert "nodes added   asg/spare: -1" in said
    (one,) = json.loads(run(environment, "reports", "--output", "json").stdout)["reports"]
    assert one["added"] == {"asg/workers": 6, "asg/spare": -1}


def test_an_instance_that_was_reborn_has_a_report_of_each_life():
    environment = an_environment(a_report(), a_report(minute=1))
    both = json.loads(run(environment, "reports", "show", SPOT, "--output", "json").stdout)
    one = json.loads(run(environment, "reports", "show", f"{SPOT}@1", "--output", "json").stdout)
    assert (len(both["reports"]), len(one["reports"])) == (2, 1)


def test_an_interruption_without_a_report_is_refused_with_the_way_to_the_list():
    result = run(an_environment(), "reports", "show", AGAIN)
    assert result.exit_code == 2
    assert "plimsoll reports" in result.stderr


def test_what_placement_did_stands_in_the_report_of_its_day():
    environment = an_environment(
        a_report(),
        report_of("harbor", ["12:00 label Node od-0: on-demand of 3"], NOON),
        report_of("harbor", ["12:05 label Node od-1: on-demand of 3"], NOON + timedelta(minutes=5)),
    )
    result = run(environment, "reports", "show", "placement", "--cluster", "harbor")
    assert result.exit_code == 0
    assert result.stdout.startswith("placement@harbor/2026-01-02: ")
    assert "- 12:00 label Node od-0: on-demand of 3" in result.stdout
    assert "- 12:05 label Node od-1: on-demand of 3" in result.stdout
