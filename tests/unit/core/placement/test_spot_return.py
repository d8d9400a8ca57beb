"""The way back to spot of workloads that no floor spreads."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.actions import Grow, Release
from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import DO_NOT_DISRUPT, MOVED, Node, Pod, Workload
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import SpotReturn, bequeaths, growth_for_return, plan_placement
from plimsoll.domain.placement.move_history import RESTS, RETURNED, Mark
from plimsoll.domain.placement.spot_return import BETWEEN_MOVES
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll.domain.spot import CapacityPool
from plimsoll_simulation.fake_aws.spot_market import MARKETS, MarketPool, is_up
from tests.support.builders import NOON, ZONE_A, a_deployment, a_group, a_node, a_pod, pods_of
from tests.support.floors import a_cluster, standing
from tests.support.observations import WEB, looked, noon, released
from tests.support.properties import drawn
from tests.support.scheduled import ScheduledCluster
from tests.support.workload_sets import deployment

SPOT: Final = ("m5", "c5")
LOST_MINUTES: Final = 3
"""How long `lose` takes."""
HOUR: Final = 60
POOL: Final = CapacityPool("m5.large", ZONE_A, "spot")
ON: Final = Policy(return_to_spot=True)
OTHER: Final = WEB._replace(name="other")


def spot(name: str = "m5-0", **how: Any) -> Node:
    labels = {"node.kubernetes.io/instance-type": POOL.instance_type}
    return a_node(name, capacity="spot", labels=labels, **how)


def stood(minutes: float) -> SpotReturn:
    return SpotReturn(hours_stood={POOL: minutes / 60})


def moved(seen: Observation, spot_return: SpotReturn) -> list[Release]:
    plan = plan_placement(seen, NOON, spot_return=spot_return)
    return [action for step in plan.steps if isinstance(action := step.action, Release)]


def web(count: int = 3, replicas: int | None = None, **how: Any) -> tuple[list[Pod], Workload]:
    return pods_of("web", count, node="od-0", **how), a_deployment(
        "web", replicas=replicas or count
    )


def here(pods: list[Pod], workload: Workload, *nodes: Node, policy: Policy = ON) -> Observation:
    return looked([a_node("od-0"), *(nodes or [spot()])], pods, [workload], policy=policy)


# --- One plan ----------------------------------------------------------------------------------------


def test_a_pod_returns_to_a_pool_that_stood_for_half_an_hour_where_nobody_knows_its_start():
    seen = here(*web())
    assert not moved(seen, stood(29))
    (release,) = moved(seen, stood(30))
    assert release.moved == str(Mark(1, NOON, RETURNED))


def test_nothing_returns_unless_the_cluster_or_a_promise_asks_for_it():
    seen = here(*web(), policy=Policy())
    assert not moved(seen, stood(60))
    assert moved(seen, replace(stood(60), promised={WEB}))
    assert not moved(seen, replace(stood(60), promised={OTHER}))


@pytest.mark.parametrize(
    "policy",
    [replace(ON, act_in=("other",)), replace(ON, moves_per_hour=0)],
    ids=["other-namespaces", "no-moves"],
)
def test_the_policy_of_the_cluster_is_obeyed(policy):
    assert not moved(here(*web(), policy=policy), stood(60))


def test_what_its_owner_protects_stays():
    assert not moved(here(*web(annotations={DO_NOT_DISRUPT: "true"})), stood(60))


def test_a_workload_that_lacks_a_replica_stays():
    assert not moved(here(*web(replicas=4)), stood(60))


def test_a_pod_stays_where_its_replacement_would_stand_on_on_demand_again():
    pods, workload = web()
    crowd = pods_of("web", 3, node="m5-0")
    crowd = [replace(pod, name=f"{pod.name}-x", uid=f"{pod.uid}-x") for pod in crowd]
    assert not moved(here([*pods, *crowd], replace(workload, replicas=6)), stood(60))


def test_a_pod_that_was_moved_within_six_hours_stays_and_so_does_the_one_that_replaced_it():
    pods, workload = web(1)
    for ago, count in ((RESTS - timedelta(minutes=1), 0), (RESTS, 1)):
        mark = Mark(1, NOON - ago, RETURNED)
        marked = [replace(pod, annotations={MOVED: str(mark)}) for pod in pods]
        assert bequeaths(marked[0], NOON) is not bool(count)
        assert len(moved(here(marked, workload), stood(60))) == count


# --- Nodes for it ------------------------------------------------------------------------------------


def grown(stood_minutes: float, *, added: int = 0, **how: Any) -> list[Grow]:
    pods, workload = web()
    group = a_group("spot", capacity="spot", zones=(ZONE_A,), **how)
    group = replace(group, instance_types=(POOL.instance_type,))
    seen = looked([a_node("od-0")], pods, [workload], policy=ON, groups=[group])
    spot_return = stood(stood_minutes)
    homeless = plan_placement(seen, NOON, spot_return=spot_return).homeless
    return [*growth_for_return(seen, homeless, spot_return, added, NOON)]


def test_a_spot_group_is_asked_for_a_node_where_there_is_none():
    (grow,) = grown(30)
    assert (grow.group.name, grow.add, grow.zone) == ("spot", 1, ZONE_A)


@pytest.mark.parametrize(
    "how",
    [
        {"stood_minutes": 29},
        {"stood_minutes": 60, "added": 1},
        {"stood_minutes": 60, "desired": 1},
        {"stood_minutes": 60, "max_size": 0},
        {"stood_minutes": 60, "cpu": "50m"},
    ],
    ids=["young", "added-lately", "on-the-way", "full", "too-small"],
)
def test_no_node_is_asked_for_in_vain_or_more_than_the_pods_stand_on(how):
    assert not grown(**how)


# --- All functions on their schedule -------------------------------------------------------------------


def after_a_storm(replicas: int = 6) -> ScheduledCluster:
    """Return a cluster a few minutes after all spot went; new spot nodes are there at once."""
    scheduled = ScheduledCluster(a_cluster())
    wired = scheduled.wired
    wired.registry.update(replace(wired.cluster, policy=ON))
    wired.apply(deployment(replicas=replicas))
    scheduled.pass_minutes(1)
    scheduled.lose(scheduled.nodes(*SPOT))
    assert standing(wired) == {"od": replicas}
    for n, family in enumerate(("m5", "m5", "c5", "c5")):
        scheduled.join_spot(f"{family}-new{n}", family)
    return scheduled


def on_spot(scheduled: ScheduledCluster) -> int:
    return sum(count for name, count in standing(scheduled.wired).items() if name in SPOT)


def test_pods_return_one_in_five_minutes_each_replaced_before_it_leaves():
    scheduled = after_a_storm()
    lost = scheduled.minutes - LOST_MINUTES
    returned: dict[int, int] = {}
    for _ in range(30):
        scheduled.pass_minutes(1)
        returned[scheduled.minutes - lost] = on_spot(scheduled)
        assert sum(standing(scheduled.wired).values()) == 6
    assert returned[10] == 0
    assert returned[30] >= 3
    assert all(returned[m + 5] - returned[m] <= 1 for m in returned if m + 5 in returned)


# --- Drawn markets -------------------------------------------------------------------------------------


class Played:
    """A workload on two on-demand nodes, and on a spot node of each pool of a market that is up.

    What is lost is replaced at once, and a move is done at once: only what placement decides is played.
    """

    def __init__(self, market: str, seed: int, replicas: int) -> None:
        families = ("m5", "c5")
        self.trace = MARKETS[market].draw(seed, 2, families, (ZONE_A,))
        self.workload = a_deployment("web", replicas=replicas)
        self.since = dict.fromkeys(self.trace, 0.0)
        self.made = 0
        self.moves: dict[str, list[float]] = {}
        """The first pod of each line of pods that replaced each other -> the seconds of its moves."""
        self.line: dict[str, str] = {}
        self.pods: list[Pod] = []
        for _ in range(replicas):
            self.place(self.make(0), self.nodes(0), 0)

    def make(self, second: float, before: Pod | None = None, mark: str | None = None) -> Pod:
        self.made += 1
        name = f"web-{self.made}"
        pod = a_pod(name, node="od-0", labels={"app": "web"}, owner=("ReplicaSet", "web-abc"))
        self.line[name] = name if before is None else self.line[before.name]
        return replace(pod, created=noon(second), annotations={} if mark is None else {MOVED: mark})

    def place(self, pod: Pod, nodes: list[Node], second: float, leaves: Pod | None = None) -> None:
        standing = [released(each) if each is leaves else each for each in self.pods]
        snapshot = ClusterSnapshot(nodes, standing, {})
        node = snapshot.choose(replace(pod, node=None))
        assert node is not None
        self.pods = [each for each in self.pods if each is not leaves]
        self.pods.append(replace(pod, node=node.name))

    def nodes(self, second: float) -> list[Node]:
        up = [pool for pool, changes in self.trace.items() if is_up(changes, second)]
        return [a_node("od-0"), a_node("od-1"), *map(self.node, up)]

    @staticmethod
    def node(pool: MarketPool) -> Node:
        labels = {"node.kubernetes.io/instance-type": f"{pool.family}.large"}
        return a_node(f"{pool.family}-0", capacity="spot", zone=pool.zone, labels=labels)

    def lose(self, pool: MarketPool, second: float) -> None:
        nodes = self.nodes(second)
        for pod in [pod for pod in self.pods if pod.node == f"{pool.family}-0"]:
            mark = pod.annotations.get(MOVED) if bequeaths(pod, noon(second)) else None
            self.place(self.make(second, pod, mark), nodes, second, leaves=pod)

    def run(self, second: float) -> None:
        ages = {
            CapacityPool(f"{pool.family}.large", pool.zone, "spot"): (second - since) / 3600
            for pool, since in self.since.items()
        }
        nodes = self.nodes(second)
        seen = looked(nodes, self.pods, [self.workload], policy=ON)
        plan = plan_placement(seen, noon(second), spot_return=SpotReturn(hours_stood=ages))
        for step in plan.steps:
            assert isinstance(step.action, Release)
            pod = next(each for each in self.pods if each.name == step.action.pod.name)
            self.moves.setdefault(self.line[pod.name], []).append(second)
            self.place(self.make(second, pod, step.action.moved), nodes, second, leaves=pod)

    def play(self, hours: int) -> None:
        changes = [(c.second, pool, c.up) for pool, all_ in self.trace.items() for c in all_[1:]]
        runs = [(second, None, True) for second in range(0, hours * 3600, 300)]
        for second, pool, up in sorted([*changes, *runs], key=lambda each: (each[0], str(each[1]))):
            if second >= hours * 3600:
                return
            if pool is None:
                self.run(second)
            else:
                self.since[pool] = second
                if not up:
                    self.lose(pool, second)


def test_in_a_rough_market_pods_return_as_often_as_spot_does():
    played = Played("rough", 1, replicas=6)
    played.play(hours=18)
    assert len(played.moves) >= 4


@drawn(2, many=300)
@given(
    market=st.sampled_from(["storm", "rough"]),
    seed=st.integers(0, 10_000),
    replicas=st.integers(1, 8),
)
def test_in_drawn_markets_no_pod_moves_twice_in_six_hours_and_none_of_a_workload_in_five_minutes(
    market, seed, replicas
):
    played = Played(market, seed, replicas)
    played.play(hours=18)
    for seconds in played.moves.values():
        assert all(b - a >= RESTS.total_seconds() for a, b in pairwise(seconds))
    every = sorted(second for seconds in played.moves.values() for second in seconds)
    assert all(b - a >= BETWEEN_MOVES.total_seconds() for a, b in pairwise(every))
    assert len(every) <= replicas * (18 / 6)
