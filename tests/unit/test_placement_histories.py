"""Generated histories of scaling, rollouts, losses and returns: what must hold after each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.services.wiring import Services
from tests.support.floors import a_cluster, standing, web
from tests.support.workload_sets import WiredServices

FLOOR: Final = 3
WEB: Final = "/apis/apps/v1/namespaces/default/deployments/web"
PATCH: Final = "application/merge-patch+json"
TWO_RUNS: Final = 11
"""Minutes: within two placement runs of any change, the floor and the spread are back."""
PENDING: Final = 90.0


class Life:
    """A cluster that lives through a history, minute by minute."""

    def __init__(self) -> None:
        self.wired: WiredServices = a_cluster()
        self.minutes = 0
        self.joined = 0
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
            self.nobody_waits_for_long()

    def nobody_waits_for_long(self) -> None:
        waiting = [
            pod.name
            for pod in self.wired.api.observe().pods
            if pod.pending and (self.wired.time - pod.created).total_seconds() > PENDING
        ]
        assert waiting == []

    def patch(self, spec: Mapping[str, Any]) -> None:
        answer = self.wired.hollow.handle(
            "PATCH", WEB, body={"spec": spec}, content_type=PATCH, now=self.wired.time
        )
        assert answer.status == 200, answer.body

    def scale_up(self) -> None:
        self.patch({"replicas": 12})

    def scale_down(self) -> None:
        self.patch({"replicas": 9})

    def roll_out(self) -> None:
        stamp = {"metadata": {"annotations": {"minute": str(self.minutes)}}}
        self.patch({"template": stamp})

    def lose(self, *families: str) -> None:
        names = [n.name for n in self.wired.api.nodes() if n.name.startswith(families)]
        instances = [self.wired.node(name).instance or "" for name in names]
        assert not any(self.wired.notices.receive([self.wired.spot_event(i) for i in instances]))
        self.pass_minutes(3)
        for name in names:
            self.wired.hollow.handle("DELETE", f"/api/v1/nodes/{name}", now=self.wired.time)

    def lose_all(self) -> None:
        self.lose("m5", "c5", "r5")

    def lose_one(self) -> None:
        spot = sorted(n.name for n in self.wired.api.nodes() if n.capacity == "spot")
        if spot:
            self.lose(spot[0])

    def lose_m5(self) -> None:
        self.lose("m5")

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


EVENTS: Final[list[Callable[[Life], None]]] = [
    Life.scale_up,
    Life.scale_down,
    Life.roll_out,
    Life.lose_all,
    Life.lose_one,
    Life.lose_m5,
    Life.join,
    Life.join_tiny,
]


def live_through(history: list[Callable[[Life], None]]) -> None:
    life = Life()
    for event in history:
        event(life)
        life.pass_minutes(TWO_RUNS)
        stands = standing(life.wired)
        wanted = life.wired.get(WEB)["spec"]["replicas"]
        assert stands.total() == wanted, f"after {event.__name__}: {stands}"
        assert stands["od"] >= FLOOR, f"after {event.__name__}: {stands}"
    life.pass_minutes(5 * 12)
    version = life.wired.version()
    life.wired.placement.run()
    assert life.wired.version() == version, "the return to spot never ends"


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(EVENTS), max_size=5))
def test_the_floor_is_back_within_two_runs_and_nobody_waits(history):
    live_through(history)


@pytest.mark.long
@settings(max_examples=1000, deadline=None)
@given(st.lists(st.sampled_from(EVENTS), max_size=8))
def test_a_thousand_histories(history):
    live_through(history)
