"""Why a gang waits, in words: quota, borrowers, nodes, gates, and what would have to end first."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plimsoll.domain.kubernetes import Resources, Scheduling
from plimsoll_batch.domain.admission.queue_state import QueueState
from plimsoll_batch.domain.explanation import in_words, why
from plimsoll_batch.domain.jobs import Role, Shape
from plimsoll_batch.domain.quota.cohorts import QueueOrder
from tests.support.builders import NOON
from tests.support.queued import (
    GPU,
    a_cohort,
    a_configuration,
    a_gang,
    a_gpu_node,
    a_queue,
    a_shape,
    runs,
)

SHARED = a_configuration(a_cohort(), a_queue("mine", 4), a_queue("yours", 4))


def explained(configuration, gang, others=(), running=(), nodes=None):
    seen = QueueState(
        configuration=configuration, gangs=(gang, *others), running=running, nodes=nodes
    )
    found = why(seen, gang.uid, NOON)
    assert found is not None
    return found


def ending(name, queue, gpus, minutes, **fields):
    limit = None if minutes is None else timedelta(minutes=minutes)
    return runs(a_gang(name, queue, gpus, limit=limit), admitted=NOON, **fields)


def test_it_names_the_quota_the_borrowers_and_the_first_ends_that_are_enough():
    running = (ending("late", "yours", 6, 50), ending("soon", "yours", 2, 5))
    found = explained(SHARED, a_gang("g", "mine", 2), running=running)
    assert found.held == (
        (
            f"{GPU} in flavor default: it wants 2, 0 are left; queue mine uses 0 of its 4;"
            " borrowed by queue yours (4)"
        ),
    )
    assert [gang.name for gang in found.after] == ["soon"]
    assert found.at == NOON + timedelta(minutes=5)


def test_it_names_no_end_that_would_not_help():
    running = (
        ending("little", "yours", 1, 1),
        ending("enough", "yours", 4, 5),
        ending("rest", "yours", 3, 9),
    )
    found = explained(SHARED, a_gang("g", "mine", 4), running=running)
    assert [gang.name for gang in found.after] == ["enough"]


def test_where_nobody_says_when_gangs_end_nothing_is_expected():
    found = explained(SHARED, a_gang("g", "mine", 1), running=(ending("r", "yours", 8, None),))
    assert ([gang.name for gang in found.after], found.at) == (["r"], None)
    assert "nobody says when" in in_words(found)


def test_it_says_in_the_schedulers_words_why_a_pod_has_no_place():
    nodes = [a_gpu_node("n1", 2), a_gpu_node("n2", 2)]
    running = (ending("r", "yours", 1, 30, on={"n1": 1}),)
    gang = a_gang("g", "mine", shape=a_shape(2, 2))
    found = explained(SHARED, gang, running=running, nodes=nodes)
    assert found.held == (
        (
            "flavor default: role workers: 1 of 2 pods have a place;"
            f" for the next 0/2 nodes are available: 2 Insufficient {GPU}"
        ),
    )
    assert (found.after[0].name, found.at) == ("r", NOON + timedelta(minutes=30))


def a_gang_of(*roles):
    """A gang of roles, each of so many pods with so many GPUs."""
    return a_gang(
        "g",
        "mine",
        shape=Shape(
            roles=tuple(
                Role(
                    name=name,
                    pods=pods,
                    scheduling=Scheduling(requests=Resources.parse({"pods": "1", GPU: str(gpus)})),
                )
                for name, pods, gpus in roles
            )
        ),
    )


def test_a_gang_fits_whatever_its_roles_are_called():
    large = a_configuration(a_queue("mine", 100, None))
    nodes = [a_gpu_node("n8", 8), a_gpu_node("n4", 4)]
    for small, big in (("ps", "worker"), ("worker", "ps")):
        gang = a_gang_of((small, 2, 2), (big, 2, 4))
        assert explained(large, gang, nodes=nodes).held == ()


def test_it_says_never_only_of_what_is_proven():
    large = a_configuration(a_queue("mine", 100, None))
    # Two of 3 and two of 2 fill both nodes, and pods that are placed the largest first do not find that.
    nodes = [a_gpu_node("n5", 5), a_gpu_node("n6", 6)]
    fits = explained(large, a_gang_of(("a", 1, 3), ("b", 1, 4), ("c", 2, 2)), nodes=nodes)
    assert "no place was found for all of it though all gangs ended" in fits.held[0]
    never = explained(large, a_gang_of(("a", 1, 3), ("b", 3, 4)), nodes=nodes)
    assert "it would not fit though all gangs ended" in never.held[0]


def test_it_says_when_no_end_would_help():
    found = explained(SHARED, a_gang("g", "mine", 3), nodes=[a_gpu_node("n1", 2)])
    assert "it needs other nodes" in found.held[0]
    assert found.after == ()


@pytest.mark.parametrize(
    ("gang", "reason"),
    [
        (a_gang("g", "nowhere"), "there is no queue nowhere"),
        (a_gang("g", "mine", gates=("waits for lab/first",)), "waits for lab/first"),
        (a_gang("g", "mine", 9), "can never have more than 8"),
    ],
)
def test_it_names_what_no_end_changes(gang, reason):
    found = explained(SHARED, gang)
    assert reason in found.held[0]
    assert found.after == ()


def test_it_counts_who_is_before_it_and_says_so_of_strict_queues():
    configuration = a_configuration(a_queue("q", 9, None, order=QueueOrder.STRICT_FIFO))
    others = (a_gang("first", "q"), a_gang("urgent", "q", minute=9, priority=1))
    found = explained(configuration, a_gang("g", "q", minute=5), others)
    assert found.ahead == 2
    assert "strictly first in, first out: 2 are before it" in found.held[0]


def test_of_a_gang_that_fits_it_says_that_it_starts_in_its_turn():
    found = explained(SHARED, a_gang("g", "mine"), nodes=[a_gpu_node("n1", 2)])
    assert found.held == ()
    assert in_words(found).endswith("It fits now in flavor default: it starts when its turn comes.")


def test_of_a_gang_that_does_not_wait_nothing_is_said():
    seen = QueueState(configuration=SHARED, gangs=())
    assert why(seen, "g", NOON) is None
