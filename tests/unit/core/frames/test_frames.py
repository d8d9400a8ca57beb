"""A frame says in bounded words what a storm does to workloads, and what a person must do."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec

from plimsoll.domain.drain import ClusterPlan, plan_drain
from plimsoll.domain.frames import Frame, frame_of
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.node_groups import GroupMaximum
from plimsoll.domain.observation import Observation
from tests.support.builders import NOON, a_deployment, a_group, a_node, a_pod
from tests.support.observations import died, ec2, interrupted, looked, noon

WEB = str(Ref("Deployment", "default", "web"))


def planned(seen: Observation, seconds: float = 1.0) -> ClusterPlan:
    return plan_drain(seen, noon(seconds))


def framed(seen: Observation, seconds: float = 1.0, before: Frame | None = None) -> Frame:
    frame = frame_of(planned(seen, seconds), before)
    assert frame is not None
    return frame


def pod(name: str, node: str | None, *, after: float | None = None, **how):
    created = {} if after is None else {"created": f"{noon(after):%Y-%m-%dT%H:%M:%SZ}"}
    return a_pod(name, node=node, labels={"app": "web"}, **created, **how)


def storm(*replacements, old: int = 3, groups=(), **how) -> Observation:
    pods = [pod(f"web-{n}", "spot", **how) for n in range(old)]
    return looked(
        [interrupted("spot"), a_node("od")],
        [*pods, *replacements],
        [a_deployment(replicas=old or 3)],
        groups=groups,
    )


def test_there_is_no_frame_where_no_node_is_interrupted():
    seen = looked([a_node("od")], [pod("web-1", "od")], [a_deployment(replicas=1)])
    assert frame_of(planned(seen), None) is None


def test_pods_that_must_move_are_in_one_of_four_states():
    frame = framed(
        storm(
            pod("new-1", "od", after=5),
            pod("new-2", "od", after=5, ready=False),
            pod("new-3", None, after=5),
        ),
        9,
    )
    counts = frame.counts
    assert (counts.of, counts.safe, counts.starting, counts.no_node, counts.not_begun) == (
        3,
        1,
        1,
        1,
        0,
    )
    assert frame.workloads[0].ready == 4
    assert frame.workloads[0].going == 3


def test_pods_elsewhere_from_before_the_storm_need_no_replacement():
    seen = looked(
        [interrupted("spot"), a_node("od")],
        [pod("web-1", "spot"), pod("web-2", "od"), pod("web-3", "od")],
        [a_deployment(replicas=3)],
    )
    assert framed(seen).counts.of == 1


def test_a_pod_is_at_risk_once_its_eviction_deadline_is_near_and_no_replacement_has_a_node():
    waiting = storm(pod("new-1", None, after=5), old=1)
    assert framed(waiting, 30).counts.at_risk == 0
    late = framed(waiting, 85)
    assert late.counts.at_risk == 1
    assert late.pods[0].name == "default/web-0"
    assert late.pods[0].deadline is not None
    placed = storm(pod("new-1", "od", after=5, ready=False), old=1)
    assert framed(placed, 85).counts.at_risk == 0


def test_a_workload_without_a_ready_pod_is_at_zero_and_not_below_its_floor():
    seen = storm(pod("new-1", "od", after=5, ready=False), ready=False)
    frame = framed(seen, 9)
    assert (frame.counts.at_zero, frame.counts.below_floor) == (1, 0)


def test_the_lowest_count_of_ready_pods_is_remembered_from_frame_to_frame():
    first = framed(storm(old=1), 1)
    second = framed(storm(), 2, first)
    assert [w.lowest for w in second.workloads] == [1]
    assert second.workloads[0].trace == ((1.0, 1), (2.0, 3))
    assert second.number == 2


def test_pods_that_ran_when_their_instance_was_gone_were_killed_and_stay_so():
    node = died(interrupted("spot"))
    seen = looked(
        [node, a_node("od")],
        [pod("web-1", "spot")],
        [a_deployment(replicas=1)],
        instances=ec2(node),
    )
    frame = framed(seen, 121)
    assert frame.counts.killed == 1
    assert frame.pods[0].killed
    assert frame.nodes[0].killed == 1
    later = framed(storm(pod("new-1", "od", after=130), old=0), 140, frame)
    assert later.counts.killed == 1


def test_an_hour_later_another_notice_is_another_storm():
    first = framed(storm(), 1)
    again = storm()
    node = again.nodes[0]
    assert node.interruption is not None
    later = [
        replace(n, time=n.time + timedelta(hours=1), ends=NOON + timedelta(hours=1, seconds=120))
        for n in node.interruption.notices
    ]
    hour = replace(
        again,
        nodes=[
            replace(node, interruption=replace(node.interruption, notices=tuple(later))),
            *again.nodes[1:],
        ],
    )
    frame = framed(hour, 3601, first)
    assert (frame.storm, frame.number) == (noon(3600), 1)


def test_a_storm_is_over_once_no_node_is_interrupted():
    first = framed(storm(), 1)
    calm = looked(
        [a_node("od")],
        [pod(f"new-{n}", "od", after=30) for n in range(3)],
        [a_deployment(replicas=3)],
    )
    frame = framed(calm, 200, first)
    assert frame.over
    assert (frame.counts.safe, frame.counts.of) == (3, 3)
    assert frame.nodes[0].gone == 200.0
    assert not framed(storm(), 2, first).over


# What a person must do.


def short(**group) -> Observation:
    groups = [a_group("base", **group)] if group else ()
    return storm(*[pod(f"new-{n}", None, after=5) for n in range(3)], groups=groups)


def test_nothing_is_to_do_while_every_floor_holds_and_every_replacement_has_a_node():
    task = framed(storm(pod("new-1", "od", after=5, ready=False), old=1)).task
    assert (task.acts, task.waiting) == ((), False)


def test_nothing_is_to_do_yet_while_nodes_come():
    task = framed(short(desired=3, max_size=6), 9).task
    assert (task.acts, task.waiting) == ((), True)
    assert task.nodes_coming == 3


def test_a_group_at_its_maximum_is_to_be_raised_once_no_node_comes():
    task = framed(short(desired=0, max_size=0), 9).task
    assert task.acts == ("base has as many nodes as its owner allows: raise its maximum",)
    assert not task.waiting


def test_a_refusal_is_a_task_only_while_nothing_made_it_good():
    seen = replace(short(), groups=[replace(a_group("base"), may_grow=False)])
    told = GroupMaximum(at=noon(5), why="no more")
    frame = frame_of(planned(seen, 9), None, refusals={seen.groups[0].key: [told]})
    assert frame is not None
    assert frame.capacity[0].refused.startswith("base was refused (group-maximum): no more.")
    assert not frame.task.waiting
    assert frame.task.acts == (frame.capacity[0].refused,)
    good = storm(*[pod(f"new-{n}", "od", after=5) for n in range(3)], groups=seen.groups)
    assert framed(good, 30, frame).task.acts == ()


def test_without_any_group_the_task_says_how_many_pods_have_no_node():
    (act,) = framed(short(), 9).task.acts
    assert act.startswith("3 pods have no node, and node groups are not read here")
    closed = replace(short(), groups=[replace(a_group("base"), may_grow=False)])
    (act,) = framed(closed, 9).task.acts
    assert act.startswith("3 pods have no node and no node group grows: add a node")


def test_a_node_that_is_not_ready_yet_is_on_its_way_whatever_is_known_of_its_group():
    seen = short()
    young = replace(a_node("new", ready=False), created=noon(5))
    task = framed(replace(seen, nodes=[*seen.nodes, young]), 9).task
    assert (task.waiting, task.nodes_coming) == (True, 1)


# Its bounds.


def test_a_frame_of_hundreds_of_workloads_is_bounded():
    name, many = "n" * 63, range(260)
    pods = [
        a_pod(
            f"w{n}-1",
            namespace=name,
            node=f"spot-{n % 130}",
            owner=("ReplicaSet", f"w{n}-{name}-abc"),
        )
        for n in many
    ]
    seen = looked(
        [
            interrupted(f"spot-{n}", labels={"node.kubernetes.io/instance-type": name})
            for n in range(130)
        ],
        pods,
        [a_deployment(f"w{n}-{name}", namespace=name, replicas=1) for n in many],
    )
    frame = framed(seen, 9)
    assert len(frame.workloads) == 200
    assert frame.others.moving == 60
    assert frame.counts.of == 260
    assert (len(frame.nodes), frame.nodes_of) == (100, 130)
    assert len(frame.pods) <= 60
    assert len(msgspec.json.encode(frame)) < 200_000


def test_a_trace_keeps_its_end_and_sixty_points_at_most():
    frame = framed(storm(), 1)
    for second in range(2, 80):
        frame = framed(storm(old=1 + second % 2), second, frame)
    trace = frame.workloads[0].trace
    assert len(trace) <= 60
    assert trace[0][0] == 1.0
    assert trace[-1] == (79.0, 2)


def test_a_frame_is_read_from_json_as_it_was_written():
    frame = framed(short(desired=0, max_size=0), 9)
    assert msgspec.json.decode(msgspec.json.encode(frame), type=Frame) == frame
