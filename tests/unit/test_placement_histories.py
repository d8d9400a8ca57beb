"""Generated histories of scaling, rollouts, losses and returns: what must hold after each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.domain.pods import OwnerKind, Ref
from plimsoll.services.wiring import Services
from tests.support.floors import a_cluster, on_demand, waits_in_vain, web
from tests.support.workload_sets import WiredServices, deployment

FLOOR: Final = 3
WEB: Final = "/apis/apps/v1/namespaces/default/deployments/web"
REF: Final = Ref(kind=OwnerKind.DEPLOYMENT, namespace="default", name="web")
PATCH: Final = "application/merge-patch+json"
TWO_RUNS: Final = 11
"""Minutes: within two placement runs of any change, the floor and the spread are back."""


class Life:
    """A cluster that lives through a history, minute by minute."""

    def __init__(self, cpu: str) -> None:
        self.wired: WiredServices = a_cluster(cpu)
        self.minutes = 0
        self.joined = 0
        self.filled = 0
        self.wired.apply(web(str(FLOOR)))
        self.pass_minutes(TWO_RUNS)

    def pass_minutes(self, count: int) -> None:
        """Let resync, placement and what they wake run as their schedules say."""
        services: Services = self.wired.services
        for _ in range(count):
            if self.minutes % 5 == 0:
                services.placement.run()
            services.resync.run()
            while self.wired.wake_ups.sent:
                self.wired.wake_ups.sent.clear()
                services.drains.reconcile("harbor", "me", seconds=30)
            self.wired.sleep(60)
            self.minutes += 1
            assert waits_in_vain(self.wired.api.observe(), self.wired.time) == []

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        answer = self.wired.hollow.handle(
            "PATCH", path, body=body, content_type=PATCH, now=self.wired.time
        )
        assert answer.status == 200, answer.body

    def nodes(self, *families: str) -> list[str]:
        return sorted(n.name for n in self.wired.api.nodes() if n.name.startswith(families))

    # What happens.

    def scale_up(self) -> None:
        self.patch(WEB, {"spec": {"replicas": 12}})

    def scale_down(self) -> None:
        self.patch(WEB, {"spec": {"replicas": 9}})

    def roll_out(self) -> None:
        stamp = {"metadata": {"annotations": {"minute": str(self.minutes)}}}
        self.patch(WEB, {"spec": {"template": stamp}})

    def lose(self, names: list[str]) -> None:
        instances = [self.wired.node(name).instance or "" for name in names]
        assert not any(self.wired.notices.receive([self.wired.spot_event(i) for i in instances]))
        self.pass_minutes(3)
        for name in names:
            self.wired.hollow.handle("DELETE", f"/api/v1/nodes/{name}", now=self.wired.time)

    def lose_all_spot(self) -> None:
        self.lose(self.nodes("m5", "c5", "r5", "t3"))

    def lose_one(self) -> None:
        self.lose(self.nodes("m5", "c5", "r5", "t3")[:1])

    def lose_m5(self) -> None:
        self.lose(self.nodes("m5"))

    def lose_on_demand(self) -> None:
        self.lose(self.nodes("od")[1:2])

    def join(self) -> None:
        self.joined += 1
        family = ("m5", "c5", "r5")[self.joined % 3]
        for n in range(2):
            labels = {"node.kubernetes.io/instance-type": f"{family}.large"}
            self.wired.join(f"{family}-x{self.joined}{n}", capacity="spot", labels=labels)

    def join_tiny(self) -> None:
        self.joined += 1
        labels = {"node.kubernetes.io/instance-type": "t3.small"}
        self.wired.join(f"t3-x{self.joined}", capacity="spot", labels=labels, cpu="1")

    def join_on_demand(self) -> None:
        self.joined += 1
        self.wired.join(f"od-x{self.joined}")

    def fill(self, family: str) -> None:
        """Let pods of others take most of what the first node of a family has free."""
        for name in self.nodes(family)[:1]:
            self.filled += 1
            selector = {"kubernetes.io/hostname": name}
            filler = deployment(
                f"filler-{self.filled}", replicas=4, cpu="900m", nodeSelector=selector
            )
            self.wired.apply(filler, settle=0)

    def fill_on_demand(self) -> None:
        self.fill("od")

    def fill_spot(self) -> None:
        self.fill("c5")

    def empty(self) -> None:
        for n in range(1, self.filled + 1):
            path = WEB.replace("web", f"filler-{n}")
            self.patch(path, {"spec": {"replicas": 0}})

    def cordon(self) -> None:
        for name in self.nodes("od")[:1]:
            self.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})

    def uncordon(self) -> None:
        for name in self.nodes("od"):
            self.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})


EVENTS: Final[list[Callable[[Life], None]]] = [
    Life.scale_up,
    Life.scale_down,
    Life.roll_out,
    Life.lose_all_spot,
    Life.lose_one,
    Life.lose_m5,
    Life.lose_on_demand,
    Life.join,
    Life.join_tiny,
    Life.join_on_demand,
    Life.fill_on_demand,
    Life.fill_spot,
    Life.empty,
    Life.cordon,
    Life.uncordon,
]


def live_through(history: list[Callable[[Life], None]], cpu: str) -> None:
    life = Life(cpu)
    for event in history:
        event(life)
        life.pass_minutes(TWO_RUNS)
        ready, could = on_demand(life.wired.api.observe(), REF)
        assert ready >= min(FLOOR, could), f"after {event.__name__}: {ready} of {could}"
    life.pass_minutes(5 * 12)
    version = life.wired.version()
    life.pass_minutes(5)
    assert life.wired.version() == version, "the return to spot never ends"


HISTORIES: Final = st.lists(st.sampled_from(EVENTS), max_size=6)
CPU: Final = st.sampled_from(["8", "2"])
"""Of the nodes at the start: plenty, and just enough for the workload."""


@settings(max_examples=15, deadline=None)
@given(HISTORIES, CPU)
def test_the_floor_is_back_within_two_runs_and_nobody_waits(history, cpu):
    live_through(history, cpu)


@pytest.mark.long
@settings(max_examples=1000, deadline=None)
@given(HISTORIES, CPU)
def test_a_thousand_histories(history, cpu):
    live_through(history, cpu)
