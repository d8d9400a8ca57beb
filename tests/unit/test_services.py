"""From a body in the queue to a moved workload, over a hollow cluster in the same process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from plimsoll.domain.clusters import Mode
from plimsoll.domain.errors import BadInput, Permanent, Refused, Temporary, Throttled
from plimsoll.domain.names import INTERRUPTION
from plimsoll.domain.nodes import Node
from plimsoll.domain.notices import SpotInterruption
from plimsoll.services import executor
from plimsoll.services.delivery import SLOW_WAKE_UPS, URGENT_WAKE_UPS
from plimsoll.services.lease import LEASE_SECONDS
from tests.support.builders import a_group
from tests.support.workload_sets import WiredServices, deployment

WEB = "/apis/apps/v1/namespaces/default/deployments/web"


@pytest.fixture
def world():
    return WiredServices()


def a_spot_notice(world: WiredServices, instance: str) -> SpotInterruption:
    """Return what EC2 says of an instance, under an id that no event has."""
    return SpotInterruption(
        instance=instance,
        time=world.time,
        account="111122223333",
        region="us-east-1",
        id="found",
        action="terminate",
    )


def handled(world: WiredServices, *bodies: str) -> None:
    assert world.notices.receive(bodies) == [None] * len(bodies)


def test_a_notice_cordons_taints_and_records_in_one_patch(world):
    instance = world.join("spot", capacity="spot")
    version = int(world.node("spot").resource_version)

    handled(world, world.spot_event(instance))

    node = world.node("spot")
    assert node.unschedulable
    assert [(t.key, t.value) for t in node.taints if t.key == INTERRUPTION] == [
        (INTERRUPTION, "spot-interruption")
    ]
    assert node.interruption is not None
    assert node.interruption.deadline == world.time + timedelta(seconds=118)
    assert int(node.resource_version) == version + 1


def test_a_notice_delivered_twice_writes_once_and_wakes_the_drain_twice(world):
    instance = world.join("spot", capacity="spot")
    body = world.spot_event(instance)
    handled(world, body)
    world.sleep(1)
    version = world.node("spot").resource_version

    handled(world, body, body)

    assert world.node("spot").resource_version == version
    assert [d for _, d in world.wake_ups.sent] == [*URGENT_WAKE_UPS, *URGENT_WAKE_UPS]


def test_a_batch_wakes_its_cluster_once(world):
    bodies = [world.spot_event(world.join(f"spot-{n}", capacity="spot")) for n in range(3)]

    handled(world, *bodies)

    assert len(world.wake_ups.sent) == len(URGENT_WAKE_UPS)


def test_an_indexed_instance_costs_no_call_to_ec2(world):
    instance = world.join("spot", capacity="spot")
    world.resync.run()
    world.aws.described.clear()

    handled(world, world.spot_event(instance))

    assert world.aws.described == []
    assert world.node("spot").unschedulable


def test_an_instance_that_is_not_ours_is_acknowledged_and_counted(world):
    handled(world, world.spot_event("i-0aaaaaaaaaaaaaaaa"))

    assert [message for message, _ in world.telemetry.said] == ["notice not ours"]
    assert world.telemetry.metrics["NoticesNotOurs"] == 1
    assert world.wake_ups.sent == []


def test_what_ec2_cannot_say_now_comes_back(world):
    world.join("spot", capacity="spot")
    world.aws.fails = Temporary("EC2 is away")

    (outcome,) = world.notices.receive([world.spot_event("i-0bbbbbbbbbbbbbbbb")])

    assert isinstance(outcome, Temporary)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not json",
        "[]",
        "x" * 300_000,
        '{"detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2"}',
    ],
    ids=["empty", "words", "a list", "300 kB", "no detail"],
)
def test_poison_is_permanent_and_does_not_hurt_its_neighbours(world, body):
    instance = world.join("spot", capacity="spot")

    bad, good = world.notices.receive([body, world.spot_event(instance)])

    assert isinstance(bad, Permanent)
    assert good is None
    assert world.node("spot").unschedulable


def test_an_unknown_event_is_acknowledged_and_counted(world):
    handled(
        world, '{"source": "aws.ec2", "detail-type": "EBS Snapshot Notification", "detail": {}}'
    )

    ((_, facts),) = world.telemetry.said
    assert "no kind of event that we know" in str(facts["because"])
    assert world.telemetry.metrics["NoticesIgnored"] == 1


@pytest.mark.parametrize("how", [{"mode": Mode.OBSERVE}, {"kill_switch": True}], ids=str)
def test_an_observed_cluster_is_planned_for_and_reported_but_not_written_to(how):
    world = WiredServices(**how)
    instance = world.join("spot", capacity="spot")
    world.apply(deployment())
    world.join("od")
    version = world.version()

    handled(world, world.spot_event(instance))
    world.drains.reconcile("harbor", "me")
    world.resync.run()

    assert world.version() == version
    assert world.wake_ups.sent == []
    (report,) = world.reports.list("harbor")
    assert any(reason.startswith("would release Pod default/web") for reason in report.reasons)


def test_a_slice_moves_a_deployment_without_losing_a_ready_replica(world):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=3))
    world.join("od")
    handled(world, world.spot_event(instance))
    lowest = 3

    for turn in range(4):
        world.drains.reconcile("harbor", f"reconcile-{turn}")
        lowest = min(lowest, world.ready("web"))
        world.sleep(1)

    assert lowest == 3
    assert world.pods_on("spot") == []
    assert len(world.pods_on("od")) == 3
    web = world.get(WEB)
    assert web["spec"]["replicas"] == 3
    (report,) = world.reports.list("harbor")
    assert report.lowest_ready == {"Deployment default/web": 3}
    assert report.emptied is not None


def test_a_release_that_is_refused_is_not_tried_again_in_the_same_reconcile(world, monkeypatch):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=1))
    world.join("od")
    handled(world, world.spot_event(instance))
    tried = []

    def refuse(pod, *_):
        tried.append(pod.name)
        raise Refused("a policy denies it")

    monkeypatch.setattr(world.api, "release", refuse)
    world.drains.reconcile("harbor", "me")

    assert len(tried) == 1
    (report,) = world.reports.list("harbor")
    assert any("a policy denies it" in reason for reason in report.reasons)


@pytest.mark.parametrize(("by_owner", "asked"), [(False, [("base", 1)]), (True, [])])
def test_an_instance_that_its_owner_terminates_buys_no_capacity(world, by_owner, asked):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=3, cpu="2"))
    world.aws.groups = [a_group("base", desired=0)]
    world.aws.known[instance] = replace(
        world.aws.known[instance], state="shutting-down", ended_by_owner=by_owner
    )
    handled(world, world.state_event(instance, "shutting-down"))

    world.drains.reconcile("harbor", "me", seconds=0)

    assert world.aws.asked == asked


def test_capacity_is_asked_for_in_the_first_look(world):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=3, cpu="2"))
    world.aws.groups = [a_group("base", desired=0)]
    handled(world, world.spot_event(instance))

    world.drains.reconcile("harbor", "me", seconds=0)

    assert world.aws.asked == [("base", 1)]


def test_a_slice_begins_nothing_more_when_its_time_is_over(world, monkeypatch):
    monkeypatch.setattr(executor, "TOGETHER", 1)
    instance = world.join("spot", capacity="spot")
    world.apply(deployment("web"), deployment("shop"))
    world.join("od")
    handled(world, world.spot_event(instance))

    world.drains.reconcile("harbor", "me", seconds=0)

    assert 0 < sum(pod.released for pod in world.api.observe().pods) < 6


@pytest.mark.parametrize("looks", [1, 2])
def test_nobody_takes_the_lease_while_a_look_lasts_long(world, monkeypatch, looks):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment("web"))
    world.join("od")
    handled(world, world.spot_event(instance))
    observe, taken = world.api.observe, []

    def slowly():
        world.sleep(1.5 * LEASE_SECONDS)
        taken.append(world.api.acquire("another", LEASE_SECONDS))
        return observe()

    monkeypatch.setattr(world.api, "observe", slowly)
    world.drains.reconcile("harbor", "me", seconds=40 * (looks - 1))

    assert taken == [False] * looks


def test_a_slice_looks_when_a_pod_has_to_be_told_and_not_a_second_later(world, monkeypatch):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment("web", replicas=1))
    handled(world, world.spot_event(instance))
    deadline = world.node("spot").interruption.deadline
    grace = timedelta(seconds=10)  # of the pods of `deployment`
    world.sleep(((deadline - grace) - world.time).total_seconds() - 2.4)
    evict, told = world.api.evict, []

    def evicted(pod, grace_seconds=None):
        told.append((world.time, grace_seconds))
        evict(pod, grace_seconds)

    monkeypatch.setattr(world.api, "evict", evicted)
    world.drains.reconcile("harbor", "me", seconds=10)

    assert told[0] == (deadline - grace, None)


class Interrupted(WiredServices):
    """A world in which something happens in the first pause of a reconcile."""

    meanwhile: Callable[[], None] | None = None

    def sleep(self, seconds: float) -> None:
        then, self.meanwhile = self.meanwhile, None
        if then is not None:
            then()
        super().sleep(seconds)


def test_what_others_asked_for_during_a_slice_is_not_asked_for_again():
    world = Interrupted()
    instance = world.join("spot", capacity="spot")
    world.join("od")
    world.apply(deployment("web", replicas=1))
    world.aws.groups = [a_group("base", desired=0)]
    handled(world, world.spot_event(instance))

    def another_reconcile_asks() -> None:
        world.apply(deployment("more", replicas=1, cpu="8"))
        world.aws.groups = [a_group("base", desired=1)]

    world.meanwhile = another_reconcile_asks
    world.drains.reconcile("harbor", "me")

    assert world.aws.asked == []


def test_a_report_is_there_before_the_first_pause_for_a_slice_may_be_killed_in_it():
    world = Interrupted()
    instance = world.join("spot", capacity="spot")
    world.apply(deployment("web", replicas=1))
    handled(world, world.spot_event(instance))
    found: list[str] = []

    world.meanwhile = lambda: found.extend(r.node for r in world.reports.list("harbor"))
    world.drains.reconcile("harbor", "me")

    assert found == ["spot"]


def test_a_drain_goes_on_without_its_node_groups(world):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=1))
    world.join("od")
    handled(world, world.spot_event(instance))
    world.aws.fails = Temporary("Auto Scaling is away")

    world.drains.reconcile("harbor", "me")

    assert len(world.pods_on("od")) == 1
    assert "node groups not read" in world.telemetry.warned


def test_a_slice_ends_at_once_while_another_is_at_work(world):
    world.join("spot", capacity="spot")
    assert world.api.acquire("other", 30)

    assert world.drains.reconcile("harbor", "me") == 0


def test_the_lease_of_a_slice_that_was_killed_runs_out(world):
    world.join("od")
    assert world.api.acquire("killed", 10)
    world.sleep(11)

    assert world.drains.reconcile("harbor", "me") == 1


def test_a_tick_for_a_cluster_that_was_removed_is_nothing_to_do(world):
    assert world.drains.reconcile("elsewhere", "me") == 0
    assert world.telemetry.warned == ["wake-up for a cluster that is not registered"]


def test_the_sweep_finds_what_no_event_told(world):
    instance = world.join("spot", capacity="spot")
    world.aws.silent = [a_spot_notice(world, instance)]

    assert world.resync.run() == 0  # it was not open when the resync looked
    assert world.node("spot").unschedulable
    assert world.resync.run() == 1


def test_the_sweep_wakes_clusters_with_something_open_and_only_those(world):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=1))
    world.resync.run()
    assert world.wake_ups.sent == []

    handled(world, world.spot_event(instance))
    world.wake_ups.sent.clear()
    world.resync.run()

    assert [d for _, d in world.wake_ups.sent] == list(SLOW_WAKE_UPS)


def test_a_cluster_in_which_nothing_can_be_done_is_not_woken(world):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=1))
    handled(world, world.rebalance_event(instance))
    world.drains.reconcile("harbor", "me")
    world.wake_ups.sent.clear()
    world.sleep(60)
    version = world.version()

    world.resync.run()

    assert len(world.pods_on("spot")) == 1
    assert world.wake_ups.sent == []
    assert world.version() == version


def test_a_reconcile_that_can_only_wait_ends_after_its_first_observation(world):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=1))
    handled(world, world.rebalance_event(instance))

    assert world.drains.reconcile("harbor", "me") == 1


def test_a_cluster_is_woken_when_a_node_group_may_be_asked_for_what_waits(world):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=1))
    handled(world, world.rebalance_event(instance))
    world.drains.reconcile("harbor", "me")
    world.wake_ups.sent.clear()
    world.aws.groups = [a_group("base", desired=0)]

    world.resync.run()

    assert [d for _, d in world.wake_ups.sent] == list(SLOW_WAKE_UPS)


@pytest.mark.parametrize("away", ["index", "reports", "aws"])
def test_the_resync_wakes_clusters_without_dynamodb_and_without_ec2(world, monkeypatch, away):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=1))
    handled(world, world.spot_event(instance))
    world.wake_ups.sent.clear()

    def fail(*_):
        raise Temporary("away")

    store, call = {
        "index": (world.index, "find"),
        "reports": (world.reports, "list"),
        "aws": (world.aws, "interrupted"),
    }[away]
    monkeypatch.setattr(store, call, fail)

    with pytest.raises(Temporary, match="harbor"):
        world.resync.run()
    assert [d for _, d in world.wake_ups.sent] == list(SLOW_WAKE_UPS)


def test_the_resync_finds_what_no_event_told_without_its_index(world, monkeypatch):
    instance = world.join("spot", capacity="spot")
    world.aws.silent = [a_spot_notice(world, instance)]

    def fail(_):
        raise Temporary("away")

    monkeypatch.setattr(world.index, "find", fail)
    with pytest.raises(Temporary):
        world.resync.run()
    assert world.node("spot").unschedulable


def test_clusters_that_are_acted_on_come_before_those_that_are_only_observed(world, monkeypatch):
    observed = world.join("a-observed", capacity="spot")
    acted = world.join("spot", capacity="spot")
    world.registry.add(replace(world.cluster, name="aaa", mode=Mode.OBSERVE))
    world.aws.known[observed] = replace(
        world.aws.known[observed], tags=(("kubernetes.io/cluster/aaa", "owned"),)
    )
    order: list[str] = []
    real = world.open

    def opened(cluster):
        order.append(cluster.name)
        return real(cluster)

    monkeypatch.setattr(world, "open", opened)

    handled(world, world.spot_event(observed), world.spot_event(acted))

    assert order == ["harbor", "aaa"]


@pytest.mark.parametrize(("state", "lists"), [(None, 1), ("terminated", 0)])
def test_notices_for_nodes_that_are_gone_cost_one_list_or_none(world, monkeypatch, state, lists):
    instances = [world.join(f"spot-{n}", capacity="spot") for n in range(3)]
    world.resync.run()
    for n in range(3):
        world.hollow.vanish(f"spot-{n}", now=world.time)
    world.sleep(600)
    counted = []
    nodes = world.api.nodes

    def listed():
        counted.append("a list")
        return nodes()

    monkeypatch.setattr(world.api, "nodes", listed)

    event = world.spot_event if state is None else partial(world.state_event, state=state)
    handled(world, *(event(instance) for instance in instances))

    assert len(counted) == lists


def test_the_sweep_closes_the_report_of_a_node_that_is_no_more(world):
    instance = world.join("spot", capacity="spot")
    handled(world, world.spot_event(instance))
    world.drains.reconcile("harbor", "me")
    world.hollow.vanish("spot", now=world.time)
    world.sleep(600)

    world.resync.run()

    (report,) = world.reports.list("harbor")
    assert report.closed == world.time


def test_a_sweep_that_fails_for_one_cluster_sweeps_the_others_and_says_so(world):
    world.registry.add(replace(world.cluster, name="away"))
    world.join("od")
    real = world.open

    def open_or_fail(cluster):
        if cluster.name == "away":
            raise Temporary("no route")
        return real(cluster)

    world.open = open_or_fail

    with pytest.raises(Temporary, match="away"):
        world.resync.run()
    assert world.index.find([world.node("od").instance or ""])


def test_bad_input_names_the_field(world):
    (bad,) = world.notices.receive([world.spot_event("i-not-an-id")])

    assert isinstance(bad, BadInput)
    assert "instance-id" in str(bad)


def test_the_sweep_does_not_say_again_what_an_event_told(world):
    instance = world.join("spot", capacity="spot")
    handled(world, world.spot_event(instance))
    world.sleep(1)
    version = world.node("spot").resource_version
    world.aws.silent = [a_spot_notice(world, instance)]

    world.resync.run()

    assert world.node("spot").resource_version == version


def test_a_node_whose_record_cannot_be_read_is_left_alone(world):
    record = {"metadata": {"annotations": {INTERRUPTION: "not a record"}}}
    instance = world.join("spot", capacity="spot")
    path = "/api/v1/nodes/spot"
    merge = "application/merge-patch+json"
    world.hollow.handle("PATCH", path, now=world.time, body=record, content_type=merge)
    version = world.node("spot").resource_version

    handled(world, world.spot_event(instance))

    assert world.node("spot").resource_version == version
    assert world.wake_ups.sent == []
    _, facts = world.telemetry.said[-1]
    assert "spot is left alone" in str(facts["because"])


def test_a_node_that_somebody_else_writes_to_is_read_again(world):
    instance = world.join("spot", capacity="spot")
    real = world.api.cordon
    meddled: list[Node] = []

    def meddle(node, interruption):
        if len(meddled) < 2:
            meddled.append(node)
            world.api.record(node, interruption)
        real(node, interruption)

    world.api.cordon = meddle
    handled(world, world.spot_event(instance))

    assert len(meddled) == 2
    assert world.node("spot").unschedulable


def test_a_registry_that_is_away_makes_only_its_own_notices_come_back(world):
    instance = world.join("spot", capacity="spot")
    world.resync.run()

    def away(name):
        raise Temporary("the table is away")

    world.registry.get = away

    ours, unknown = world.notices.receive(
        [world.spot_event(instance), '{"source": "aws.ec2", "detail-type": "Other", "detail": {}}']
    )
    assert isinstance(ours, Temporary)
    assert unknown is None


def test_an_api_that_asks_for_patience_is_left_alone_that_long(world):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=1))
    world.join("od")
    handled(world, world.spot_event(instance))

    def busy(pod, owner, owner_uid, interruption):
        raise Throttled("too many requests", retry_after=15)

    world.api.release = busy

    assert world.drains.reconcile("harbor", "me", seconds=14) == 1


def test_the_sweep_writes_an_index_entry_again_only_when_it_changed_or_is_old(world):
    instance = world.join("od")
    written: list[list[str]] = []
    real = world.index.put

    def put(entries):
        written.append([entry.instance for entry in entries])
        real(entries)

    world.index.put = put
    world.resync.run()
    world.sleep(60)
    world.resync.run()
    world.sleep(600)
    world.resync.run()

    assert written == [[instance], [], [instance]]


def test_ec2_is_asked_once_in_a_reconcile_about_an_instance_whose_end_is_recorded(world):
    instance = world.join("spot", capacity="spot")
    handled(world, world.spot_event(instance))
    world.aws.known[instance] = replace(world.aws.known[instance], state="terminated")
    world.sleep(130)
    world.drains.reconcile("harbor", "first")
    world.aws.described.clear()

    world.drains.reconcile("harbor", "second")

    assert world.aws.described == [instance]


def test_an_instance_that_ec2_does_not_know_is_not_proven_gone(world):
    instance = world.join("spot", capacity="spot")
    world.apply(deployment(replicas=1, cpu="3"))
    handled(world, world.spot_event(instance))
    del world.aws.known[instance]
    world.sleep(130)

    world.drains.reconcile("harbor", "me", seconds=0)

    node = world.node("spot")
    assert node.interruption is not None
    assert node.interruption.gone is None
    assert not any(facts.get("action") == "force-delete" for _, facts in world.telemetry.said)
