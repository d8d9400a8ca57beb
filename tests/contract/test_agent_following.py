"""The agent lists its cluster once, under its own rights, and goes by what watches tell from then on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import MissingRights, Temporary, Throttled
from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll_agent.cluster_reader import WATCH_SECONDS, ClusterReader
from plimsoll_agent.snapshots import full_snapshot
from plimsoll_agent.taint_forwarder import LIST_SECONDS, LOOK_SECONDS, SAID_AT, TaintForwarder
from plimsoll_service.wire.snapshot import Snapshot, delta
from plimsoll_service.wire.taints import FORWARDED, MOST_INSTANCES
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support import fake_clusters
from tests.support.builders import NOON
from tests.support.cli_environment import StillClock

from .conftest import Recorder
from .rights import Rights, granted_by

RBAC = Path(__file__).parents[2] / "agent" / "plimsoll_agent" / "manifests" / "rbac.yaml"


@dataclass
class Site:
    """A cluster, and its agent's reader under the rights of its manifests."""

    clock: StillClock = field(default_factory=StillClock)
    warnings: list[str] = field(default_factory=list)
    forwarded: list[tuple[str, ...]] = field(default_factory=list)
    refuses: Exception | None = None

    def __post_init__(self) -> None:
        self.cluster = FakeCluster(now=NOON)
        self.cluster.join(fake_clusters.a_node("a"), now=NOON)
        self.cluster.apply([fake_clusters.a_deployment("web", 3)], now=NOON)
        self.wait(60)
        transport = FakeTransport(self.cluster, self.clock)
        self.wire = Recorder(transport, Rights(granted=granted_by(RBAC)))
        self.reader = self.another()
        self.taints = TaintForwarder(self.requests, self.clock, self.forward, self.warnings.append)

    @property
    def requests(self) -> Requests:
        return Requests(transport=self.wire, cluster="harbor")

    def another(self) -> ClusterReader:
        return ClusterReader(self.requests, SerialWorkers(), self.clock, self.warnings.append)

    def forward(self, instances: Any) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.forwarded.append(tuple(instances))

    def wait(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        self.cluster.step(self.clock.now())

    def snapshot(self, sequence: int = 1, reader: ClusterReader | None = None) -> Snapshot:
        return full_snapshot(
            (reader or self.reader).read(),
            cluster_id="c-1",
            epoch="e-1",
            sequence=sequence,
            now=NOON,
        )

    def asked(self) -> Counter[str]:
        """Lists and watches that were begun since the last time; what nodes and pods use is only listed."""
        said = [
            "watches" if "watch" in query else f"lists {path.rpartition('/')[2]}"
            for method, path, query, _ in self.wire.asked
            if method == "GET" and path != "/version" and "metrics.k8s.io" not in path
        ]
        self.wire.asked.clear()
        return Counter(said)

    def patch(self, node: str, body: dict[str, Any]) -> None:
        path = f"/api/v1/nodes/{node}"
        now = self.clock.now()
        answer = self.cluster.handle("PATCH", path, {}, body, fake_clusters.MERGE, now=now)
        assert answer.status == 200, answer.body

    def taint(self, node: str, *keys: str) -> None:
        taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
        self.patch(node, {"spec": {"taints": taints}})

    def instance(self, node: str) -> str:
        found = self.cluster.store.must_get("nodes", "", node)
        return str(found["spec"]["providerID"]).rpartition("/")[2]


@pytest.fixture
def site() -> Site:
    return Site()


def not_installed(site: Site) -> set[str]:
    """Lists of kinds that are not there; what is used is no kind that can be watched."""
    kinds = {warning.split("list ")[1].split(":")[0] for warning in site.warnings}
    return {f"lists {k.rpartition('/')[2]}" for k in kinds if not k.startswith("metrics.k8s.io")}


# --- Snapshots -------------------------------------------------------------------------------------


def test_after_the_first_snapshot_nothing_that_is_installed_is_listed_again(site):
    first = site.snapshot()
    site.snapshot(2)
    site.asked()
    site.cluster.apply([fake_clusters.a_deployment("web", 5)], now=site.clock.now())
    site.wait(60)
    second = site.snapshot(3)
    assert {kind for kind in site.asked() if kind.startswith("lists")} <= not_installed(site)
    told = delta(first, second)
    assert len(second.pods) == 5
    assert len(told.pods) == 2
    assert [w.replicas for w in told.workloads] == [5]
    assert not told.nodes


def test_what_watches_tell_adds_up_to_what_a_list_says(site):
    """A hundred changes at random, each followed by a snapshot of both kinds."""
    random = Random(7)
    for number in range(100):
        now = site.clock.now()
        match random.randrange(5):
            case 0:
                site.cluster.join(fake_clusters.a_node(f"n-{number}"), now=now)
            case 1:
                name = random.choice("xyz")
                site.cluster.apply(
                    [fake_clusters.a_deployment(name, random.randint(0, 6))], now=now
                )
            case 2:
                site.patch("a", {"spec": {"unschedulable": random.choice([True, None])}})
            case 3:
                pods = list(site.cluster.store.all("pods"))
                meta = random.choice(pods)["metadata"] if pods else {}
                if meta:
                    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
                    site.cluster.handle("DELETE", path, now=now)
            case _:
                site.wait(random.choice([1, 20, WATCH_SECONDS + 1]))
        site.wait(1)
        assert by_uid(site.snapshot()) == by_uid(site.snapshot(reader=site.another()))


def by_uid(snapshot: Snapshot) -> list[Any]:
    parts = (snapshot.nodes, snapshot.pods, snapshot.workloads, snapshot.budgets)
    return [sorted(part, key=lambda each: each.uid) for part in parts]


def test_a_watch_is_resumed_where_it_ended(site):
    site.snapshot()
    site.snapshot()
    site.asked()
    site.wait(WATCH_SECONDS + 1)
    site.cluster.apply([fake_clusters.a_deployment("web", 4)], now=site.clock.now())
    site.wait(60)
    site.reader.follow()
    site.reader.follow()
    asked = site.asked()
    assert set(asked) == {"watches"}
    assert len(site.snapshot().pods) == 4


def test_what_is_no_longer_kept_is_listed_again_and_no_other_kind(site):
    site.snapshot()
    site.snapshot()
    site.wait(WATCH_SECONDS + 1)
    site.wire.at["/api/v1/pods"] = Response(status=410, body={"kind": "Status", "code": 410})
    site.reader.follow()
    site.reader.follow()
    del site.wire.at["/api/v1/pods"]
    site.asked()
    site.cluster.apply([fake_clusters.a_deployment("web", 4)], now=site.clock.now())
    site.wait(60)
    assert len(site.snapshot().pods) == 4
    listed = {kind for kind in site.asked() if kind.startswith("lists")}
    assert listed - not_installed(site) == {"lists pods"}


def test_without_the_right_to_watch_it_lists_each_time_until_it_gets_it(site):
    granted = site.wire.rights.granted
    site.wire.rights.granted = [grant for grant in granted if grant.verb != "watch"]
    site.snapshot()
    site.cluster.apply([fake_clusters.a_deployment("web", 4)], now=site.clock.now())
    site.wait(60)
    assert len(site.snapshot().pods) == 4
    site.asked()
    site.reader.follow()
    assert not site.asked(), "what was refused is not asked for again before the next snapshot"
    site.wire.rights.granted = granted
    site.snapshot()
    site.asked()
    site.snapshot()
    assert "lists pods" not in site.asked()


def test_an_outage_costs_no_list(site):
    site.snapshot()
    site.snapshot()
    site.cluster.take_api_away(now=site.clock.now())
    site.wait(1)
    for ask in (site.reader.follow, site.reader.read):
        with pytest.raises(Temporary):
            ask()
    site.cluster.bring_api_back(now=site.clock.now())
    site.cluster.apply([fake_clusters.a_deployment("web", 4)], now=site.clock.now())
    site.wait(60)
    site.asked()
    assert len(site.snapshot().pods) == 4
    assert "lists pods" not in site.asked()


# --- Interruption taints -----------------------------------------------------------------------------

SPOT_ITN, MAINTENANCE = FORWARDED


def test_a_taint_is_forwarded_at_the_next_look_and_twice_more(site):
    site.taints.round()
    site.taint("a", SPOT_ITN)
    began, said = site.clock.now(), []
    while site.clock.now() - began < timedelta(minutes=2):
        before = len(site.forwarded)
        pause = site.taints.round()
        said += [site.clock.now() - began] * (len(site.forwarded) - before)
        site.wait(pause)
    assert len(said) == len(SAID_AT)
    for when, planned in zip(said, SAID_AT, strict=True):
        assert planned <= when <= planned + timedelta(seconds=3 * LOOK_SECONDS)
    assert set(site.forwarded) == {(site.instance("a"),)}


@pytest.mark.parametrize(
    "keys",
    [
        (),
        ("node.kubernetes.io/not-ready",),
        ("karpenter.sh/disrupted",),
        ("aws-node-termination-handler/rebalance-recommendation",),
        (SPOT_ITN, INTERRUPTION),
    ],
)
def test_what_ec2_cannot_confirm_or_the_pipeline_knows_already_is_not_forwarded(site, keys):
    site.taint("a", *keys)
    site.taints.round()
    site.taints.round()
    assert site.forwarded == []


def test_it_falls_silent_as_soon_as_the_pipeline_has_cordoned_the_node(site):
    site.taint("a", SPOT_ITN)
    site.taints.round()
    site.taint("a", SPOT_ITN, INTERRUPTION)
    site.wait(60)
    site.taints.round()
    assert len(site.forwarded) == 1


def test_a_taint_that_comes_back_is_forwarded_anew(site):
    site.taint("a", SPOT_ITN)
    for keys in ((), (MAINTENANCE,)):
        site.taints.round()
        site.taint("a", *keys)
        site.wait(1)
    site.taints.round()
    assert len(site.forwarded) == 2


def test_what_the_service_did_not_take_is_said_again(site):
    site.taint("a", SPOT_ITN)
    site.refuses = Throttled("later", retry_after=20)
    with pytest.raises(Throttled):
        site.taints.round()
    site.refuses = None
    site.wait(1)
    site.taints.round()
    assert site.forwarded == [(site.instance("a"),)]


def test_a_storm_is_told_in_few_requests_none_of_them_too_large(site):
    for number in range(MOST_INSTANCES + 20):
        node = fake_clusters.a_node(f"spot-{number}")
        node["spec"]["providerID"] = f"aws:///us-east-1a/i-{number:017x}"
        site.cluster.join(node, now=site.clock.now())
        site.taint(f"spot-{number}", SPOT_ITN)
    site.taints.round()
    assert [len(batch) for batch in site.forwarded] == [MOST_INSTANCES, 20]


def test_nodes_are_listed_once_and_then_watched_and_listed_rarely_where_that_is_refused(site):
    site.taints.round()
    site.asked()
    for _ in range(10):
        assert site.taints.round() == LOOK_SECONDS
        site.wait(LOOK_SECONDS)
    assert set(site.asked()) == {"watches"}

    site.wire.rights.granted = [g for g in site.wire.rights.granted if g.verb != "watch"]
    site.wait(60)
    while site.taints.round() == LOOK_SECONDS:
        site.wait(LOOK_SECONDS)
    assert site.taints.round() == LIST_SECONDS
    site.taint("a", SPOT_ITN)
    site.taints.round()
    assert site.forwarded == [(site.instance("a"),)]


def test_without_the_right_to_list_nodes_it_says_so(site):
    site.wire.rights.granted = []
    with pytest.raises(MissingRights):
        site.taints.round()
