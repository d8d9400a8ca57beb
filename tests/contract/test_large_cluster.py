"""The API server of `benchmarks/large_cluster` answers our own adapter as a real one does."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from benchmarks.large_cluster.objects import ON_NODE, LargeCluster
from benchmarks.large_cluster.server import served
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.workers import SerialWorkers

PODS = 40 * ON_NODE


@pytest.fixture(scope="module")
def address() -> Iterator[dict[str, str]]:
    with served(PODS) as address:
        yield address


def test_every_object_is_read_and_the_volumes_stand_where_their_pods_are(
    address: dict[str, str],
) -> None:
    transport = ClientTransport(address["url"], ca=address["ca"])
    seen = KubernetesCluster(transport, "large", SystemClock(), workers=SerialWorkers()).observe()
    assert not seen.left_out
    assert (len(seen.nodes), len(seen.pods)) == (PODS // ON_NODE, PODS)
    owners = {workload.ref for workload in seen.workloads} | {
        s.ref for s in seen.replica_sets.values()
    }
    assert {p.owner for p in seen.pods if p.owner and p.owner.kind != "DaemonSet"} <= owners
    zones = {node.name: node.zone for node in seen.nodes}
    mounted = [(p, seen.claims[p.namespace, c]) for p in seen.pods for c in p.scheduling.claims]
    assert mounted
    assert all(claim.node_requirements[0][1] == (zones[p.node or ""],) for p, claim in mounted)


def test_a_watch_tells_of_a_patch_and_then_where_it_is(address: dict[str, str]) -> None:
    transport = ClientTransport(address["url"], ca=address["ca"])
    listed = transport.call("GET", "/api/v1/nodes", query={"limit": "7"}).body
    assert len(listed["items"]) == 7
    assert listed["metadata"]["continue"]
    name = next(iter(LargeCluster(PODS).spot(1)))
    patch = {"spec": {"unschedulable": True}}
    kind = "application/merge-patch+json"
    transport.call("PATCH", f"/api/v1/nodes/{name}", body=patch, content_type=kind)
    since = listed["metadata"]["resourceVersion"]
    query = f"watch=true&resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=6"
    context = ssl.create_default_context(cadata=address["ca"])
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with urlopen(f"{address['url']}/api/v1/nodes?{query}", context=context) as answer:
        events = [json.loads(line) for line in answer]
    assert [event["type"] for event in events][:2] == ["MODIFIED", "BOOKMARK"]
    assert events[0]["object"]["metadata"]["name"] == name
    assert events[1]["object"]["metadata"]["resourceVersion"] > since
