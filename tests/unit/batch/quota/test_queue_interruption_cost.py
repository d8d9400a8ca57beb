"""Which flavor a gang tries first: by what it costs with the work that interruptions lose."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_batch.adapters.queues_file import configuration_of
from plimsoll_batch.adapters.snapshot_file import state_of
from plimsoll_batch.domain.admission.planner import plan_queues
from plimsoll_batch.domain.admission.queue_state import QueueState
from plimsoll_batch.domain.explanation import in_words, why
from plimsoll_batch.domain.jobs.gangs import lost_at_an_interruption
from plimsoll_batch.domain.quota.cohorts import Flavor
from plimsoll_batch.domain.quota.flavors import by_cost, cost_of, priced_queues
from tests.support.builders import NOON
from tests.support.queue_scenes import Scene, a_job, record
from tests.support.queued import a_configuration, a_gang, a_queue, a_shape, planned

SPOT = Flavor(name="spot", price=Fraction(3, 10), interruptions_per_hour=Fraction(1, 20))
BASE = Flavor(name="base", price=Fraction(1))
TEN_MINUTES, DAY = timedelta(minutes=10), timedelta(days=1)
QUEUES = """
flavors:
  - {name: spot, price: 0.3, interruptionsPerHour: 0.05}
  - {name: base, price: 1}
queues:
  - name: lab
    resourceGroups:
      - flavors:
          - {name: spot, resources: {cpu: {nominal: 100}}}
          - {name: base, resources: {cpu: {nominal: 100}}}
"""


def a_tree(spot: int = 99, base: int = 99):
    queue = a_queue("q", cohort=None, flavors={"spot": spot, "base": base})
    return a_configuration(queue, flavors=(SPOT, BASE))


def a_trainer(loses: timedelta | None, pods: int = 8, name: str = "g"):
    return a_gang(name, "q", shape=replace(a_shape(1, pods), loses=loses))


def flavors(configuration, *gangs):
    return [{f for f, _ in each.usage} for each in planned(configuration, gangs).admitted]


@pytest.mark.parametrize(
    ("checkpoint", "limit", "pods", "first"),
    [
        (None, None, 8, "spot"),  # nobody says what is lost: as configured
        (TEN_MINUTES, None, 8, "spot"),  # 0.3 x (1 + 0.05 x 8 x 1/12) = 0.31
        (TEN_MINUTES, DAY, 8, "spot"),
        (None, DAY, 8, "base"),  # 0.3 x (1 + 0.05 x 8 x 12) = 1.74
        (None, DAY, 1, "spot"),  # one instance: 0.3 x (1 + 0.05 x 12) = 0.48
        (DAY, TEN_MINUTES, 8, "spot"),  # no more than all of it is lost
        (None, TEN_MINUTES, 800, "base"),  # 0.3 x (1 + 0.05 x 800 x 1/12) = 1.3
    ],
)
def test_a_gang_takes_the_flavor_that_costs_least_with_what_interruptions_lose(
    checkpoint, limit, pods, first
):
    gang = a_trainer(lost_at_an_interruption(checkpoint, limit), pods)
    assert flavors(a_tree(spot=1000, base=1000), gang) == [{first}]


@pytest.mark.parametrize(
    ("spot", "base", "configured", "expected"),
    [
        (SPOT, BASE, ("base", "spot"), ("spot", "base")),
        (replace(SPOT, price=None), BASE, ("base", "spot"), ("base", "spot")),
        (SPOT, replace(BASE, price=None), ("base", "spot"), ("base", "spot")),
        (replace(BASE, name="spot"), BASE, ("base", "spot"), ("base", "spot")),
        (replace(BASE, name="spot"), BASE, ("spot", "base"), ("spot", "base")),
    ],
    ids=["cheapest first", "no price", "no price of the other", "equal", "equal, the other way"],
)
def test_the_configured_order_stays_where_costs_are_equal_or_not_known(
    spot, base, configured, expected
):
    shape = replace(a_shape(1, 8), loses=TEN_MINUTES)
    assert tuple(by_cost(configured, {"spot": spot, "base": base}, shape)) == expected


def test_a_gang_takes_the_dearer_flavor_where_the_cheaper_has_no_quota_left():
    assert flavors(a_tree(base=4), a_trainer(DAY)) == [{"spot"}]


PRICES = st.fractions(Fraction(1, 100), 100, max_denominator=100)
RATES = st.fractions(0, 10, max_denominator=100)
SECONDS = st.integers(1, 7 * 24 * 3600).map(lambda seconds: timedelta(seconds=seconds))


ORDERS = st.permutations(["spot", "base"])


@given(st.tuples(PRICES, PRICES), RATES, st.tuples(SECONDS, SECONDS), st.integers(1, 1000), ORDERS)
def test_more_frequent_checkpoints_never_move_a_gang_from_spot_to_on_demand(
    prices, rate, intervals, pods, names
):
    flavors = {
        "spot": Flavor(name="spot", price=prices[0], interruptions_per_hour=rate),
        "base": Flavor(name="base", price=prices[1]),
    }
    often, seldom = (
        by_cost(
            names, flavors, replace(a_shape(1, pods), loses=lost_at_an_interruption(each, None))
        )
        for each in sorted(intervals)
    )
    assert often[0] == "spot" or seldom[0] == "base"


@given(PRICES, RATES, SECONDS, st.integers(1, 1000))
def test_no_interruption_makes_anything_cheaper(price, rate, loses, pods):
    flavor = Flavor(name="spot", price=price, interruptions_per_hour=rate)
    cost = cost_of(flavor, replace(a_shape(1, pods), loses=loses))
    assert cost is not None
    assert cost >= price


def test_only_queues_with_two_flavors_that_all_have_prices_compare_them():
    queues = (
        a_queue("both", cohort=None, flavors={"spot": 1, "base": 1}),
        a_queue("one", cohort=None, flavors={"spot": 1}),
        a_queue("half", cohort=None, flavors={"spot": 1, "old": 1}),
    )
    configuration = a_configuration(*queues, flavors=(SPOT, BASE, Flavor(name="old")))
    assert priced_queues(configuration) == {"both"}


def test_why_says_the_costs_that_order_the_flavors():
    seen = QueueState(configuration=a_tree(spot=4, base=4), gangs=(gang := a_trainer(DAY / 2),))
    found = why(seen, gang.uid, NOON)
    assert found is not None
    assert "43200 s lost by an interruption: base 1, spot 1.74" in in_words(found)
    silent = why(QueueState(configuration=a_tree(), gangs=(a_trainer(None),)), gang.uid, NOON)
    assert silent is not None
    assert silent.costs == ()


def test_a_job_without_checkpoints_that_may_run_for_a_day_is_started_on_demand():
    scene = Scene(nodes=20, queues=QUEUES)
    daily = a_job("daily", 8)
    daily["spec"]["activeDeadlineSeconds"] = 86_400
    saved = a_job("saved", 8, annotations={"plimsoll.dev/checkpoint-seconds": "600"})
    saved["spec"]["activeDeadlineSeconds"] = 86_400
    scene.submit(daily, saved)
    scene.run()
    assert record(scene.job("daily"))["flavors"] == {"cpu": "base"}
    assert record(scene.job("saved"))["flavors"] == {"cpu": "spot"}


def test_a_snapshot_says_what_a_gang_loses_as_jobs_do():
    configuration = configuration_of(yaml.safe_load(QUEUES))
    gang = {
        "namespace": "lab",
        "name": "daily",
        "queue": "lab",
        "since": NOON.isoformat(),
        "limitSeconds": 86_400,
        "roles": [{"name": "workers", "pods": 8, "requests": {"cpu": "1"}}],
    }
    saved = gang | {"name": "saved", "checkpointSeconds": 600}
    seen = state_of({"gangs": [gang, saved]}, configuration)
    found = plan_queues(seen, NOON).admitted
    assert {each.gang.name: [*each.usage] for each in found} == {
        "daily": [("base", "cpu")],
        "saved": [("spot", "cpu")],
    }


@pytest.mark.parametrize("said", ["0", "-5", "often", "1e3", "9" * 5000, "", "700000"])
def test_what_cannot_be_read_costs_its_own_gang_only(said):
    scene = Scene(queues=QUEUES)
    notes = {"plimsoll.dev/checkpoint-seconds": said}
    scene.submit(a_job("bad", 2, annotations=notes), a_job("good", 2))
    scene.run()
    assert (scene.suspended("bad"), scene.suspended("good")) == (True, False)
    assert any("plimsoll.dev/checkpoint-seconds" in words for words in scene.events("bad"))
