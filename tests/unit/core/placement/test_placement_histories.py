"""Generated histories of scaling, rollouts, losses and returns: what must hold after each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.kubernetes import OwnerKind, Ref
from plimsoll.domain.placement import Layout, plan_placement
from tests.support.floors import a_cluster, on_demand, web
from tests.support.properties import drawn
from tests.support.scheduled import ScheduledCluster
from tests.support.workload_sets import deployment

REPLICAS: Final = 9
USUAL: Final = Layout(1, 2)
REF: Final = Ref(kind=OwnerKind.DEPLOYMENT, namespace="default", name="web")
TWO_RUNS: Final = 11
"""Minutes: within two placement runs of any change, the floor and the spread are back."""
SPOT: Final = ("m5", "c5", "r5", "t3")


class History(ScheduledCluster):
    """A workload with a floor, and what may happen to it."""

    def __init__(self, cpu: str, layout: Layout = USUAL) -> None:
        super().__init__(a_cluster(cpu))
        self.floor = layout.floor(REPLICAS)
        self.joined = 0
        self.filled = 0
        self.wired.apply(web(str(self.floor), REPLICAS, layout))
        self.pass_minutes(TWO_RUNS)

    def scale_up(self) -> None:
        self.scale("web", 12)

    def scale_down(self) -> None:
        self.scale("web", 9)

    def renew(self) -> None:
        self.roll_out("web")

    def lose_all_spot(self) -> None:
        self.lose(self.nodes(*SPOT))

    def lose_one(self) -> None:
        self.lose(self.nodes(*SPOT)[:1])

    def lose_m5(self) -> None:
        self.lose(self.nodes("m5"))

    def lose_on_demand(self) -> None:
        self.lose(self.nodes("od")[1:2])

    def join(self) -> None:
        self.joined += 1
        family = ("m5", "c5", "r5")[self.joined % 3]
        for n in range(2):
            self.join_spot(f"{family}-x{self.joined}{n}", family)

    def join_tiny(self) -> None:
        self.joined += 1
        self.join_spot(f"t3-x{self.joined}", "t3", cpu="1")

    def join_on_demand(self) -> None:
        self.joined += 1
        self.wired.join(f"od-x{self.joined}")

    def fill(self, family: str) -> None:
        """Let pods of others take what the first node of a family has free."""
        for name in self.nodes(family)[:1]:
            self.filled += 1
            where = {"kubernetes.io/hostname": name}
            filler = deployment(f"filler-{self.filled}", replicas=4, cpu="900m", nodeSelector=where)
            self.wired.apply(filler, settle=0)

    def fill_on_demand(self) -> None:
        self.fill("od")

    def fill_spot(self) -> None:
        self.fill("c5")

    def empty(self) -> None:
        for n in range(1, self.filled + 1):
            self.scale(f"filler-{n}", 0)

    def cordon(self) -> None:
        for name in self.nodes("od")[:1]:
            self.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})

    def uncordon(self) -> None:
        for name in self.nodes("od"):
            self.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})

    def consolidate(self) -> None:
        """Let an autoscaler empty a spot node and take it away."""
        for name in self.nodes(*SPOT)[-1:]:
            self.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
            self.evict(node=name)
            self.pass_minutes(1)
            self.remove([name])


EVENTS: Final[list[Callable[[History], None]]] = [
    History.scale_up,
    History.scale_down,
    History.renew,
    History.lose_all_spot,
    History.lose_one,
    History.lose_m5,
    History.lose_on_demand,
    History.join,
    History.join_tiny,
    History.join_on_demand,
    History.fill_on_demand,
    History.fill_spot,
    History.empty,
    History.cordon,
    History.uncordon,
    History.consolidate,
]


def play(events: list[Callable[[History], None]], cpu: str, layout: Layout = USUAL) -> None:
    history = History(cpu, layout)
    for event in events:
        event(history)
        history.pass_minutes(TWO_RUNS)
        ready, could = on_demand(history.seen, REF)
        assert ready >= min(history.floor, could), f"after {event.__name__}: {ready} of {could}"
        assert not history.waited_in_vain, f"after {event.__name__}"
    history.moves.clear()
    history.pass_minutes(5 * 12)
    assert history.moves["web"] <= len(history.seen.of_workload[REF])
    version = history.wired.version()
    history.pass_minutes(5)
    assert history.wired.version() == version, "the return to spot never ends"


HISTORIES: Final = st.lists(st.sampled_from(EVENTS), max_size=6)
CPU: Final = st.sampled_from(["8", "2"])
"""Of the nodes at the start: plenty, and just enough for the workload."""


@drawn(6, many=1000)
@given(HISTORIES, CPU)
def test_the_floor_is_back_within_two_runs_and_nobody_waits(events, cpu):
    play(events, cpu)


@drawn(1, many=500)
@given(HISTORIES, st.sampled_from([Layout(2, 1), Layout(3, 1), Layout(3, 3)]))
def test_the_floor_of_several_on_demand_groups_is_back_and_nobody_waits(events, layout):
    """On nodes with plenty: where one on-demand group is full, what another has free is out of reach of a spread."""
    play(events, "8", layout)


HOURS: Final = st.permutations(range(12))
CALM: Final = 4 * 60
"""Minutes: four times the hour for which moves are counted."""


@drawn(1, many=3)
@given(HOURS)
def test_twelve_hours_of_churn_move_no_pod_twice_and_the_calm_after_them_moves_none(hours):
    """Three rollouts, four turns of an autoscaler, two replaced nodes, one that is consolidated."""
    history = History("8")
    churn = dict(
        zip(
            hours,
            [
                *[History.renew] * 3,
                *[History.scale_up, History.scale_down] * 2,
                *[History.lose_one, History.join] * 2,
                *[History.consolidate, History.join],
            ],
            strict=False,
        )
    )
    for hour in range(12):
        if hour in churn:
            churn[hour](history)
        history.pass_minutes(TWO_RUNS)
        assert not plan_placement(history.seen, history.wired.time).steps, f"after {hour}:00"
        history.pass_minutes(60 - TWO_RUNS)
    assert history.moves["web"] <= 9
    history.moves.clear()
    history.pass_minutes(CALM)
    assert not history.moves
