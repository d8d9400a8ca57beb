"""What was predicted is held against what happened: by instance, and by what went together."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

from plimsoll.domain.reports import (
    Comparison,
    Report,
    compare_rehearsals,
    rehearsal_report,
    rehearsals_of,
)
from tests.support.builders import NOON
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.rehearsed import a_mixed_cluster

WEB = "Deployment shop/web"
NIGHT = NOON - timedelta(hours=9)


def predicted(
    *instances: str, scope: str = "all", at: datetime = NIGHT, web: int = 5
) -> list[Report]:
    return [
        rehearsal_report(
            "harbor",
            instance=instance,
            node=f"node-of-{instance}",
            scope=scope,
            at=at,
            emptied=timedelta(seconds=80),
            lowest_ready={WEB: web},
        )
        for instance in instances
    ]


def happened(*instances: str, web: int = 5, after: float = 0) -> list[Report]:
    noticed = NOON + timedelta(seconds=after)
    return [
        Report(
            interruption=f"{instance}@2026-01-01T00:00:00Z",
            cluster="harbor",
            node=f"node-of-{instance}",
            kind="spot-interruption",
            noticed=noticed,
            deadline=noticed + timedelta(seconds=118),
            emptied=noticed + timedelta(seconds=91.5),
            lowest_ready={WEB: web, "StatefulSet shop/db": 0},
        )
        for instance in instances
    ]


def compared(storm: list[Report], rehearsals: list[Report]) -> Comparison:
    found = compare_rehearsals(storm[0], storm, rehearsals)
    assert found is not None
    return found


def test_what_came_otherwise_is_told_with_both_figures():
    found = compared(happened("a", "b", web=3), predicted("a", "b", web=5))
    assert found.wrong == {WEB: (5, 3)}
    assert found.emptied == (80.0, 91.5)


def test_a_workload_of_which_nothing_was_predicted_is_no_error():
    assert compared(happened("a"), predicted("a")).lowest_ready == {WEB: (5, 5)}


def test_of_several_rehearsals_the_one_most_like_the_event_counts():
    rehearsals = [
        *predicted("a", "b", "c", "d", scope="all", web=1),
        *predicted("a", "b", scope="zone", web=4),
    ]
    found = compared(happened("a", "b"), rehearsals)
    assert (found.scope, found.nodes_predicted, found.nodes_of_these, found.nodes_besides) == (
        "zone",
        2,
        2,
        0,
    )


def test_of_rehearsals_alike_the_newest_counts_and_none_that_came_later():
    rehearsals = [
        *predicted("a", at=NIGHT),
        *predicted("a", at=NIGHT + timedelta(hours=1)),
        *predicted("a", at=NOON + timedelta(seconds=1)),
    ]
    assert compared(happened("a"), rehearsals).rehearsed == NIGHT + timedelta(hours=1)


def test_what_goes_much_later_does_not_belong_to_the_event():
    storm = [*happened("a"), *happened("b", after=600)]
    found = compared(storm, predicted("a", "b"))
    assert (found.nodes_of_these, found.nodes_besides) == (1, 0)


def test_an_instance_that_was_not_rehearsed_is_compared_with_nothing():
    assert compare_rehearsals(happened("a")[0], happened("a"), predicted("b")) is None


def test_the_error_stands_in_the_report_of_the_interruption():
    environment = a_mixed_cluster()
    assert run(environment, "rehearse", "--cluster", "harbor", "--record").exit_code == 1
    told = environment.reports.list(rehearsals_of("harbor"))
    assert len(told) == 3
    (one,) = [each for each in told if WEB in each.lowest_ready][:1]
    instance = one.interruption.partition("@")[2].partition("/")[0]
    later = timedelta(hours=1)
    real = replace(
        happened(instance, web=one.lowest_ready[WEB] - 1)[0],
        noticed=environment.clock.now() + later,
        emptied=environment.clock.now() + later + timedelta(seconds=100),
        deadline=environment.clock.now() + later + timedelta(seconds=118),
    )
    environment.reports.merge(real)
    shown = run(environment, "reports", "show", instance).stdout
    least = one.lowest_ready[WEB]
    assert f"{WEB}: lowest ready {least}, actually {least - 1}" in shown
    assert "of 3 predicted nodes 1 were interrupted, and 0 others" in shown
    assert "correct" in run(environment, "reports").stdout
    (said,) = json.loads(run(environment, "reports", "--output", "json").stdout)["reports"]
    assert said["predicted"]["lowest_ready"][WEB] == [least, least - 1]


def test_nothing_is_recorded_unless_it_is_asked_for():
    environment = a_mixed_cluster()
    run(environment, "rehearse", "--cluster", "harbor")
    assert environment.reports.list(rehearsals_of("harbor")) == []


def test_only_what_plimsoll_would_do_in_a_registered_cluster_is_recorded():
    environment: MemoryEnvironment = a_mixed_cluster()
    for args, said in (
        (("--context", "harbor"), "name a registered cluster"),
        (("--cluster", "harbor", "--responder", "none"), "give no other --responder"),
    ):
        result = run(environment, "rehearse", "--record", *args)
        assert result.exit_code == 2
        assert said in result.output
