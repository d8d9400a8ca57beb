"""What a watch tells, and what it can no longer tell."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll_simulation.fake_cluster import store
from plimsoll_simulation.fake_cluster.routes import target_of
from plimsoll_simulation.fake_cluster.watching import Watch
from tests.support.fake_clusters import NODES, PODS, Play, a_pod


def watching(play: Play, path: str, **query: str) -> Watch:
    target = target_of(path)
    assert target is not None
    return Watch(play.cluster.store, target, query)


def messages(watch: Watch) -> list[tuple[str, Any]]:
    return [(e["type"], e["object"].get("metadata", {}).get("name")) for e in watch.news()]


def test_a_watch_sees_only_its_namespace_and_its_selector(play: Play):
    watch = watching(play, PODS, fieldSelector="spec.nodeName=a")
    other = a_pod("other")
    other["metadata"]["namespace"] = "kube-system"
    play.apply(a_pod("x"), a_pod("y"), other)
    play.wait(1)
    (here,) = play.pods_on("a") & {"x", "y"}
    assert messages(watch) == [("ADDED", here)]


def test_a_version_that_is_no_longer_kept_is_an_error_event_with_410(
    play: Play, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(store, "_KEPT", 10)
    play = Play()
    play.nodes("a")
    version = play.get(NODES)["metadata"]["resourceVersion"]
    for i in range(20):
        play.patch(f"{NODES}/a", {"metadata": {"labels": {"x": str(i)}}})
    watch = watching(play, NODES, resourceVersion=version)
    (event,) = watch.news()
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert watch.over
