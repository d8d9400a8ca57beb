"""What Karpenter does to the node of an interrupted instance, held to by the simulated controller and by the program itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from plimsoll.domain.kubernetes import DO_NOT_DISRUPT

DISRUPTED = "karpenter.sh/disrupted"
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"


class Scene(Protocol):
    """One node of a NodePool that a pod of the Deployment `web` fills; nothing else has room for it."""

    node: str

    def interrupt(self) -> None:
        """Let the node's instance have its notice."""

    def until(self, holds: Callable[[], object], seconds: float) -> None:
        """Let time go on until something is so, which must come to pass within so many seconds."""

    def stays(self, holds: Callable[[], object], seconds: float) -> None:
        """Let so many seconds go by, through all of which something is so."""

    def nodes(self) -> Sequence[dict[str, Any]]:
        """The nodes of the NodePool."""

    def staying(self, node: str) -> Sequence[str]:
        """The pods on a node that were not told to go."""

    def open_budget(self) -> None:
        """Let the budget of `web` allow one disruption."""

    def protect(self, seconds: float) -> None:
        """Let the pod of `web` say that it is not to be disrupted up to the age that it has in so many seconds."""

    def scale(self, replicas: int) -> None:
        """Let `web` have so many replicas."""


def node_of(scene: Scene) -> dict[str, Any]:
    return next(n for n in scene.nodes() if n["metadata"]["name"] == scene.node)


def gone(scene: Scene) -> bool:
    return all(node["metadata"]["name"] != scene.node for node in scene.nodes())


def tainted(scene: Scene) -> bool:
    taints = node_of(scene)["spec"].get("taints") or ()
    return (DISRUPTED, "NoSchedule") in {(taint["key"], taint["effect"]) for taint in taints}


def protection(pod: dict[str, Any], now: datetime, seconds: float) -> dict[str, Any]:
    """Return the patch with which a pod is not to be disrupted for so many seconds."""
    age = now - datetime.fromisoformat(pod["status"]["startTime"])
    value = f"{int(age.total_seconds() + seconds)}s"
    return {"metadata": {"annotations": {DO_NOT_DISRUPT: value}}}


class KarpenterContract:
    """Whoever is a Karpenter inherits this and says what its fixtures `scene`, `held` and `full` are.

    The NodePool of `full` may have one node.
    """

    def test_it_taints_the_node_at_once_and_cordons_nothing(self, scene: Scene):
        scene.interrupt()
        scene.until(lambda: tainted(scene), 3)
        assert not node_of(scene)["spec"].get("unschedulable")
        assert node_of(scene)["metadata"]["labels"][EXCLUDED] == "karpenter"

    def test_it_evicts_although_nothing_serves_elsewhere(self, scene: Scene):
        assert scene.staying(scene.node) == ["web"]
        scene.interrupt()
        scene.until(lambda: not scene.staying(scene.node), 5)
        assert [node["metadata"]["name"] for node in scene.nodes()] == [scene.node]

    def test_it_ends_the_empty_node_and_makes_another_for_what_is_pending(self, scene: Scene):
        scene.interrupt()
        scene.until(lambda: gone(scene), 30)
        scene.until(lambda: any(map(scene.staying, names(scene))), 60)
        assert scene.node not in names(scene)

    def test_a_budget_holds_its_evictions_back_until_it_opens(self, held: Scene):
        held.interrupt()
        held.until(lambda: tainted(held), 3)
        held.stays(lambda: held.staying(held.node) == ["web"], 15)
        held.open_budget()
        held.until(lambda: not held.staying(held.node), 12)
        held.until(lambda: gone(held), 30)

    def test_it_leaves_a_pod_alone_up_to_the_age_that_the_pod_says(self, scene: Scene):
        """And buys nothing in its place."""
        scene.protect(25)
        scene.interrupt()
        scene.until(lambda: tainted(scene), 3)
        scene.stays(lambda: scene.staying(scene.node) == ["web"], 10)
        assert names(scene) == [scene.node]
        scene.until(lambda: not scene.staying(scene.node), 25)
        scene.until(lambda: gone(scene), 30)

    def test_a_node_counts_against_the_limits_until_it_hears_of_the_interruption(self, full: Scene):
        full.scale(2)
        full.stays(lambda: names(full) == [full.node], 8)
        full.protect(120)
        full.interrupt()
        full.until(lambda: len(names(full)) == 2, 60)
        assert full.staying(full.node) == ["web"]


def names(scene: Scene) -> list[str]:
    return [node["metadata"]["name"] for node in scene.nodes()]
