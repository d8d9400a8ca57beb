"""The whole way on a fake cluster: read by the agent, advised, accepted, executed, and seen."""

from __future__ import annotations

from base64 import b64encode
from copy import deepcopy
from datetime import timedelta

import pytest

from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.workers import SerialWorkers
from plimsoll_agent.cluster_reader import ClusterReader
from plimsoll_agent.snapshots import full_snapshot
from plimsoll_service.services import instructions
from plimsoll_service.wire.snapshot import Snapshot
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support import fake_clusters
from tests.support.advised import SIGNER, AdvisedCluster
from tests.unit.agent.test_instruction_executor import CLUSTER, Site

PRICED = {
    "node.kubernetes.io/instance-type": "m5.2xlarge",
    "node.kubernetes.io/capacity": "on-demand",
    "kubernetes.io/arch": "amd64",
}
MONTHLY = 0.384 * 730


class Loop:
    """A cluster with its agent, and the service."""

    def __init__(self, **policy: str) -> None:
        key = f"{SIGNER.key_id}:{b64encode(SIGNER.public_key()).decode()}"
        self.site = Site(**{"instruction-keys": key} | policy)
        self.site.cluster.join(fake_clusters.a_node("full", cpu="0"), now=self.site.clock.now())
        for name in ("old", "new"):
            self.site.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": PRICED}})
        self.site.clock.sleep(timedelta(minutes=16).total_seconds())
        self.service = AdvisedCluster(time=self.site.clock.now())

    def told(self) -> Snapshot:
        """Return what the agent reads."""
        transport = FakeTransport(self.site.cluster, self.site.clock)
        reader = ClusterReader(
            Requests(transport=transport, cluster=CLUSTER),
            SerialWorkers(),
            self.site.clock,
            lambda _: None,
        )
        return full_snapshot(
            reader.read(),
            cluster_id=CLUSTER,
            epoch="e-1",
            sequence=1,
            now=self.site.clock.now(),
        )

    def advise(self) -> None:
        """Let the service and the cluster live on by a minute, and advise on what the agent tells."""
        self.site.clock.sleep(60)
        self.service.time = self.site.clock.now() - timedelta(minutes=1)
        self.service.advise(self.told())

    def execute(self) -> str:
        waiting = instructions.pending(self.service.data, "harbor").instructions
        self.site.service.waiting[:] = waiting
        self.site.executor.round()
        results = self.site.service.results
        instructions.report(self.service.data, "harbor", results, self.service.time)
        return results[-1].outcome


def test_an_idle_node_is_found_in_a_cluster_as_the_agent_reads_it():
    loop = Loop()
    loop.advise()
    (found,) = (each for name, each in loop.service.all().items() if "consolidate" in name)
    assert found.about.name == "new"
    assert found.monthly == pytest.approx(MONTHLY, abs=0.01)


def test_what_is_accepted_is_carried_out_and_seen_once_the_node_is_gone():
    loop = Loop()
    loop.site.patch("/api/v1/nodes/new", {"spec": {"unschedulable": True}})
    loop.advise()
    assert "consolidate-node new" not in loop.service.all()  # somebody cordoned it
    loop.site.patch("/api/v1/nodes/new", {"spec": {"unschedulable": None}})
    loop.advise()
    loop.service.accept("consolidate-node new")
    loop.advise()
    assert loop.execute() == "done"
    assert loop.site.node("new")["spec"]["unschedulable"]
    assert loop.site.on("old") == 2
    loop.advise()
    done = loop.service.all()["consolidate-node new"]
    assert (done.state, done.seen_at) == ("done", None)
    loop.site.cluster.store.remove("nodes", "", "new", now=loop.site.clock.now())
    loop.advise()
    assert loop.service.all()["consolidate-node new"].seen_at == loop.service.time


def test_after_a_restore_the_executor_still_takes_what_is_asked():
    loop = Loop()
    loop.advise()
    before = deepcopy(loop.service.data)
    for restored in (False, True):
        if restored:  # the tables of an hour ago, in which the first instruction was never made
            loop.site.patch("/api/v1/nodes/new", {"spec": {"unschedulable": None}})
            loop.site.clock.sleep(
                timedelta(minutes=61).total_seconds()
            )  # the owner allows one an hour
            before.clock = loop.service
            loop.service.data = before
        loop.advise()
        loop.service.accept("consolidate-node new")
        loop.advise()
        assert loop.execute() == "done"
        assert loop.site.node("new")["spec"]["unschedulable"]


def test_pods_are_moved_off_the_emptier_node_and_no_replica_is_missed():
    loop = Loop()
    loop.site.apply(deployment_on_new())
    loop.advise()
    loop.service.accept("consolidate-node old")
    loop.advise()
    loop.site.clock.lowest = 99
    assert loop.execute() == "done"
    assert (loop.site.on("old"), loop.site.on("new")) == (0, 6)
    assert loop.site.clock.lowest == 6
    loop.advise()
    assert loop.service.all()["consolidate-node old"].state == "done"


def test_an_owner_who_only_reads_is_told_what_would_be_done():
    loop = Loop(mode="read-only")
    loop.advise()
    loop.service.accept("consolidate-node new")
    loop.advise()
    assert loop.execute() == "would-do"
    assert loop.site.cluster_writes() == []
    loop.advise()
    assert loop.service.all()["consolidate-node new"].state == "refused"


def deployment_on_new():
    template = fake_clusters.a_template(
        "big", cpu="1", nodeSelector={"kubernetes.io/hostname": "new"}
    )
    return fake_clusters.a_deployment("big", 4, template)
