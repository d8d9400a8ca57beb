"""What the planner of the queues is granted is what its table of calls lists, and what it really asks."""

from __future__ import annotations

from typing import Any

import yaml

from plimsoll.adapters.kubernetes import Response
from plimsoll_batch.adapters.kubernetes.calls import CALLS
from tests.support.queue_scenes import Scene, a_bare_pod, a_training

from .rights import CLUSTER, Asked

TABLE = {(c.verb, c.group, c.resource, c.only_in, c.only) for c in CALLS}


def test_what_is_granted_is_what_the_table_of_calls_lists() -> None:
    granted = {
        (verb, group, resource, document["metadata"].get("namespace"), name)
        for document in yaml.safe_load_all((CLUSTER / "batch" / "rbac.yaml").read_text())
        for rule in document.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", (None,))
    }
    assert granted == TABLE


def test_everything_that_is_granted_is_asked_and_nothing_else() -> None:
    scene = Scene(nodes=7, pod_stop=2)
    asked: set[tuple[str, str, str]] = set()
    call = scene.wire.call

    def noted(method: str, path: str, **more: Any) -> Response:
        asked.add(Asked.of(method, path, more.get("query")).right)
        return call(method, path, **more)

    scene.wire.call = noted  # type: ignore[method-assign] # it listens
    scene.submit(*a_training("low", annotations={"plimsoll.dev/lease-nodes": "true"}))
    scene.submit(a_bare_pod("alone"))
    touched: set[str] = set()
    scene.wire.before = lambda method, path, _: _touch(scene, touched, method, path)
    scene.run(20)
    scene.submit(*a_training("high", annotations={"plimsoll.dev/priority": "10"}))
    scene.run(20)
    assert scene.running("high-ps", "high-workers") == 6
    assert asked == {(verb, group, resource) for verb, group, resource, *_ in TABLE}


def _touch(scene: Scene, touched: set[str], method: str, path: str) -> None:
    """Let a Job, or a bare pod, change once beside the planner, as others change it: it is read again."""
    if method == "PATCH" and path not in touched and path.endswith(("low-ps", "alone")):
        touched.add(path)
        scene.play.patch(path, {"metadata": {"annotations": {"theirs": "1"}}})
