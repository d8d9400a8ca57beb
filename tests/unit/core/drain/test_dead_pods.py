"""Which pods that died with their instance are freed, and in which order, where places are short."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import Evict, ForceDelete, Plan
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.kubernetes import Pod
from plimsoll.domain.observation import Observation
from tests.support.builders import a_deployment, a_node, a_pod, pods_of
from tests.support.observations import actions, died, ec2, interrupted, looked, noon

BIG = "5"
"""The cores of a pod of which a node of eight holds one."""


def after_death(
    *pods: Pod, state: str = "stopped", replicas: int = 2, od: str = "8"
) -> Observation:
    """Return an observation in which the node `spot` died at 30 s, and `od` stays."""
    node = replace(died(interrupted("spot")), ready=True)
    return looked(
        [node, a_node("od", cpu=od)],
        list(pods),
        [a_deployment(replicas=replicas), a_deployment("api", replicas=1)],
        instances=ec2(node, state=state),
    )


def freed(plan: Plan) -> list[str]:
    """Return the names of the pods that a plan frees."""
    return [action.pod.name for kind in (Evict, ForceDelete) for action in actions(plan, kind)]


DEAD = a_pod("web-0", node="spot", cpu=BIG)
WAITING = a_pod("web-1", cpu=BIG)


def test_a_pod_on_a_stopped_instance_keeps_its_place_while_another_of_its_workload_waits_for_one():
    plan = plan_drain(after_death(DEAD, WAITING, od="4"), noon(31))

    assert freed(plan) == []
    assert "default/web-0 died; another of its workload waits for a place" in str(plan.waiting)


@pytest.mark.parametrize(
    ("seen", "after"),
    [
        (after_death(DEAD, WAITING, od="4", state="terminated"), 31),
        (after_death(DEAD, od="4", replicas=1), 31),
        (after_death(DEAD, WAITING, a_pod("web-2", node="od", cpu="1"), od="4", replicas=3), 31),
        (after_death(DEAD, WAITING, od="16"), 31),
        (after_death(DEAD, WAITING, od="4"), 330),
    ],
    ids=[
        "its instance does not come back",
        "nobody of it stands in line",
        "another serves",
        "there is a place",
        "five minutes later",
    ],
)
def test_it_is_freed_where_that_brings_something(seen: Observation, after: float):
    assert freed(plan_drain(seen, noon(after))) == ["web-0"]


def test_workloads_that_serve_nowhere_stand_in_line_before_those_that_do():
    api = pods_of("api", 1, node="spot", cpu=BIG)
    seen = after_death(*api, DEAD, a_pod("web-1", node="od", cpu=BIG), state="terminated")

    first = plan_drain(seen, noon(31))
    assert freed(first) == ["api-0"]
    assert "default/web-0 died; the first of each workload stands in line before it" in str(
        first.waiting
    )
    standing = [replace(pod, deleting=noon(31)) if pod in api else pod for pod in seen.pods]
    assert freed(plan_drain(replace(seen, pods=standing), noon(32))) == ["web-0"]


def test_the_first_of_each_workload_stands_in_line_before_the_second_of_any():
    api = [*pods_of("api", 2, node="spot", cpu=BIG), a_pod("api-9", node="od", cpu=BIG)]
    web = pods_of("web", 2, node="spot", cpu=BIG)
    seen = after_death(*api[:2], *web, state="terminated")
    serving = replace(api[2], labels=api[0].labels, owner=api[0].owner)
    workloads = [a_deployment(replicas=2), a_deployment("api", replicas=3)]
    seen = replace(seen, pods=[*seen.pods, serving], workloads=workloads)

    def after(seconds: float, *gone: str) -> list[str]:
        pods = [replace(p, deleting=noon(31)) if p.name in gone else p for p in seen.pods]
        made = [
            replace(p, name=f"{p.name}-new", uid=f"{p.name}-new", node=None, phase="Pending")
            for p in seen.pods
            if p.name in gone
        ]
        return freed(plan_drain(replace(seen, pods=[*pods, *made]), noon(seconds)))

    (first,) = after(31)
    assert first in {"web-0", "web-1"}  # nothing of it serves
    (second,) = after(32, first)
    assert second in {"api-0", "api-1"}
    assert len(after(33, first, second)) == 2


def test_what_the_api_server_refuses_for_one_workload_holds_up_another_for_five_seconds_at_most():
    api = pods_of("api", 1, node="spot", cpu=BIG)
    seen = after_death(*api, DEAD, a_pod("web-1", node="od", cpu=BIG), state="terminated")

    assert freed(plan_drain(seen, noon(36))) == ["api-0", "web-0"]


def test_nobody_stands_back_where_there_are_places_for_all():
    api = pods_of("api", 1, node="spot", cpu="1")
    dead = a_pod("web-0", node="spot", cpu="1")
    seen = after_death(*api, dead, a_pod("web-1", node="od", cpu="1"), state="terminated")

    assert freed(plan_drain(seen, noon(31))) == ["api-0", "web-0"]
