"""How long pods took to stop, as consecutive observations show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.kubernetes import DEADLINE, Pod, Ref, deadline_text
from plimsoll.domain.observation import Endings, Sample, Samples
from tests.support.builders import NOON, a_node, a_pod
from tests.support.observations import WEB, interrupted, looked, noon

UP = a_node("n")


def stopping(*, grace: float = 60, since: float = 0, name: str = "web-1", **how) -> Pod:
    pod = a_pod(name, node="n", deleting=noon(since + grace), **how)
    return replace(pod, stopping_since=noon(since))


def seen(*looks: tuple[float, list[Pod]], nodes=(UP,)) -> Mapping[Ref, Samples]:
    """Return what a reconcile learned that looked at these times; each look takes a tenth of a second."""
    endings = Endings()
    for at, pods in looks:
        endings.note(looked([*nodes], pods), noon(at), noon(at + 0.1))
    return endings.samples


def told(seconds: int, at: float, *, killed: bool = False) -> Mapping[Ref, Samples]:
    sample = Sample(uid="pod-default-web-1", at=noon(at), seconds=seconds)
    return {WEB: Samples(killed=(sample,)) if killed else Samples(stop=(sample,))}


def test_a_pod_that_is_gone_before_its_grace_ends_tells_how_long_it_took():
    pod = stopping()
    assert seen((1, [pod]), (2, [pod]), (7, [pod]), (8, [])) == told(9, 8)


def test_nothing_is_told_while_it_is_there():
    assert seen((1, [stopping()]), (2, [stopping()])) == {}


def test_a_pod_that_took_its_whole_grace_was_killed_and_would_have_needed_longer():
    pod = stopping(grace=5)
    assert seen((3, [pod]), (4.5, [pod]), (6, [])) == told(4, 6, killed=True)


def test_a_grace_that_was_cut_short_while_it_stopped_counts_as_its_whole_grace():
    long, short = stopping(grace=300), stopping(grace=10)
    looks = [(second, [long if second < 3 else short]) for second in range(1, 11)]
    assert seen(*looks, (11, [])) == told(10, 11, killed=True)


def test_two_looks_far_apart_tell_only_that_it_took_as_long_as_to_the_first():
    assert seen((4, [stopping()]), (24, [])) == told(4, 24, killed=True)


@pytest.mark.parametrize("left", [[], [a_node("n", ready=False)]], ids=["gone", "not ready"])
def test_a_pod_that_vanishes_with_its_node_had_at_least_until_shortly_before(left):
    pod, endings = stopping(grace=600), Endings()
    endings.note(looked([UP], [pod]), noon(100), noon(100))
    endings.note(looked(left, [pod]), noon(101), noon(101))
    endings.note(looked(left, [pod]), noon(400), noon(400))
    endings.note(looked(left, []), noon(401), noon(401))
    assert endings.samples == told(50, 401, killed=True)


def test_an_instance_that_is_terminated_ends_its_pods_though_its_node_says_ready():
    pod, endings = stopping(grace=600), Endings()
    endings.note(looked([UP], [pod]), noon(100), noon(100))
    endings.note(looked([UP], [pod]), noon(101), noon(101), {UP.instance or ""})
    endings.note(looked([UP], []), noon(102), noon(102), {UP.instance or ""})
    assert endings.samples == told(50, 102, killed=True)


def test_a_pod_had_until_the_deadline_of_its_node_and_nobody_knows_what_comes_after():
    going = interrupted("n", ends=20)
    assert going.interruption is not None
    deadline = going.interruption.deadline
    assert deadline is not None
    first, late = deadline - timedelta(seconds=1), deadline + timedelta(seconds=1)
    endings = Endings()
    for at, pods in ((first, [stopping()]), (late, [stopping()]), (late, [])):
        endings.note(looked([going], pods), at, at)
    (samples,) = endings.samples.values()
    assert [each.seconds for each in samples.killed] == [int((first - NOON).total_seconds())]
    assert not samples.stop


def test_a_pod_that_never_served_tells_nothing():
    assert seen((1, [stopping(ready=False)]), (2, [])) == {}


def test_a_pod_that_is_first_seen_on_a_dead_node_tells_nothing():
    dead = a_node("n", ready=False)
    assert seen((1, [stopping()]), (2, []), nodes=[dead]) == {}


@pytest.mark.parametrize("owner", [None, ("Job", "once"), ("DaemonSet", "logs")])
def test_pods_without_a_workload_of_their_own_tell_nothing(owner):
    assert seen((1, [stopping(owner=owner)]), (2, [])) == {}


def test_pods_of_one_workload_are_told_together():
    one, other = stopping(), stopping(name="web-2", since=1)
    (samples,) = seen((2, [one, other]), (3, [other]), (4, [])).values()
    assert [each.seconds for each in samples.stop] == [4, 4]


LLM = Ref("RayCluster", "default", "llm")


def of_gang(**how) -> Pod:
    """Return a pod of a RayJob that was told when the node `spot` goes."""
    told = {DEADLINE: deadline_text(noon(118))}
    owner, labels = ("RayCluster", "llm-x7bqz"), {"ray.io/cluster": "llm-x7bqz"}
    return a_pod("llm-1", node="n", owner=owner, labels=labels, annotations=told, **how)


def ended_at(
    at: float, pod: Pod | None = None, *, last: float | None = None, nodes=None
) -> Mapping[Ref, Samples]:
    """Return what is learned of a pod that a watch saw end by itself, a second after it was there, or `last`."""
    pod, endings = pod or of_gang(), Endings()
    nodes = [UP, interrupted("spot")] if nodes is None else nodes
    before = noon(at - 1 if last is None else last)
    endings.note(looked(nodes, [pod]), before, before)
    gone = replace(looked(nodes, []), ended=frozenset({pod.uid}))
    endings.note(gone, noon(at), noon(at))
    return endings.samples


def test_a_pod_of_a_gang_tells_how_long_after_the_notice_it_ended_by_itself():
    sample = Sample(uid="pod-default-llm-1", at=noon(70), seconds=70)
    assert ended_at(70) == {LLM: Samples(checkpoint=(sample,))}


def test_a_pod_of_a_gang_of_a_queue_tells_the_same():
    labels = {"plimsoll.dev/gang": "llm-x7bqz", "plimsoll.dev/queue": "research"}
    pod = replace(of_gang(), owner=Ref("Job", "default", "llm-x7bqz-ps"), labels=labels)
    (known,) = ended_at(70, pod)
    assert known == Ref("QueuedGang", "default", "llm")


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"at": 118}, id="at its deadline"),
        pytest.param({"at": 70, "last": 60}, id="unseen for long"),
        pytest.param({"at": 70, "nodes": [UP]}, id="told of a node that is gone"),
        pytest.param(
            {"at": 70, "nodes": [a_node("n", ready=False), interrupted("spot")]},
            id="lost with its node",
        ),
        pytest.param({"at": 70, "pod": of_gang(deleting=noon(100))}, id="evicted"),
        pytest.param({"at": 70, "pod": replace(of_gang(), annotations={})}, id="not told"),
        pytest.param({"at": 70, "pod": replace(of_gang(), labels={})}, id="of no gang"),
    ],
)
def test_the_end_of_such_a_pod_tells_nothing_of_a_checkpoint(how):
    assert ended_at(**how) == {}


def test_a_pod_that_vanishes_without_being_seen_to_end_tells_nothing_of_a_checkpoint():
    endings = Endings()
    for at, pods in ((69, [of_gang()]), (70, [])):
        endings.note(looked([UP, interrupted("spot")], pods), noon(at), noon(at))
    assert endings.samples == {}
