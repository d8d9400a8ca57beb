"""Latest safe starts, capacity, and how an interruption ends: marks, completion, renewal, the report."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.domain.actions import (
    CompleteLifecycle,
    Evict,
    ForceDelete,
    Grow,
    Heartbeat,
    OutOfService,
    Plan,
    Record,
    TerminateInstance,
    Uncordon,
)
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import Interruption, LifecycleHook, NoticeRecord, marked
from plimsoll.domain.kubernetes import IGNORE, STOP_SECONDS, Ref, Taint
from plimsoll.domain.node_groups import InsufficientCapacity
from tests.support.builders import (
    NOON,
    a_budget,
    a_deployment,
    a_group,
    a_node,
    a_pod,
    a_stateful_set,
    pods_of,
)
from tests.support.observations import (
    actions,
    died,
    ec2,
    interrupted,
    looked,
    noon,
    released,
    sets_of,
    sole_action,
)


def is_empty(plan: Plan) -> bool:
    said = (plan.steps, plan.waiting, plan.notes, plan.reports, plan.due)
    return not any(said) and not plan.busy and not plan.hurried


def test_nothing_is_planned_for_a_cluster_in_which_no_node_is_going():
    plan = plan_drain(looked([a_node("od")], pods_of("web", 3, node="od"), [a_deployment()]), NOON)

    assert is_empty(plan)


def test_at_the_latest_safe_start_a_pod_goes_even_without_a_replacement():
    pods = pods_of("web", 1, node="spot", grace_seconds=30)
    seen = looked([interrupted("spot")], pods, [a_deployment(replicas=1)])

    assert actions(plan_drain(seen, noon(87)), Evict) == []
    assert plan_drain(seen, noon(87)).next_eviction == noon(88)
    (last,) = actions(plan_drain(seen, noon(88)), Evict)
    assert last.overrule
    assert last.grace_seconds is None


def test_a_grace_period_that_does_not_fit_is_clamped_but_never_to_zero():
    needs = {"plimsoll.dev/stop-seconds": "600"}
    pods = pods_of("web", 1, node="spot", grace_seconds=600, annotations=needs)
    seen = looked([interrupted("spot")], pods, [a_deployment(replicas=1)])

    (first,) = actions(plan_drain(seen, noon(1)), Evict)
    assert first.grace_seconds == 117
    (begun,) = actions(plan_drain(seen, noon(1.2)), Evict)
    assert begun.grace_seconds == 117  # the margin is longer than the second that has begun
    (late,) = actions(plan_drain(seen, noon(300)), Evict)
    assert late.grace_seconds == 1


def test_a_bare_pod_and_a_job_are_told_as_late_as_is_safe():
    pods = [
        a_pod("alone", node="spot", owner=None, grace_seconds=10),
        a_pod("work", node="spot", owner=("Job", "work"), grace_seconds=10),
    ]
    seen = looked([interrupted("spot"), a_node("od")], pods)

    assert actions(plan_drain(seen, noon(100)), Evict) == []
    assert len(actions(plan_drain(seen, noon(109)), Evict)) == 2


def test_daemons_and_mirrors_are_left():
    pods = [
        a_pod("log", node="spot", owner=("DaemonSet", "log")),
        a_pod("static", node="spot", owner=("Node", "spot")),
    ]
    plan = plan_drain(looked([interrupted("spot")], pods), noon(119))

    assert actions(plan, Evict) == []
    (record,) = actions(plan, Record)
    assert record.interruption.emptied == noon(119)
    assert record.reason == "no pod is left on it that must leave"


@pytest.mark.parametrize("kind", ["spot-interruption", "rebalance-recommendation"])
def test_a_node_with_a_pod_whose_owner_opted_out_is_never_empty(kind):
    node = interrupted("spot", kind=kind, ends=None if kind.startswith("rebalance") else 120)
    mine = a_pod("mine", node="spot", owner=None, labels={IGNORE: "true"})
    plan = plan_drain(looked([node], [mine]), noon(119))

    assert plan.actions == ()
    assert "opted-out" in plan.waiting["spot"][0]


def test_a_node_with_an_opted_out_pod_is_neither_terminated_nor_completed():
    mine = a_pod("mine", node="spot", owner=None, labels={IGNORE: "true"})
    advised = interrupted("spot", kind="rebalance-recommendation", ends=None)
    instances = frozenset({advised.instance or ""})
    group = replace(a_group("spot", desired=1), instances=instances, renew=True)
    hooked = waiting(OURS, pods=[mine])

    assert actions(plan_drain(looked([advised], [], groups=[group]), noon(60)), TerminateInstance)
    assert plan_drain(looked([advised], [mine], groups=[group]), noon(60)).actions == ()
    assert actions(plan_drain(hooked, noon(60)), CompleteLifecycle) == []


def test_a_node_emptied_after_a_rebalance_closes_its_interruption():
    seen = looked([interrupted("spot", kind="rebalance-recommendation", ends=None)], [])

    (record,) = actions(plan_drain(seen, noon(60)), Record)
    assert record.interruption.phase == "closed"


def test_capacity_is_asked_for_in_the_first_plan_and_never_for_the_groups_that_are_going():
    node = interrupted("spot")
    groups = [
        a_group("base", desired=1, max_size=5),
        replace(
            a_group("spot", capacity="spot", desired=1), instances=frozenset({node.instance or ""})
        ),
    ]
    pods = pods_of("web", 3, node="spot", cpu="4")
    plan = plan_drain(looked([node], pods, [a_deployment(replicas=3)], groups=groups), noon(1))

    grown = actions(plan, Grow)
    assert {g.group.name for g in grown} == {"base"}
    assert sum(g.add for g in grown) == 1  # one is on its way already, and each takes two
    assert plan.actions[0] == grown[0]


def ending(kind, name="g", **how):
    """Return a group and its only node, which is about to end."""
    record = NoticeRecord(kind=kind, time=NOON, id="1", ends=noon(120))
    node = a_node("spot", unschedulable=True)
    interruption = Interruption(
        instance=node.instance or "", launched=NOON, node="spot", notices=(record,), cordoned=NOON
    )
    group = a_group(name, desired=1, instances=[node.instance or ""], **how)
    return group, replace(node, interruption=interruption)


@pytest.mark.parametrize("kind", ["spot-interruption", "lifecycle-terminate"])
def test_where_nothing_else_is_left_a_group_that_is_going_is_asked(kind):
    group, node = ending(kind, capacity="spot")
    pods = pods_of("web", 1, node="spot", cpu="4")
    seen = looked([node], pods, [a_deployment(replicas=1)], groups=[group])

    assert sum(g.add for g in actions(plan_drain(seen, noon(1)), Grow)) == 1


def test_a_group_that_ends_an_instance_by_a_lifecycle_action_is_asked_after_all_others():
    group, node = ending("lifecycle-terminate", name="a-cheaper-one")
    other = a_group("spare", capacity="spot", desired=0)
    pods = pods_of("web", 1, node="spot", cpu="4")
    seen = looked([node], pods, [a_deployment(replicas=1)], groups=[group, other])

    (grow,) = actions(plan_drain(seen, noon(1)), Grow)
    assert grow.group.name == "spare"


def test_a_group_that_wants_less_is_asked_for_nothing_while_the_rest_of_the_nodes_have_room():
    group, node = ending("lifecycle-terminate")
    pods = pods_of("web", 1, node="spot", cpu="1")
    seen = looked([node, a_node("od")], pods, [a_deployment(replicas=1)], groups=[group])

    assert actions(plan_drain(seen, noon(1)), Grow) == []


def test_an_ask_has_the_same_token_in_every_look_and_another_once_it_was_refused_for_a_minute():
    pods = pods_of("web", 3, node="spot", cpu="4")
    seen = looked(
        [interrupted("spot")], pods, [a_deployment(replicas=3)], groups=[a_group("base", desired=0)]
    )

    first, second, later = (
        [grow.token for grow in actions(plan_drain(seen, noon(when)), Grow)] for when in (1, 2, 61)
    )
    assert {*first} == {*second}
    assert len({*first}) == len(first) > 0
    assert first[0] != later[0]


@pytest.mark.parametrize(("gates", "asked"), [([], 2), ([{"name": "example.com/quota"}], 1)])
def test_no_capacity_is_asked_for_a_pod_behind_a_scheduling_gate(gates, asked):
    spot = pods_of("web", 1, node="spot", cpu="4")
    other = pods_of("batch", 1, cpu="8", schedulingGates=gates)
    seen = looked(
        [interrupted("spot")],
        [*spot, *other],
        [a_deployment(replicas=1), a_deployment("batch", replicas=1)],
        groups=[a_group("base", desired=0)],
    )

    assert sum(g.add for g in actions(plan_drain(seen, noon(1)), Grow)) == asked


def test_capacity_on_its_way_is_not_asked_for_again():
    pods = pods_of("web", 3, node="spot", cpu="4")
    seen = looked(
        [interrupted("spot")], pods, [a_deployment(replicas=3)], groups=[a_group("base", desired=2)]
    )

    assert actions(plan_drain(seen, noon(1)), Grow) == []


def test_what_a_group_replaces_by_itself_is_not_asked_for_beside_it():
    drained = interrupted("drained")
    assert drained.interruption is not None
    drained = replace(drained, interruption=marked(drained.interruption, closed=noon(50)))
    group = a_group("base", desired=1, instances=[drained.instance or ""])
    pods = pods_of("web", 1, node="spot", cpu="4")
    nodes = [interrupted("spot"), drained]
    seen = looked(nodes, pods, [a_deployment(replicas=1)], groups=[group])

    assert actions(plan_drain(seen, noon(60)), Grow) == []


OURS = LifecycleHook(
    group="g", name="h", timeout=timedelta(seconds=300), longest=timedelta(hours=8), ours=True
)
THEIRS = replace(OURS, name="logs", ours=False)
LOGS = replace(THEIRS, timeout=timedelta(seconds=500))


def waiting(*hooks, beaten=None, pods=(), **how):
    """Return a look at a node whose instance waits for hooks since noon; each told of itself."""
    node = a_node("spot", unschedulable=True)
    notices = tuple(
        NoticeRecord(
            kind="lifecycle-terminate",
            time=NOON,
            id=hook.name,
            ends=noon(300) if beaten is None else NOON + hook.longest,
            about=hook.name,
            guessed=beaten is None,
            heartbeat=beaten,
        )
        for hook in hooks
    )
    interruption = Interruption(
        instance=node.instance or "", launched=NOON, node="spot", notices=notices, cordoned=NOON
    )
    group = replace(a_group("g"), waiting=frozenset({node.instance or ""}), hooks=hooks)
    return looked([replace(node, interruption=interruption)], list(pods), groups=[group], **how)


@pytest.mark.parametrize(
    ("hooks", "completed"), [((OURS,), ["h"]), ((THEIRS,), []), ((OURS, THEIRS), ["h"])]
)
def test_only_our_own_hooks_are_completed_when_the_node_is_empty(hooks, completed):
    plan = plan_drain(waiting(*hooks), noon(60))

    done = actions(plan, CompleteLifecycle)
    assert [hook.name for action in done for hook in action.hooks] == completed
    for action in done:
        assert (action.interruption.closed, action.interruption.emptied) == (noon(60), noon(60))


def test_a_hook_is_completed_once_the_volumes_of_its_node_are_detached_or_hang_for_two_minutes():
    attached = {"spot": frozenset({"pv-1"})}
    seen = waiting(OURS, attached=attached)

    (beat,) = plan_drain(seen, noon(60)).actions
    assert isinstance(beat, Heartbeat)
    assert (beat.interruption.emptied, beat.interruption.closed) == (noon(60), None)
    (spot,) = seen.nodes
    emptied = replace(seen, nodes=[replace(spot, interruption=beat.interruption)])
    assert actions(plan_drain(emptied, noon(179)), CompleteLifecycle) == []
    assert actions(plan_drain(emptied, noon(180)), CompleteLifecycle) != []
    detached = replace(emptied, attached={})
    assert actions(plan_drain(detached, noon(61)), CompleteLifecycle) != []


def test_an_empty_node_is_ended_once_its_volumes_are_detached():
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    group = replace(a_group("spot"), instances=frozenset({node.instance or ""}), renew=True)
    attached = {"spot": frozenset({"pv-1"})}

    (record,) = plan_drain(looked([node], [], groups=[group], attached=attached), noon(60)).actions
    assert isinstance(record, Record)
    assert record.interruption.emptied == noon(60)
    later = replace(node, interruption=record.interruption)
    assert actions(plan_drain(looked([later], [], groups=[group]), noon(61)), TerminateInstance)


@pytest.mark.parametrize(
    ("hooks", "beaten", "now", "beats", "deadline"),
    [
        ((OURS,), None, 1, True, 8 * 3600),  # its timeout is known to end nothing
        ((OURS,), noon(151), 250, False, None),
        ((OURS,), noon(151), 302, True, 8 * 3600),
        ((THEIRS,), None, 151, False, 300),
        ((OURS, THEIRS), None, 151, True, 300),
    ],
)
def test_our_own_hooks_get_heartbeats_while_pods_are_on_the_node(
    hooks, beaten, now, beats, deadline
):
    pods = [a_pod("sum", node="spot", owner=("Job", "sum"))]
    plan = plan_drain(waiting(*hooks, beaten=beaten, pods=pods), noon(now))

    assert bool(actions(plan, Heartbeat)) is beats
    written = [a.interruption for a in actions(plan, Heartbeat)]
    written += [a.interruption for a in actions(plan, Record)]
    expected = [] if deadline is None else [(noon(deadline - 2), False)]
    assert [(i.deadline, i.guessed) for i in written] == expected
    assert actions(plan, CompleteLifecycle) == []


def test_a_hook_of_ours_that_was_just_read_asks_no_pod_to_stop():
    pods = pods_of("web", 1, node="spot", grace_seconds=600, annotations={STOP_SECONDS: "600"})
    assert actions(plan_drain(waiting(OURS, pods=pods), noon(1)), Evict) == []
    assert actions(plan_drain(waiting(THEIRS, pods=pods), noon(1)), Evict) != []


@pytest.mark.parametrize(
    ("hooks", "gained"),
    [((OURS,), None), ((OURS, LOGS), 248), ((OURS, THEIRS), 48), ((THEIRS,), 48)],
)
def test_an_eviction_knows_the_time_that_the_first_heartbeat_in_its_plan_may_gain(hooks, gained):
    pods = pods_of("web", 1, node="spot", grace_seconds=600, annotations={STOP_SECONDS: "60"})

    (evict,) = actions(plan_drain(waiting(*hooks, pods=pods), noon(250)), Evict)

    assert (evict.grace_seconds, evict.kept_up_grace_seconds) == (48, gained)


def test_while_no_heartbeat_is_accepted_a_pod_is_asked_to_stop_in_time_for_the_timeout_of_its_hook():
    pods = pods_of("web", 1, node="spot", grace_seconds=60, annotations={STOP_SECONDS: "60"})
    seen = waiting(OURS, pods=pods)

    assert actions(plan_drain(seen, noon(237)), Evict) == []
    assert len(actions(plan_drain(seen, noon(238)), Evict)) == 1


SLOW = pods_of("web", 1, node="spot", grace_seconds=40, annotations={STOP_SECONDS: "40"})
CHANGED = interrupted("spot", kind="health-scheduled-change", ends=300)


@pytest.mark.parametrize(
    ("seen", "overrules", "seconds"),
    [
        (looked([interrupted("spot", ends=300)], SLOW), True, 18),
        (looked([CHANGED], SLOW), True, None),
        (replace(waiting(OURS, pods=SLOW), groups=()), False, None),
    ],
    ids=["spot", "a scheduled change", "a guess"],
)
def test_a_date_overrules_a_budget_unless_it_is_guessed_and_only_spot_cuts_short(
    seen, overrules, seconds
):
    (last,) = actions(plan_drain(seen, noon(280)), Evict)

    assert (last.overrule, last.grace_seconds) == (overrules, seconds)


@pytest.mark.parametrize(
    ("by_owner", "kind", "asked"),
    [(False, "state-change", 1), (True, "state-change", 0), (True, "spot-interruption", 1)],
)
def test_what_an_owner_ended_buys_no_capacity_unless_spot_had_announced_it(by_owner, kind, asked):
    node = interrupted("spot", kind=kind)
    said = {
        i: replace(s, ended_by_owner=by_owner) for i, s in ec2(node, state="shutting-down").items()
    }
    pods = pods_of("web", 1, node="spot")
    seen = looked([node], pods, [a_deployment()], groups=[a_group()], instances=said)

    assert len(actions(plan_drain(seen, noon(1)), Grow)) == asked


@pytest.mark.parametrize("stopping", [None, noon(31)])
def test_capacity_is_asked_for_what_died_before_its_successor_is_made(stopping):
    node = replace(died(interrupted("spot")), ready=True)
    pods = sets_of("db", ["spot"], deleting=stopping)
    seen = looked(
        [node], pods, [a_stateful_set(replicas=1)], groups=[a_group()], instances=ec2(node)
    )

    (grow,) = actions(plan_drain(seen, noon(32)), Grow)
    assert grow.add == 1


def test_capacity_is_asked_once_for_what_died_and_its_successor():
    node = replace(died(interrupted("spot")), ready=True)
    pods = [
        *pods_of("web", 1, node="spot", cpu="5", deleting=noon(31)),
        a_pod("web-new", cpu="5"),
    ]
    seen = looked([node], pods, [a_deployment(replicas=1)], groups=[a_group()], instances=ec2(node))

    (grow,) = actions(plan_drain(seen, noon(32)), Grow)
    assert grow.add == 1


@pytest.mark.parametrize("by_owner", [True, False])
def test_a_pod_of_an_instance_that_has_begun_to_end_is_not_cut_short(by_owner):
    node = interrupted("spot", kind="state-change", ends=0)
    said = {
        i: replace(s, ended_by_owner=by_owner) for i, s in ec2(node, state="shutting-down").items()
    }
    seen = looked([node], pods_of("web", 1, node="spot"), [a_deployment()], instances=said)

    (last,) = actions(plan_drain(seen, noon(1)), Evict)
    assert (last.overrule, last.grace_seconds) == (True, None)


@pytest.mark.parametrize(
    ("ready", "said", "forced"),
    [
        (False, None, False),  # whatever an event told: the record says that it is gone
        (False, "running", False),
        (False, "stopping", False),
        (False, "stopped", True),
        (False, "terminated", True),
        (True, "terminated", False),
    ],
)
def test_pods_and_volumes_are_freed_while_ec2_says_that_the_instance_is_off_and_no_sooner(
    ready, said, forced
):
    node = replace(died(interrupted("spot")), ready=ready)
    instances = {} if said is None else ec2(node, state=said)
    attached = {"spot": frozenset({"pv-1"})}
    seen = looked(
        [node],
        sets_of("db", ["spot"]),
        [a_stateful_set(replicas=1)],
        attached=attached,
        instances=instances,
    )

    plan = plan_drain(seen, noon(130))
    assert len(actions(plan, ForceDelete)) == len(actions(plan, OutOfService)) == forced
    if ready:
        assert actions(plan, Evict) == []


def test_while_a_dead_node_is_ready_a_deployment_s_pod_is_evicted_and_a_stateful_set_s_left_alone():
    node = replace(died(interrupted("spot")), ready=True)
    seen = looked(
        [node],
        [*sets_of("db", ["spot"]), *pods_of("web", 1, node="spot")],
        [a_stateful_set(replicas=1), a_deployment(replicas=1)],
        instances=ec2(node),
    )

    (asked,) = actions(plan_drain(seen, noon(130)), Evict)

    assert (asked.pod.name, asked.overrule, asked.grace_seconds) == ("web-0", True, None)


@pytest.mark.parametrize(
    ("since", "forced"),
    [(None, 1), (noon(10), 1), (noon(40), 0)],
    ids=["alive", "stopping", "forced"],
)
def test_a_dead_pod_that_finalizers_hold_is_deleted_by_force_until_it_has_no_grace_period_left(
    since, forced
):
    (pod,) = sets_of("db", ["spot"])
    told = replace(pod, deleting=since and noon(40), stopping_since=since)

    assert len(actions(plan_drain(dead(told), noon(130)), ForceDelete)) == forced


def test_a_pod_that_only_finalizers_hold_on_a_dead_node_keeps_no_reconcile_busy():
    node = replace(died(interrupted("spot", ends=-600)), ready=False)
    (pod,) = sets_of("db", ["spot"])
    held = replace(pod, deleting=noon(40), stopping_since=noon(40))
    seen = looked([node, a_node("od")], [held], instances=ec2(node))

    assert not plan_drain(seen, noon(1000)).busy


def test_at_its_latest_safe_start_a_job_s_pod_is_evicted_and_never_deleted_past_its_budget():
    work = a_pod("work", node="spot", owner=("Job", "work"), grace_seconds=10)
    seen = looked([interrupted("spot"), a_node("od")], [work])

    (last,) = actions(plan_drain(seen, noon(109)), Evict)

    assert (last.pod.name, last.overrule) == ("work", False)


def dead(*pods, ready=False, attached=()):
    """Return a look at a node that died at 30 s, with these pods on it."""
    node = replace(died(interrupted("spot")), ready=ready)
    volumes = {"spot": frozenset(attached)}
    return looked([node, a_node("od")], list(pods), attached=volumes, instances=ec2(node))


@pytest.mark.parametrize("ready", [True, False])
def test_a_dead_pod_of_a_job_is_evicted_and_never_deleted(ready):
    work = a_pod("work", node="spot", owner=("Job", "work"))
    plan = plan_drain(dead(work, a_pod("bare", node="spot", owner=None), ready=ready), noon(130))

    assert [(e.pod.name, e.overrule) for e in actions(plan, Evict)] == [
        ("work", False),
        *([("bare", True)] if ready else []),
    ]
    assert [f.pod.name for f in actions(plan, ForceDelete)] == ([] if ready else ["bare"])


def test_once_only_evicted_pods_of_jobs_are_left_on_a_dead_node_it_is_out_of_service_for_pod_gc():
    work = a_pod("work", node="spot", owner=("Job", "work"))
    told = replace(work, deleting=noon(140))
    bare = a_pod("bare", node="spot", owner=None)
    out = replace(bare, labels={IGNORE: "true"})

    asked = [
        bool(actions(plan_drain(dead(*pods, ready=ready), noon(130)), OutOfService))
        for pods, ready in [
            ([told], False),
            ([told], True),
            ([work], False),
            ([told, bare], False),
            ([told, out], False),
        ]
    ]

    assert asked == [True, False, False, False, False]


@pytest.mark.parametrize("ready", [True, False])
def test_pods_of_jobs_that_pod_gc_ends_keep_a_reconcile_busy_only_until_their_node_is_found_dead(
    ready,
):
    told = a_pod("work", node="spot", owner=("Job", "work"), deleting=noon(140))
    taint = Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")
    node = replace(died(interrupted("spot", ends=-600)), taints=(taint,), ready=ready)
    seen = looked([node, a_node("od")], [told], instances=ec2(node, state="stopped"))

    assert plan_drain(seen, noon(1000)).busy is ready


def test_a_dead_pod_of_a_job_whose_budget_refuses_is_left_to_pod_gc_after_ten_minutes():
    work = a_pod("work", node="spot", owner=("Job", "work"))

    assert actions(plan_drain(dead(work), noon(629)), Evict)
    later = plan_drain(dead(work), noon(630))
    assert actions(later, Evict) == []
    assert actions(later, OutOfService)


@pytest.mark.parametrize(
    ("now", "room", "priority", "freed"),
    [
        (40, "0", 0, {"db-0"}),
        (40, "8", 0, {"db-0", "sum"}),
        (40, "0", 1000, {"db-0", "sum"}),
        (331, "0", 0, {"db-0", "sum"}),  # it waits for five minutes at most
    ],
)
def test_a_dead_pod_that_serves_nobody_leaves_places_that_are_short_to_those_that_serve(
    now, room, priority, freed
):
    node = died(interrupted("spot"))
    pod = a_pod("sum", node="spot", owner=("Job", "sum"), priority=priority, restartPolicy="Never")
    seen = looked(
        [node, a_node("od", cpu=room)],
        [pod, *sets_of("db", ["spot"])],
        [a_stateful_set(replicas=1)],
        groups=[a_group()],
        instances=ec2(node),
    )

    plan = plan_drain(seen, noon(now))
    ends = [*actions(plan, ForceDelete), *actions(plan, Evict)]
    assert {action.pod.name for action in ends} == freed
    assert any("serve" in text for text in plan.waiting.get("spot", ())) == ("sum" not in freed)


REBORN = "its instance was launched again"
RUNS_ON = "its deadline is long past"


@pytest.mark.parametrize(
    ("state", "launched", "now", "closed", "because"),
    [
        ("running", noon(300), 310, False, REBORN),
        ("pending", noon(300), 310, False, REBORN),
        ("running", noon(300), 310, True, REBORN),  # such as one that comes back from a warm pool
        ("stopped", noon(300), 310, False, None),
        ("running", NOON, 310, False, None),
        ("running", NOON, 119 + 600, False, RUNS_ON),
        (None, NOON, 119 + 600, False, None),  # EC2 does not answer
    ],
)
def test_a_node_that_runs_again_is_given_back_and_its_pods_are_left(
    state, launched, now, closed, because
):
    node = interrupted("spot")
    assert node.interruption is not None
    if closed:
        node = replace(node, interruption=marked(node.interruption, closed=noon(119)))
    seen = looked(
        [node],
        pods_of("web", 1, node="spot"),
        [a_deployment(replicas=1)],
        instances=ec2(node, state=state, launched=launched) if state else {},
    )

    plan = plan_drain(seen, noon(now))
    if because is None:
        assert actions(plan, Uncordon) == []
        assert state or plan.actions == ()
    else:
        assert because in sole_action(plan, Uncordon).reason


@pytest.mark.parametrize(
    ("ready_since", "now", "pods", "given_back"),
    [(-600, 310, 0, False), (-600, 310, 1, True), (-600, 350, 0, True), (320, 330, 0, True)],
    ids=["before its launch", "with pods", "for longer than nobody notices", "since its launch"],
)
def test_an_empty_node_whose_instance_runs_again_is_given_back_only_when_it_tells_of_this_launch(
    ready_since, now, pods, given_back
):
    node = replace(interrupted("spot"), ready_since=noon(ready_since))
    runs = ec2(node, state="running", launched=noon(300))
    seen = looked([node], pods_of("web", pods, node="spot"), instances=runs)

    assert bool(actions(plan_drain(seen, noon(now)), Uncordon)) is given_back


def test_a_notice_after_the_relaunch_keeps_the_node_interrupted_though_the_index_lagged_behind():
    former = interrupted("spot")
    assert former.interruption is not None
    later = NoticeRecord(
        kind="health-scheduled-change", time=noon(310), id="b", about="arn", ends=noon(500)
    )
    both = replace(former.interruption, notices=(*former.interruption.notices, later))
    node = replace(former, interruption=both)
    seen = looked(
        [node, a_node("od")],
        pods_of("web", 2, node="spot"),
        [replace(a_deployment(replicas=2), max_surge=0)],
        instances=ec2(node, state="running", launched=noon(300)),
    )

    plan = plan_drain(seen, noon(320))  # the first launch was to end at 120 s
    assert actions(plan, Uncordon) == []
    assert len(actions(plan, Evict)) == 1  # one at a time: it is not the eviction deadline of both
    assert plan.reports[0].deadline == noon(498)


def test_pods_still_there_when_the_instance_is_gone_are_reported_as_killed():
    node = interrupted("spot")
    seen = looked([node], pods_of("web", 1, node="spot"), [a_deployment(replicas=1)])
    gone = seen.among(instances=ec2(node))

    plan = plan_drain(gone, noon(130))
    assert plan.reports[0].killed == ("default/web-0",)


def test_what_was_called_off_gives_the_node_back():
    node = a_node("spot", unschedulable=True)
    notices = (
        NoticeRecord(kind="health-scheduled-change", time=NOON, id="a", about="arn"),
        NoticeRecord(
            kind="health-scheduled-change", time=noon(9), id="b", about="arn", state="closed"
        ),
    )
    interruption = Interruption(
        instance=node.instance or "", launched=NOON, node="spot", notices=notices
    )
    seen = looked([replace(node, interruption=interruption)], pods_of("web", 1, node="spot"))

    plan = plan_drain(seen, noon(60))
    assert [type(a) for a in plan.actions] == [Uncordon]


def test_a_closed_interruption_is_over():
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    assert node.interruption is not None
    closed = replace(node, interruption=marked(node.interruption, closed=noon(50)))

    assert is_empty(plan_drain(looked([closed], []), noon(60)))


def test_a_budget_that_allows_nothing_now_is_waited_for_without_asking():
    workload = replace(a_deployment(replicas=4), max_surge=0)
    seen = looked(
        [interrupted("spot"), a_node("od")],
        pods_of("web", 4, node="spot"),
        [workload],
        budgets=[a_budget("web", minAvailable=1, allowed=0)],
    )

    plan = plan_drain(seen, noon(1))
    assert actions(plan, Evict) == []
    assert "PodDisruptionBudget web allows no disruption now" in plan.waiting["spot"][0]


def test_an_empty_node_is_renewed_where_its_owner_lets_us():
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    group = replace(
        a_group("spot", capacity="spot", desired=1),
        instances=frozenset({node.instance or ""}),
        renew=True,
    )

    assert actions(plan_drain(looked([node], []), noon(60)), TerminateInstance) == []
    (renewed,) = actions(
        plan_drain(looked([node], [], groups=[group]), noon(60)), TerminateInstance
    )
    assert renewed.interruption.phase == "closed"
    with_pod = looked([node], pods_of("web", 1, node="spot"), groups=[group])
    assert actions(plan_drain(with_pod, noon(60)), TerminateInstance) == []


def test_why_nodes_of_a_group_are_not_counted_on_is_said_in_the_words_of_aws():
    told = InsufficientCapacity(at=noon(0), why="No m6i.2xlarge.")
    group = replace(a_group(desired=1), refusals=(told,))
    pods = pods_of("web", 3, node="spot")
    seen = looked([interrupted("spot")], pods, [a_deployment(replicas=3)], groups=[group])
    said = "base is the last resort: its last launch failed: No m6i.2xlarge."
    plan = plan_drain(seen, noon(1))
    assert said in plan.waiting["spot"]
    (report,) = plan.reports
    (cure,) = report.refused.values()
    assert cure.startswith("base was refused (insufficient-capacity): No m6i.2xlarge. Cure: give")


def test_who_cannot_be_saved_is_given_up_in_words_by_priority():
    pods = [
        *pods_of("low", 1, node="spot", cpu="9", priority=1),
        *pods_of("high", 1, node="spot", cpu="9", priority=9),
    ]
    workloads = [a_deployment("low", replicas=1), a_deployment("high", replicas=1)]
    plan = plan_drain(looked([interrupted("spot"), a_node("od")], pods, workloads), noon(1))

    given_up = [words for words in plan.waiting["spot"] if words.startswith("no headroom for")]
    assert [words.split(": ")[0] for words in given_up] == [
        "no headroom for Pod default/high-0",
        "no headroom for Pod default/low-0",
    ]


def test_the_report_says_when_capacity_was_asked_for_and_when_all_was_replaced():
    pods = pods_of("web", 1, node="spot", cpu="4")
    asked = plan_drain(
        looked([interrupted("spot")], pods, [a_deployment(replicas=1)], groups=[a_group("base")]),
        noon(1),
    )
    assert asked.reports[0].capacity_asked == noon(1)
    assert asked.reports[0].replaced is None

    new = a_pod("web-9", node="od")
    done = plan_drain(
        looked([interrupted("spot"), a_node("od")], [*pods, new], [a_deployment(replicas=1)]),
        noon(50),
    )
    assert done.reports[0].replaced == noon(50)
    assert asked.reports[0].merged(done.reports[0]).capacity_asked == noon(1)


def test_a_rollout_spends_what_may_be_missing_so_nothing_is_evicted_beside_it():
    rolling = replace(a_deployment(replicas=4), rolling_out=True)
    nodes = [interrupted("spot"), a_node("od")]
    evictable = pods_of("web", 4, node="spot")
    surplus = [*evictable, a_pod("web-9", node="od")]  # the rollout may take one in this instant

    for pods in (evictable, surplus):
        assert actions(plan_drain(looked(nodes, pods, [rolling]), noon(1)), Evict) == []
        assert len(actions(plan_drain(looked(nodes, pods, [rolling]), noon(90)), Evict)) == 4


def test_successors_of_the_dead_have_their_room_before_anybody_else_moves():
    gone = died(interrupted("gone"))
    nodes = [gone, interrupted("spot"), a_node("od", cpu="2")]
    pods = [
        *sets_of("db", ["gone"], cpu="2"),
        a_pod(
            "cache-0", node="spot", labels={"app": "cache"}, owner=("StatefulSet", "cache"), cpu="2"
        ),
    ]
    plan = plan_drain(
        looked(
            nodes,
            pods,
            [a_stateful_set(replicas=1), a_stateful_set("cache", replicas=1)],
            instances=ec2(gone),
        ),
        noon(40),
    )

    assert [a.pod.name for a in actions(plan, ForceDelete)] == ["db-0"]
    assert actions(plan, Evict) == []


def test_a_node_that_is_going_is_no_place_even_for_who_tolerates_it():
    pods = sets_of("db", ["spot"], tolerations=[{"operator": "Exists"}])
    nodes = [interrupted("spot"), interrupted("other")]

    plan = plan_drain(looked(nodes, pods, [a_stateful_set(replicas=1)]), noon(1))
    assert actions(plan, Evict) == []


FORTNIGHT = 14 * 24 * 3600


@pytest.mark.parametrize(("ends", "busy"), [(None, False), (FORTNIGHT, False), (500, True)])
def test_a_plan_that_only_waits_is_busy_while_its_deadline_is_near(ends, busy):
    node = interrupted("spot", kind="health-scheduled-change", ends=ends)
    plan = plan_drain(looked([node], [a_pod("sum", node="spot", owner=("Job", "sum"))]), noon(1))

    assert plan.actions == ()
    assert plan.waiting["spot"]
    assert plan.busy is busy


def test_a_plan_without_a_deadline_is_busy_while_a_replacement_starts_and_no_longer_than_that():
    pods = [
        released(a_pod("web-0", node="spot")),
        replace(a_pod("web-8", node="od", ready=False), created=noon(0)),
    ]
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    seen = looked([node, a_node("od")], pods, [a_deployment(replicas=1)])

    assert plan_drain(seen, noon(20)).busy
    assert not plan_drain(seen, noon(400)).busy


def test_a_plan_without_a_deadline_is_busy_until_every_replacement_is_made():
    node = interrupted("spot", kind="rebalance-recommendation", ends=None)
    old = released(a_pod("web-0", node="spot"))
    new = replace(a_pod("web-8", node="od", ready=False), created=noon(0))
    workload = a_deployment(replicas=1)

    assert plan_drain(looked([node, a_node("od")], [old], [workload]), noon(200)).busy
    assert not plan_drain(looked([node, a_node("od")], [old, new], [workload]), noon(400)).busy


@pytest.mark.parametrize("counted", [True, False])
def test_a_plan_is_busy_while_a_controller_that_nobody_knows_may_be_about_to_make_a_pod(counted):
    owner = Ref("CloneSet", "default", "web")
    pods = [a_pod(f"web-{n}", node="spot", owner=(owner.kind, owner.name)) for n in range(2)]
    seen = looked([interrupted("spot", ends=None), a_node("od", cpu="1m")], pods)

    plan = plan_drain(seen.among(uncounted=frozenset() if counted else frozenset({owner})), noon(9))

    assert plan.actions == ()
    assert plan.busy is not counted
