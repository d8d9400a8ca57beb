"""What a plan makes of situations in which users of queues found a gang waiting, or the wrong one stopped."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from plimsoll.domain.errors import BadInput
from plimsoll_batch.adapters.queues_file import configuration_of
from plimsoll_batch.adapters.snapshot_file import state_of
from plimsoll_batch.domain.admission.decisions import QueuePlan
from plimsoll_batch.domain.admission.planner import plan_queues
from tests.support.builders import NOON
from tests.support.queued import admitted, place_of, victims, waiting

CPU = "resources: {cpu: {nominal: 1}}"
TWO_FLAVORS = f"""
flavors: [{{name: a}}, {{name: b}}]
queues:
  - name: q
    preemption: {{withinQueue: LowerPriority}}
    resourceGroups: [{{flavors: [{{name: a, {CPU}}}, {{name: b, {CPU}}}]}}]
"""
PREEMPT_FIRST = TWO_FLAVORS.replace("    preemption", "    whenCanPreempt: Preempt\n    preemption")


def plan_of(
    queues: str, *gangs: dict[str, Any], nodes: list[dict[str, Any]] | None = None
) -> QueuePlan:
    snapshot = {"gangs": list(gangs)} | ({} if nodes is None else {"nodes": nodes})
    return plan_queues(state_of(snapshot, configuration_of(yaml.safe_load(queues))), NOON)


def a_gang(
    name: str, queue: str = "q", *, hour: int = 12, pods: int = 1, role: Any = None, **more: Any
) -> dict[str, Any]:
    """Return a gang of a snapshot; each pod asks for a CPU, unless a test says more of its only role."""
    roles = [{"name": "w", "pods": pods, "requests": {"cpu": 1}} | (role or {})]
    since = f"2026-01-02T{hour:02}:00:00Z"
    return {"namespace": "lab", "name": name, "queue": queue, "since": since, "roles": roles} | more


def runs(  # noqa: PLR0913 - a test names what it is about
    name: str,
    flavor: str = "any",
    queue: str = "q",
    *,
    hour: int = 11,
    on: str | None = None,
    role: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """Return one that runs, all of it in one flavor, and on one node if a test names it."""
    gang = a_gang(name, queue, hour=hour, role=role, **more)
    [only] = gang["roles"]
    flavors = dict.fromkeys(only["requests"], flavor)
    pods = {} if on is None else {"pods": {"w": {on: only["pods"]}}}
    return gang | {"runs": {"since": gang["since"], "flavors": flavors} | pods}


def flavors_of(plan: QueuePlan) -> dict[str, str]:
    return {each.gang.name: each.flavors["w"][0] for each in plan.admitted}


# --- Which flavor ---------------------------------------------------------------------------------


@pytest.mark.parametrize("queues", [TWO_FLAVORS, PREEMPT_FIRST])
def test_a_gang_that_may_preempt_nobody_in_a_flavor_starts_in_the_next(queues):
    plan = plan_of(queues, runs("equal", "a"), a_gang("new"))
    assert flavors_of(plan) == {"new": "b"}


@pytest.mark.parametrize(
    ("queues", "expected"), [(TWO_FLAVORS, {}), (PREEMPT_FIRST, {"new": ["low"]})]
)
def test_a_queue_says_whether_it_preempts_before_it_tries_the_next_flavor(queues, expected):
    plan = plan_of(queues, runs("low", "a"), a_gang("new", priority=1))
    assert victims(plan) == expected
    assert flavors_of(plan) == ({} if expected else {"new": "b"})


@pytest.mark.parametrize("queues", [TWO_FLAVORS, PREEMPT_FIRST])
def test_a_gang_preempts_in_the_flavor_where_it_may(queues):
    plan = plan_of(
        queues, runs("high", "a", priority=10), runs("low", "b"), a_gang("mid", priority=5)
    )
    assert victims(plan) == {"mid": ["low"]}
    assert plan.preempting[0].usage == {("b", "cpu"): 1000}


@pytest.mark.parametrize(("when", "victim"), [("TryNextFlavor", "guest"), ("Preempt", "own")])
def test_a_gang_takes_back_what_others_borrow_before_it_stops_one_of_its_own_queue(when, victim):
    queues = f"""
flavors: [{{name: a}}, {{name: b}}]
cohorts: [{{name: all}}]
queues:
  - name: q
    cohort: all
    whenCanPreempt: {when}
    preemption: {{withinQueue: LowerPriority, reclaimWithinCohort: Any}}
    resourceGroups: [{{flavors: [{{name: a, {CPU}}}, {{name: b, {CPU}}}]}}]
  - name: guests
    cohort: all
    resourceGroups: [{{flavors: [{{name: b, {CPU.replace("1", "0")}}}]}}]
"""
    plan = plan_of(
        queues, runs("own", "a"), runs("guest", "b", "guests"), a_gang("new", priority=1)
    )
    assert victims(plan) == {"new": [victim]}


def test_where_nodes_are_short_in_every_flavor_a_gang_preempts_where_it_may():
    queues = """
flavors: [{name: a, nodeLabels: {pool: a}}, {name: b, nodeLabels: {pool: b}}]
queues:
  - name: q
    preemption: {withinQueue: LowerPriority}
    resourceGroups:
      - flavors:
          - {name: a, resources: {cpu: {nominal: 9}}}
          - {name: b, resources: {cpu: {nominal: 9}}}
"""
    nodes = [
        {"name": pool, "labels": {"pool": pool}, "allocatable": {"cpu": 1}} for pool in ("a", "b")
    ]
    plan = plan_of(
        queues,
        runs("high", "a", priority=10, on="a"),
        runs("low", "b", on="b"),
        a_gang("mid", priority=5),
        nodes=nodes,
    )
    assert victims(plan) == {"mid": ["low"]}


ZONED = """
flavors:
  - {name: on-demand, nodeLabels: {capacity: on-demand}}
  - {name: spot-a, nodeLabels: {capacity: spot, zone: a}}
queues:
  - name: q
    resourceGroups:
      - flavors:
          - {name: on-demand, resources: {cpu: {nominal: 4}}}
          - {name: spot-a, resources: {cpu: {nominal: 4}}}
"""


@pytest.mark.parametrize(
    ("zone", "capacity", "flavor"),
    [("b", "on-demand", "on-demand"), ("a", "spot", "spot-a"), ("a", "on-demand", "on-demand")],
)
def test_a_flavor_takes_any_value_of_a_label_that_it_does_not_name(zone, capacity, flavor):
    nodes = [
        {"name": "n", "labels": {"capacity": capacity, "zone": zone}, "allocatable": {"cpu": 4}}
    ]
    plan = plan_of(ZONED, a_gang("new", role={"nodeSelector": {"zone": zone}}), nodes=nodes)
    assert flavors_of(plan) == {"new": flavor}


def test_a_gang_that_asks_for_the_nodes_of_a_flavor_is_not_counted_in_one_that_only_includes_them():
    queues = ZONED.replace("nodeLabels: {capacity: on-demand}", "nodeLabels: {}")
    plan = plan_of(queues, a_gang("new", role={"nodeSelector": {"capacity": "spot"}}))
    assert flavors_of(plan) == {"new": "spot-a"}


# --- Who makes way --------------------------------------------------------------------------------


def test_where_quota_is_short_in_one_resource_and_nodes_in_another_all_that_hold_either_make_way():
    queues = """
flavors: [{name: any}]
queues:
  - name: q
    preemption: {withinQueue: LowerPriority}
    resourceGroups:
      - flavors: [{name: any, resources: {cpu: {nominal: 1000}, nvidia.com/gpu: {nominal: 8}}}]
"""
    plan = plan_of(
        queues,
        runs("low-gpu", on="n", role={"requests": {"cpu": 4, "nvidia.com/gpu": 8}}),
        runs("low-cpu", on="n", role={"requests": {"cpu": 28}}),
        a_gang("high", priority=10, role={"requests": {"cpu": 16, "nvidia.com/gpu": 8}}),
        nodes=[{"name": "n", "allocatable": {"cpu": 32, "nvidia.com/gpu": 8}}],
    )
    assert {name: sorted(each) for name, each in victims(plan).items()} == {
        "high": ["low-cpu", "low-gpu"]
    }


def test_where_nodes_suffice_only_those_that_hold_what_quota_is_short_of_make_way():
    queues = """
flavors: [{name: any}]
queues:
  - name: q
    preemption: {withinQueue: LowerPriority}
    resourceGroups:
      - flavors: [{name: any, resources: {cpu: {nominal: 1000}, nvidia.com/gpu: {nominal: 8}}}]
"""
    plan = plan_of(
        queues,
        runs("low-gpu", on="n", role={"requests": {"cpu": 4, "nvidia.com/gpu": 8}}, hour=10),
        runs("low-cpu", on="n", role={"requests": {"cpu": 28}}),
        a_gang("high", priority=10, role={"requests": {"cpu": 16, "nvidia.com/gpu": 8}}),
        nodes=[
            {"name": name, "allocatable": {"cpu": 32, "nvidia.com/gpu": 8}} for name in ("n", "m")
        ],
    )
    assert victims(plan) == {"high": ["low-gpu"]}


@pytest.mark.parametrize(
    ("important", "lesser", "expected"),
    [
        ((100, 10), (0, 11), "lesser"),
        ((0, 11), (0, 10), "important"),
        ((100, 11), (0, 10), "lesser"),
    ],
)
def test_of_queues_with_equal_shares_the_gang_of_lower_priority_is_stopped_and_then_the_newer(
    important, lesser, expected
):
    queues = """
flavors: [{name: any}]
cohorts:
  - name: co
    order: dominant-resource-share
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 2}}}]}]
queues:
  - name: a
    cohort: co
    preemption: {reclaimWithinCohort: Any}
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 2}}}]}]
  - {name: b, cohort: co, resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 0}}}]}]}
  - {name: c, cohort: co, resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 0}}}]}]}
"""
    plan = plan_of(
        queues,
        *(
            runs(name, queue=queue, priority=priority, hour=hour, pods=2)
            for name, queue, (priority, hour) in (
                ("important", "b", important),
                ("lesser", "c", lesser),
            )
        ),
        a_gang("new", "a", pods=2),
    )
    assert victims(plan) == {"new": [expected]}


# --- Topologies and resources ---------------------------------------------------------------------

RACKS = """
flavors: [{name: any}]
topologyLevels: [block, rack]
queues: [{name: q, resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 10}}}]}]}]
"""


def a_rack(block: str | None, cpus: int = 1) -> dict[str, Any]:
    labels = {"rack": "r1"} | ({} if block is None else {"block": block})
    return {"name": f"{block}-{cpus}", "labels": labels, "allocatable": {"cpu": cpus}}


@pytest.mark.parametrize("blocks", [("b1", "b2"), ("b1", None)])
def test_racks_of_one_name_in_two_blocks_are_two_racks(blocks):
    gang = a_gang("g", pods=2, topology={"label": "rack", "required": True})
    assert admitted(plan_of(RACKS, gang, nodes=[a_rack(block) for block in blocks])) == []


def test_a_gang_in_one_rack_is_steered_to_the_rack_and_its_block():
    gang = a_gang("g", pods=2, topology={"label": "rack", "required": True})
    plan = plan_of(RACKS, gang, nodes=[a_rack("b1"), a_rack("b2", 2)])
    assert place_of(plan).domain == (("block", "b2"), ("rack", "r1"))
    assert place_of(plan).nodes == {"w": {"b2-2": 2}}


def test_a_gang_in_one_block_may_use_all_its_racks():
    nodes = [a_rack("b1"), a_rack("b1", 2) | {"labels": {"block": "b1", "rack": "r2"}}]
    gang = a_gang("g", pods=3, topology={"label": "block", "required": True})
    assert place_of(plan_of(RACKS, gang, nodes=nodes)).domain == (("block", "b1"),)


def test_a_gang_may_request_what_no_queue_counts_as_far_as_nodes_have_it():
    free = RACKS + "freeResources: [memory]\n"
    nodes = [{"name": "n", "allocatable": {"cpu": 4, "memory": "4Gi"}}]
    gangs = [
        a_gang("fits", hour=11, role={"requests": {"cpu": 1, "memory": "3Gi"}}),
        a_gang("large", role={"requests": {"cpu": 1, "memory": "3Gi"}}),
    ]
    assert "no quota for memory" in waiting(plan_of(RACKS, *gangs, nodes=nodes))["fits"]
    plan = plan_of(free, *gangs, nodes=nodes)
    assert admitted(plan) == ["fits"]
    assert plan.admitted[0].usage == {("any", "cpu"): 1000}
    assert [each.gang.name for each in plan.reserved] == []
    assert "0 of 1 pods have a place" in waiting(plan)["large"]


def test_where_a_free_resource_is_short_on_nodes_who_holds_it_makes_way():
    queues = RACKS.replace("name: q,", "name: q, preemption: {withinQueue: LowerPriority},")
    plan = plan_of(
        queues + "freeResources: [memory]\n",
        runs("low", on="n", role={"requests": {"memory": "3Gi"}}),
        a_gang("high", priority=1, role={"requests": {"cpu": 1, "memory": "3Gi"}}),
        nodes=[{"name": "n", "allocatable": {"cpu": 4, "memory": "4Gi"}}],
    )
    assert victims(plan) == {"high": ["low"]}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("topologyLevels: [rack, rack]", "topology level rack: stands there twice"),
        ("freeResources: [cpu]", "free resource cpu: a queue or cohort has quota of it"),
    ],
)
def test_a_level_that_stands_twice_and_a_free_resource_with_quota_are_refused(line, told):
    with pytest.raises(BadInput, match=told):
        configuration_of(yaml.safe_load(RACKS.replace("topologyLevels: [block, rack]", line)))
