"""What must hold when a storm is over: nothing is left changed, open, or to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from plimsoll.adapters.kubernetes.objects import parse_node
from plimsoll.domain.actions import Step
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import ADVICE
from plimsoll.domain.kubernetes import INTERRUPTION, RELEASED, Node
from plimsoll.domain.observation import Observation, leaves
from plimsoll.domain.reports import Report
from plimsoll.domain.zones import has_shift_taint
from plimsoll_simulation.fake_aws.machines import zone_id_of
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_simulation.rigs.simulated.aws import group_of, instance_of
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.rigs.simulated.rig_cluster import SimulatedRigCluster
from plimsoll_simulation.storms.cordons import Cordons
from plimsoll_simulation.storms.notice_delivery import NoticeDelivery, since

SHIFTED: Final = timedelta(minutes=5)
"""How soon nodes bear the taint of a zonal shift or are rid of it, whether its events came or not: ARC is asked each
minute and may be a minute behind, and a wake-up that it leads to may find a reconcile at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The state at the end that must not depend on how many executors there were, or how often."""

    replicas: tuple[tuple[str, int], ...]
    desired: tuple[tuple[str, int], ...]
    taints: tuple[tuple[str, bool, tuple[str, ...]], ...]
    """Of nodes that live: name, cordoned, taints. Of several that are left on advice the one whose notice comes
    first has its turn first, and doubled messages overtake each other: these go by the name of their group."""


def ending_of(rig_cluster: SimulatedRigCluster) -> Ending:
    """Return how a storm ended."""
    store = rig_cluster.cluster.store
    return Ending(
        replicas=tuple(
            (f"{kind}/{obj['metadata']['name']}", obj["spec"]["replicas"])
            for kind in ("deployments", "statefulsets")
            for obj in store.all(kind)
        ),
        desired=tuple((name, group.desired) for name, group in rig_cluster.fleet.groups.items()),
        taints=tuple(sorted(_taints(rig_cluster))),
    )


def _taints(rig_cluster: SimulatedRigCluster) -> Iterator[tuple[str, bool, tuple[str, ...]]]:
    group = {m.node: m.group.name for m in rig_cluster.fleet.alive()}
    for node in map(parse_node, rig_cluster.cluster.store.all("nodes")):
        found = node.interruption
        ours = tuple(sorted(f"{t.key}={t.value}" for t in node.taints if "plimsoll" in t.key))
        if node.name in group and (found or ours):
            on_advice = found is not None and found.kind in ADVICE
            yield group[node.name] if on_advice else node.name, node.unschedulable, ours


def still_to_do(
    rig_cluster: SimulatedRigCluster, seen: Observation, reports: Sequence[Report], now: datetime
) -> Sequence[Step]:
    """Return what Plimsoll would do next: nothing in a calm cluster."""
    instances = {m.id: instance_of(m) for m in rig_cluster.fleet.machine.values()}
    groups = tuple(
        group_of(g) for g in rig_cluster.fleet.groups.values() if g.spec.kind != "static"
    )
    seen = replace(seen.among(groups=groups, instances=instances), reports=reports)
    return plan_drain(seen, now).steps


def endings_wrong(
    simulation: Simulation,
    rig_cluster: SimulatedRigCluster,
    seen: Observation,
    delivery: NoticeDelivery,
    cordons: Cordons,
) -> Iterator[tuple[str, str]]:
    """Yield what a storm must not leave behind; cordons of others are theirs to lift."""
    yield from _left_changed(rig_cluster, seen)
    yield from _left_open(simulation, rig_cluster, seen, delivery, cordons)
    yield from _left_added(rig_cluster, seen, delivery)
    yield from _left_shifted(simulation, rig_cluster, seen)
    yield from _reported(simulation, rig_cluster, delivery, cordons)


def _left_changed(rig_cluster: SimulatedRigCluster, seen: Observation) -> Iterator[tuple[str, str]]:
    """Nothing is left changed once its interruption is over; a recommendation may wait for headroom for ever."""
    store = rig_cluster.cluster.store
    lives = {m.node for m in rig_cluster.fleet.alive()}
    interrupted = {n.name for n in seen.nodes if n.interruption is not None}
    for pod in store.all("pods"):
        node = pod["spec"].get("nodeName")
        stays = node in lives and "deletionTimestamp" not in pod["metadata"]
        if stays and node not in interrupted and RELEASED in _annotations(pod):
            yield "left-released", f"pod {pod['metadata']['name']} is still released"


def _left_open(
    simulation: Simulation,
    rig_cluster: SimulatedRigCluster,
    seen: Observation,
    delivery: NoticeDelivery,
    cordons: Cordons,
) -> Iterator[tuple[str, str]]:
    """Every node that had notice is cordoned; one that is gone leaves nothing, delivered notice or not."""
    now, settings = simulation.clock.now(), rig_cluster.cluster.state.settings
    known = {node.name: node for node in seen.nodes}
    for machine in rig_cluster.fleet.machine.values():
        row = simulation.measurement.nodes[machine.id]
        node = known.get(machine.node)
        if machine.launches > 1 and row.noticed is None and node is not None:
            ours = node.unschedulable and node.name not in cordons.others
            if machine.joined and (node.interruption is not None or ours):
                yield "left-open", f"{node.name} is not given back, whose instance runs again"
            continue
        if row.noticed is None or node is None:
            continue
        if machine.gone is None:
            if not delivery.any_arrived(machine.node):
                continue  # every notice was lost, and the instance lives: no function can know
            record = node.interruption
            advised = {kind for kind, _ in machine.notices} <= ADVICE
            if record is None and advised and row.cordoned is not None:
                continue  # given back to a pod that had no other place
            waits = record is not None and record.cordoned is None and record.on_advice(now)
            # Whoever uncordons a node leaves our taint on it, and that keeps new pods away as well.
            effects = {taint.effect for taint in node.taints if taint.key == INTERRUPTION}
            closed = node.unschedulable or "NoSchedule" in effects
            if record is None or not (closed or waits):
                yield "not-cordoned", f"{node.name} had {row.kind} and is open to new pods"
            elif record.deadline is not None and record.deadline < now and record.gone is None:
                yield "left-open", f"{node.name} is past its deadline and open"
        else:
            yield from _not_deleted(node, now - machine.gone, settings)


def _not_deleted(node: Node, gone: timedelta, settings: Settings) -> Iterator[tuple[str, str]]:
    """The cluster deletes the Node of an instance that is gone, in its own time."""
    if gone > settings.unreachable + settings.node_deleted:
        yield "left-open", f"{node.name} is gone and its Node is still there"


def _left_added(
    rig_cluster: SimulatedRigCluster, seen: Observation, delivery: NoticeDelivery
) -> Iterator[tuple[str, str]]:
    """No added node is left empty, in groups whose owner lets us, while nobody needs or takes a node.

    Added is what a group launched only since Plimsoll had asked for more than the owner wants: also in place of an
    interrupted node, once another had been added for its pods. A node that a group launched to keep what its owner
    wants, or that the autoscaler asked for, is none of Plimsoll's.
    """
    ending = any(m.ends or m.waits for m in rig_cluster.fleet.alive())
    if delivery.requests_unreported or ending or any(pod.pending for pod in seen.pods):
        return
    used = {pod.node for pod in seen.pods if leaves(pod)}
    here = {node.name for node in seen.nodes if node.ready} - used
    for name, group in rig_cluster.fleet.groups.items():
        empty = [m.node for m in group.alive if m.node in here and m.added]
        if group.spec.renew and group.added > 0 and empty:
            yield "left-added", f"{name} has {group.added} more for Plimsoll; empty are {empty}"


def _left_shifted(
    simulation: Simulation, rig_cluster: SimulatedRigCluster, seen: Observation
) -> Iterator[tuple[str, str]]:
    """Nodes bear the taint of a zonal shift where one stands, and nowhere else."""
    now, timeline = simulation.clock.now(), simulation.timeline
    if timeline.shifted is None or now - timeline.shifted < SHIFTED:
        return
    known = {node.name: node for node in seen.nodes}
    zones = {shift.zone_id for shift in timeline.shifts}
    for machine in rig_cluster.fleet.alive():
        node = known.get(machine.node)
        if node is None or now - machine.ready < SHIFTED:
            continue
        if has_shift_taint(node) is not (zone_id_of(machine.zone) in zones):
            words = "bears no taint" if zone_id_of(machine.zone) in zones else "bears the taint"
            yield "left-shifted", f"{node.name} {words}; shifted are {sorted(map(str, zones))}"


def _reported(
    simulation: Simulation,
    rig_cluster: SimulatedRigCluster,
    delivery: NoticeDelivery,
    cordons: Cordons,
) -> Iterator[tuple[str, str]]:
    """An interruption for which we cordoned a Node that is gone has exactly one report."""
    simulation.responder.hand_in(simulation.measurement)
    began = simulation.measurement.started
    reports = Counter(name.partition("@")[0] for name in simulation.measurement.reports)
    for machine in rig_cluster.fleet.machine.values():
        number = reports[machine.id]
        if number > machine.launches:
            yield "reported-twice", f"{machine.node} has {number} reports of one interruption"
        cordoned, gone = cordons.ours.get(machine.node), machine.gone
        if number or cordoned is None or gone is None:
            continue
        if delivery.report_expected(since(began, cordoned), since(began, gone)):
            yield "not-reported", f"{machine.node} was cordoned and is gone, and has no report"


def _annotations(obj: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("annotations") or {}
    return found
