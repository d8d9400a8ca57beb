"""What groups were asked for counts from the answer on, and not for ever."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.errors import Refused, Throttled
from plimsoll.domain.interruptions import marked
from plimsoll.domain.kubernetes import Pod, Ref
from plimsoll.domain.node_groups import FIRST_SIGN_WITHIN, NodeGroup, expected_nodes
from plimsoll.domain.observation import Count, Samples, WorkloadTimes
from plimsoll.services.reconcile_memory import ReconcileMemory
from tests.support.builders import NOON, a_group, a_pod
from tests.support.observations import interrupted, looked, noon

SECOND = timedelta(seconds=1)
DB = Ref("Database", "default", "db")


def noted(memory: ReconcileMemory, group: NodeGroup, seconds: float) -> NodeGroup:
    """Return a group as it is known after it was read so many seconds after noon."""
    memory.note_groups([group], NOON + seconds * SECOND)
    (known,) = memory.groups or ()
    return known


def test_what_was_promised_counts_before_the_group_tells_it():
    memory, group = ReconcileMemory(), a_group(desired=1)
    memory.grown(noted(memory, group, 0), 2, NOON + SECOND)
    assert noted(memory, group, 5).desired == 3
    assert noted(memory, replace(group, desired=3), 10).desired == 3


def test_two_promises_of_one_plan_count_both():
    memory, group = ReconcileMemory(), a_group(desired=1)
    known = noted(memory, group, 0)
    for promised in (2, 1):
        memory.grown(known, promised, NOON)
    assert noted(memory, group, 1).desired == 4


def test_groups_of_two_kinds_with_one_name_are_remembered_apart():
    memory = ReconcileMemory()
    groups = [a_group(desired=1), a_group(kind="eks-nodegroup", desired=4)]
    memory.note_groups(groups, NOON)
    memory.grown(groups[0], 2, NOON)
    memory.not_grown(groups[1], Refused("no"), NOON)
    memory.note_groups(groups, NOON + SECOND)
    assert [group.desired for group in memory.groups or ()] == [3, 4]
    assert memory.refusals.keys() == {groups[1].key}


def test_a_throttled_request_is_told_at_once_and_its_group_passed_over_after_five_seconds():
    memory, group = ReconcileMemory(), a_group()
    told = []
    for second in (0, 1, 5, 6):
        memory.not_grown(group, Throttled("slow down"), NOON + second * SECOND)
        told.append([refusal.kind for refusal in memory.refusals[group.key]])
    alone, passed = ["launches-throttled"], ["launches-throttled", "other"]
    assert told == [alone, alone, passed, [*passed, "other"]]


def test_what_was_promised_and_is_never_told_is_forgotten():
    memory, group = ReconcileMemory(), a_group(desired=1)
    memory.grown(noted(memory, group, 0), 2, NOON)
    assert noted(memory, group, FIRST_SIGN_WITHIN.total_seconds()).desired == 1


def test_a_size_that_others_lower_is_believed_at_once():
    memory, group = ReconcileMemory(), a_group(desired=4)
    noted(memory, group, 0)
    assert noted(memory, replace(group, desired=2), 5).desired == 2


def test_a_size_counts_from_when_it_was_seen_first_unless_the_group_tells_more():
    memory, group = ReconcileMemory(), replace(a_group(desired=2), instances=frozenset())
    assert noted(memory, group, 0).asked == NOON
    idle = noted(memory, group, FIRST_SIGN_WITHIN.total_seconds())
    assert expected_nodes(idle, [], NOON + FIRST_SIGN_WITHIN).overdue == 2
    before = NOON - timedelta(minutes=10)
    told = noted(ReconcileMemory(), replace(group, asked=before), 0)
    assert expected_nodes(told, [], NOON).overdue == 2


def counted(
    memory: ReconcileMemory, pods: int, *, stopping: int = 0, known: int | None = None
) -> int:
    """Return how many pods of a database count, of which so many run and others stop."""
    found: list[Pod] = [
        a_pod(f"db-{n}", node="spot", owner=(DB.kind, DB.name)) for n in range(pods + stopping)
    ]
    found[pods:] = [replace(pod, deleting=NOON) for pod in found[pods:]]
    seen = replace(looked([interrupted("spot")], found), times={DB: WorkloadTimes(pods=known)})
    memory.count(seen, NOON)
    return memory.counts[DB]


def test_pods_that_an_earlier_reconcile_saw_count_until_as_many_run_again():
    memory = ReconcileMemory()
    assert counted(memory, 4, known=5) == 5
    assert memory.fresh_counts() == {}
    assert counted(memory, 5, known=5) == 5
    assert memory.fresh_counts() == {DB: Samples(count=Count(at=NOON, pods=5))}
    assert memory.fresh_counts() == {}


def test_a_count_is_not_told_where_nobody_could_read_what_was_counted_before():
    memory = ReconcileMemory()
    pod = a_pod("db-0", node="spot", owner=(DB.kind, DB.name))
    memory.count(looked([interrupted("spot")], [pod]), NOON)
    assert memory.counts[DB] == 1
    assert memory.fresh_counts() == {}


def test_a_pod_that_stops_beside_its_successor_is_not_remembered_as_one_more():
    memory = ReconcileMemory()
    counted(memory, 5, stopping=1)
    assert memory.fresh_counts() == {DB: Samples(count=Count(at=NOON, pods=5))}


@pytest.mark.parametrize(("emptied", "expected"), [(None, {DB}), (11, {DB}), (10, set())])
def test_a_pod_may_be_about_to_be_made_anew_until_the_nodes_cordoned_before_are_empty_for_ten_seconds(
    emptied, expected
):
    memory, before = ReconcileMemory(), interrupted("advised", kind="rebalance-recommendation")
    assert before.interruption is not None
    if emptied is not None:
        before = replace(before, interruption=marked(before.interruption, emptied=noon(emptied)))
    seen = looked([before], [a_pod("db-0", node="od", owner=(DB.kind, DB.name))])
    memory.count(seen, noon(20))

    assert memory.uncounted(seen, noon(20)) == expected
