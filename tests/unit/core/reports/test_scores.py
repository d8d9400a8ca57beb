"""The score of promises: each loss and each run adds once, however often and however late it is told."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from plimsoll.domain.errors import Conflict
from plimsoll.domain.reports import Judged, Kept, Report, Score, months_until, scored
from plimsoll.domain.reports.scores import MOST_SCORED
from plimsoll_simulation.fake_aws.stores import MemoryReports

WEB = "Deployment shop/web"
BEGIN = datetime(2026, 5, 11, tzinfo=UTC)
LONG_AGO = BEGIN - timedelta(days=1)
FIVE_MINUTES = timedelta(minutes=5)


def after(**time: float) -> datetime:
    return BEGIN + timedelta(**time)


def judged(ready_since: Iterable[datetime], *, below: float = 0.001, workload: str = WEB) -> Judged:
    return Judged(workload=workload, below=below, wanted=6, ready_since=[*ready_since])


def web(*ready_again: datetime, missing: int = 0) -> Judged:
    """Return ten replicas, of which some became Ready again and some are missing."""
    old = [LONG_AGO] * (10 - len(ready_again) - missing)
    return judged([*old, *ready_again])


def fall(at: datetime, ready: int = 5, instance: str = "i-1") -> Report:
    return Report(
        interruption=f"{instance}@x",
        cluster="harbor",
        node=instance,
        kind="spot-interruption",
        noticed=at - timedelta(seconds=108),
        fell={WEB: {7: at - timedelta(seconds=1), ready: at}},
    )


def run(
    before: Score | None, at: datetime, seen: Sequence[Judged], reports: Sequence[Report] = ()
) -> Score:
    return scored(before, "harbor", seen, reports, at)


def runs(*each: tuple[datetime, Judged, Sequence[Report]]) -> Score:
    """Return the score after runs, the first of them just before."""
    found = run(None, BEGIN, [web()])
    for at, seen, reports in each:
        found = run(found, at, [seen], reports)
    return found


def seconds(found: Score) -> float:
    return found.workloads[WEB].observed.total_seconds()


def test_each_run_adds_the_probability_times_the_time_since_the_last():
    found = runs((after(minutes=5), web(), ()), (after(minutes=10), web(), ()))
    assert found.total.predicted == timedelta(seconds=0.6)
    assert found.total.judged == timedelta(minutes=10)
    assert found.total.observed == timedelta()


def test_after_a_long_pause_an_hour_is_added():
    found = runs((after(days=2), web(), [fall(after(days=1))]))
    assert found.total.judged == timedelta(hours=1)


def test_a_fall_lasts_until_the_last_that_was_wanted_is_ready():
    back = [after(seconds=300 + n) for n in (0, 5, 9, 20, 31)]
    found = runs((after(minutes=10), web(*back), [fall(after(seconds=120))]))
    assert seconds(found) == 300 - 120  # six of ten are wanted: five had stayed


def test_what_has_not_ended_goes_on_in_the_next_run():
    told = [fall(after(seconds=120))]
    first = (after(minutes=5), web(missing=5), told)
    found = runs(first)
    assert (seconds(found), found.workloads[WEB].falling) == (180, True)
    back = [after(seconds=340)] * 5
    assert seconds(runs(first, (after(minutes=10), web(*back), told))) == 220
    assert seconds(runs(first, (after(minutes=10), web(*back), ()))) == 220  # whatever is told then


def test_a_fall_that_is_told_late_counts_from_when_it_was():
    short, back = web(missing=5), web(*[after(seconds=400)] * 5)
    found = runs(
        (after(minutes=5), short, ()), (after(minutes=10), back, [fall(after(seconds=120))])
    )
    assert seconds(found) == 280


def test_a_fall_that_is_told_after_a_rollout_ended_before_the_last_run():
    rolled_out = judged([after(minutes=14)] * 10)
    found = runs(
        (after(minutes=10), web(), ()), (after(minutes=15), rolled_out, [fall(after(seconds=540))])
    )
    assert seconds(found) == 60


def test_falls_of_several_nodes_at_once_are_one():
    told = [fall(after(seconds=120 + n), instance=f"i-{n}") for n in range(20)]
    back = web(*[after(seconds=260)] * 5)
    found = runs((after(minutes=5), back, told), (after(minutes=10), back, told))
    assert seconds(found) == 140


def test_above_the_promise_nothing_was_lost():
    assert seconds(runs((after(minutes=5), web(missing=3), [fall(after(minutes=2), 7)]))) == 0


def test_what_fell_before_it_was_promised_does_not_count():
    assert seconds(runs((after(minutes=5), web(), [fall(after(minutes=-2))]))) == 0


def test_without_an_interruption_a_missing_replica_is_nobodys_prediction():
    assert seconds(runs((after(minutes=5), web(missing=6), ()))) == 0


def test_a_run_that_looked_earlier_changes_nothing():
    found = runs((after(minutes=5), web(), ()))
    assert run(found, after(minutes=4), [web()], [fall(after(minutes=3))]) == found


def test_a_month_begins_with_what_is_open_and_adds_nothing_twice():
    begin = datetime(2026, 5, 31, 23, 58, tzinfo=UTC)
    told = [fall(begin + timedelta(minutes=1))]
    may = run(run(None, begin, [web()]), begin + timedelta(seconds=90), [web(missing=5)], told)
    back = web(*[begin + timedelta(minutes=4)] * 5)
    june = run(may, begin + timedelta(minutes=5), [back], told)
    assert (june.month, june.version) == ("2026-06", 0)
    assert june.total.judged == timedelta(minutes=3)
    assert (seconds(may), seconds(june)) == (30, 120)


def test_what_is_promised_no_more_keeps_its_month_and_leaves_the_next():
    found = runs((after(minutes=5), web(missing=5), [fall(after(minutes=4))]))
    gone = run(found, after(minutes=10), [])
    assert (seconds(gone), gone.workloads[WEB].falling) == (60, False)
    assert gone.judged == found.judged
    assert run(gone, after(days=40), []).workloads == {}


def test_of_too_many_workloads_each_namespace_has_its_share():
    many = [
        judged([BEGIN], workload=f"Deployment {namespace}/app-{n:03}")
        for namespace in ("loud", "quiet")
        for n in range(200 if namespace == "loud" else 3)
    ]
    found = run(None, BEGIN, many)
    assert (len(found.workloads), found.left_out) == (MOST_SCORED, 203 - MOST_SCORED)
    assert sum(" quiet/" in name for name in found.workloads) == 3
    again = run(found, after(minutes=5), [web(), *many])
    assert (again.workloads.keys(), again.left_out) == (found.workloads.keys(), 104)


@pytest.mark.parametrize(
    ("days", "says"),
    [(12, "not yet scored: compared for 12 of 30 days"), (30, "predicted 43 min, came 0 min")],
)
def test_a_score_is_told_after_thirty_days(days: int, says: str):
    found = Kept(judged=timedelta(days=days), predicted=timedelta(minutes=43.2))
    assert found.says == says


def test_the_months_that_are_kept_are_a_year_and_this_one():
    found = months_until(datetime(2026, 2, 3, tzinfo=UTC))
    assert (found[:3], found[-1], len(found)) == (["2026-02", "2026-01", "2025-12"], "2025-02", 13)


@dataclass
class Market:
    """Forty days of a workload on spot: what it lost, what is told of it, and when."""

    random: Random
    losses: list[tuple[datetime, datetime]] = field(default_factory=list)
    """From when until when fewer were Ready than promised."""

    def draw(self, days: int, a_day: float, lasts: float) -> None:
        at = BEGIN + timedelta(days=self.random.expovariate(a_day))
        while at < BEGIN + timedelta(days=days):
            end = at + timedelta(seconds=self.random.uniform(0.5 * lasts, 1.5 * lasts))
            self.losses.append((at, end))
            at = end + timedelta(days=self.random.expovariate(a_day))

    def seen(self, now: datetime, below: float) -> Judged:
        begun = [end for _, end in self.losses[: self._begun(now)]][-1:]
        short = any(end > now for end in begun)
        return replace(web(missing=5) if short else web(*begun * 5), below=below)

    def _begun(self, now: datetime) -> int:
        return bisect_right(self.losses, now, key=lambda loss: loss[0])

    def told(self, now: datetime) -> list[Report]:
        """Return the newest reports: each up to eight minutes late, and from several nodes."""
        return [
            fall(begin, instance=f"i-{n}-{node}")
            for n, (begin, _) in [*enumerate(self.losses[: self._begun(now)])][-5:]
            for node in range(3)
            if begin + timedelta(seconds=(37 * n + 160 * node) % 480) <= now
        ]


@pytest.mark.long
def test_forty_days_are_scored_as_they_came_though_runs_and_reports_come_twice_late_or_never():
    random, reports = Random(3), MemoryReports()
    market = Market(random)
    market.draw(days=40, a_day=1.5, lasts=134)
    below = 1.5 * 134 / 86_400
    now = BEGIN
    while now < BEGIN + timedelta(days=40):
        now += FIVE_MINUTES + timedelta(seconds=random.uniform(-20, 20))
        if random.random() < 0.05:
            continue  # it died before it wrote
        times = 2 if random.random() < 0.1 else 1
        before = (*reports.scores("harbor", months_until(now)[:2]), None)[0]
        for _ in range(times):
            with suppress(Conflict):
                reports.put_score(run(before, now, [market.seen(now, below)], market.told(now)))
    months = reports.scores("harbor", months_until(now))
    assert [each.month for each in months] == ["2026-06", "2026-05"]
    lost = sum((end - begin).total_seconds() for begin, end in market.losses)
    observed = sum(each.total.observed.total_seconds() for each in months)
    predicted = sum(each.total.predicted.total_seconds() for each in months)
    assert observed == pytest.approx(lost, rel=0.03)
    assert predicted == pytest.approx(below * 40 * 86_400, rel=0.01)
    assert observed == pytest.approx(predicted, rel=0.35)
