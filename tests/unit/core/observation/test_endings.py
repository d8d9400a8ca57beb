"""How long pods took to stop, as consecutive observations show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.kubernetes import Pod, Ref
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
