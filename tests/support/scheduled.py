"""A fake cluster with every function on its schedule, minute by minute."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from plimsoll.domain.actions import Release
from plimsoll.domain.observation import Observation
from tests.support.floors import waits_in_vain
from tests.support.workload_sets import WiredServices

DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
MERGE: Final = "application/merge-patch+json"
PLACEMENT_MINUTES: Final = 5
MOVE: Final = re.compile(r"of its pods stand on .* and [0-9]+ on ")
"""In the reason of a move; a drain releases pods for other reasons."""


class ScheduledCluster:
    """Lets resync, placement and the reconciles that they wake run, in virtual time."""

    def __init__(self, wired: WiredServices) -> None:
        self.wired = wired
        self.minutes = 0
        self.waited_in_vain: set[str] = set()
        """Pods that our constraint alone kept Pending for longer than it may."""
        self.moves: Counter[str] = Counter()
        """By workload: pods that were released for placement alone."""

    @property
    def seen(self) -> Observation:
        return self.wired.api.observe()

    def pass_minutes(self, count: int) -> None:
        for _ in range(count):
            if self.minutes % PLACEMENT_MINUTES == 0:
                self.wired.placement.run()
            self.wired.resync.run()
            self.reconcile()
            self.wired.sleep(60)
            self.minutes += 1
            self.waited_in_vain |= set(waits_in_vain(self.seen, self.wired.time))
            self.count_moves()

    def count_moves(self) -> None:
        for _, facts in self.wired.telemetry.said:
            if facts.get("action") == Release.verb and MOVE.search(str(facts["because"])):
                self.moves[str(facts["target"]).partition("/")[2].rsplit("-", 2)[0]] += 1
        self.wired.telemetry.said.clear()

    def reconcile(self) -> None:
        """Let the drain do what it was woken for, and whatever that wakes."""
        while self.wired.wake_ups.sent:
            self.wired.wake_ups.sent.clear()
            self.wired.drains.reconcile("harbor", "me", seconds=30)

    def patch(self, path: str, body: Mapping[str, Any]) -> None:
        answer = self.wired.fake_cluster.handle(
            "PATCH", path, body=body, content_type=MERGE, now=self.wired.time
        )
        assert answer.status == 200, answer.body

    def scale(self, name: str, replicas: int) -> None:
        self.patch(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": replicas}})

    def roll_out(self, name: str) -> None:
        stamp = {"metadata": {"annotations": {"minute": str(self.minutes)}}}
        self.patch(f"{DEPLOYMENTS}/{name}", {"spec": {"template": stamp}})

    def nodes(self, *families: str) -> list[str]:
        return sorted(n.name for n in self.wired.api.nodes() if n.name.startswith(families))

    def join_spot(self, name: str, family: str, **how: Any) -> None:
        labels = {"node.kubernetes.io/instance-type": f"{family}.large"}
        self.wired.join(name, capacity="spot", labels=labels, **how)

    def lose(self, names: Iterable[str]) -> None:
        """Let instances get their notice, and be gone with their nodes three minutes later."""
        names = list(names)
        instances = [self.wired.node(name).instance or "" for name in names]
        assert not any(self.wired.notices.receive([self.wired.spot_event(i) for i in instances]))
        self.pass_minutes(3)
        self.remove(names)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self.wired.fake_cluster.handle("DELETE", f"/api/v1/nodes/{name}", now=self.wired.time)

    def evict(self, *, node: str) -> None:
        """Let somebody else empty a node through the eviction API, as an autoscaler does."""
        for pod in self.wired.pods_on(node):
            path = f"/api/v1/namespaces/default/pods/{pod}"
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
            self.wired.fake_cluster.handle(
                "POST", f"{path}/eviction", body=eviction, now=self.wired.time
            )
