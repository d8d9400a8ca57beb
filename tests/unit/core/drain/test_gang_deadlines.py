"""All pods of a gang outside our queues are told when the first of their nodes goes, and untold when none does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.actions import Evict, TellDeadline, Uncordon
from plimsoll.domain.drain import plan_drain
from plimsoll.domain.interruptions import Policy, Response
from plimsoll.domain.kubernetes import DEADLINE, IGNORE, Pod, Ref
from plimsoll.domain.kubernetes.gangs import MOST_TOLD
from plimsoll.domain.kubernetes.names import CHECKPOINT_TAKES_SECONDS
from plimsoll.domain.observation import WorkloadTimes
from tests.support.builders import a_node, a_pod
from tests.support.observations import actions, interrupted, looked, noon

AT_118 = "2026-01-02T12:01:58Z"
"""Two minutes after noon, less the margin."""
TOLD = {DEADLINE: AT_118}
RAY = "ray.io/cluster"
INDEX = "batch.kubernetes.io/job-completion-index"


def member(name: str, node: str | None, *, gang: str = "llm", **how) -> Pod:
    """Return a pod of a RayCluster."""
    return a_pod(name, node=node, owner=("RayCluster", gang), labels={RAY: gang}, **how)


def gang_of_three(**how) -> list[Pod]:
    """Return a gang with one pod on the node that goes, one on another and one that waits."""
    return [member("a", "spot", **how), member("b", "od", **how), member("c", None, **how)]


def told(pods: list[Pod], after: float = 1, nodes=None, **how) -> dict[str, str | None]:
    """Return what a plan writes on which pods."""
    seen = looked(nodes or [interrupted("spot"), a_node("od")], pods)
    plan = plan_drain(replace(seen, **how), noon(after))
    return {str(a.pod): a.deadline for a in actions(plan, TellDeadline)}


def test_all_pods_of_a_gang_are_told_wherever_they_stand():
    assert told(gang_of_three()) == dict.fromkeys(("default/a", "default/b", "default/c"), AT_118)


def test_those_of_a_gang_without_a_pod_on_a_node_that_goes_are_not_told():
    assert told([member("a", "od"), member("b", "od", gang="other")]) == {}


def test_pods_of_two_jobs_of_a_job_set_are_told_together():
    labels = {"jobset.sigs.k8s.io/jobset-name": "llm", INDEX: "0"}
    pods = [
        a_pod(f"llm-node-{n}-0", node=node, owner=("Job", f"llm-node-{n}"), labels=labels)
        for n, node in enumerate(("spot", "od"))
    ]
    assert told(pods) == {"default/llm-node-0-0": AT_118, "default/llm-node-1-0": AT_118}


def test_pods_of_an_indexed_job_are_told_and_those_of_another_job_are_not():
    pods = [
        a_pod(f"i-{n}", node=n, owner=("Job", "i"), labels={INDEX: "0"}) for n in ("spot", "od")
    ]
    plain = [a_pod(f"p-{n}", node=n, owner=("Job", "p"), labels={}) for n in ("spot", "od")]
    assert told([*pods, *plain]) == {"default/i-spot": AT_118, "default/i-od": AT_118}


def test_a_forged_label_reaches_no_pod_of_another_namespace_or_controller():
    forger = member("a", "spot", namespace="theirs")
    other = a_pod("w", node="od", namespace="theirs", owner=("Job", "w"), labels={RAY: "llm"})
    assert told([forger, other, member("b", "od")]) == {"theirs/a": AT_118}


def test_the_first_of_two_nodes_counts():
    nodes = [interrupted("later", ends=300), interrupted("spot"), a_node("od")]
    pods = [member("a", "later"), member("b", "spot"), member("c", "od")]
    assert set(told(pods, nodes=nodes).values()) == {AT_118}


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"kind": "rebalance-recommendation", "ends": None}, id="advice"),
        pytest.param({"ends": 3600}, id="a deadline that is not near"),
    ],
)
def test_nothing_is_told_of(how):
    assert told(gang_of_three(), nodes=[interrupted("spot", **how), a_node("od")]) == {}


def test_what_stands_there_is_not_written_again():
    assert told(gang_of_three(annotations=TOLD)) == {}


def test_a_new_pod_of_the_gang_is_told_too():
    assert told([*gang_of_three(annotations=TOLD), member("d", "od")]) == {"default/d": AT_118}


def test_pods_that_stop_or_were_opted_out_are_not_told():
    stops = member("stops", "od", deleting=noon(30))
    ignored = member("ignored", "od", annotations={IGNORE: "true"})
    assert told([member("a", "spot"), stops, ignored]) == {"default/a": AT_118}


def test_a_policy_that_only_cordons_tells_nothing():
    policy = Policy(on=(("spot-interruption", Response.CORDON),))
    assert told(gang_of_three(), policy=policy) == {}


def test_the_annotation_goes_once_no_node_of_the_gang_does():
    pods = [member("b", "od", annotations=TOLD), member("c", "od", annotations=TOLD)]
    assert told(pods) == {"default/b": None, "default/c": None}


def test_the_annotation_stays_while_a_pod_of_the_gang_stops_on_its_node():
    stops = member("a", "spot", annotations=TOLD, deleting=noon(118))
    assert told([stops, member("b", "od", annotations=TOLD)], after=100) == {}


def test_an_interruption_that_is_called_off_is_untold_in_the_same_plan():
    node = interrupted("spot", kind="health-scheduled-change")
    assert node.interruption is not None
    (notice,) = node.interruption.notices
    off = replace(node.interruption, notices=(replace(notice, about="arn", state="closed"),))
    nodes = [replace(node, interruption=off), a_node("od")]
    seen = looked(nodes, gang_of_three(annotations=TOLD))
    plan = plan_drain(seen, noon(1))
    assert [a.node.name for a in actions(plan, Uncordon)] == ["spot"]
    assert [a.deadline for a in actions(plan, TellDeadline)] == [None, None, None]


def test_a_gang_is_not_told_when_the_checkpoint_that_it_states_does_not_fit_any_more():
    takes = {CHECKPOINT_TAKES_SECONDS: "50"}
    assert len(told(gang_of_three(annotations=takes), after=7)) == 3
    assert told(gang_of_three(annotations=takes), after=9) == {}
    assert told([*gang_of_three(annotations=takes | TOLD), member("d", "od")], after=9) == {
        "default/d": AT_118
    }


def test_what_was_observed_counts_where_nothing_is_stated_and_holds_the_lag_already():
    observed = {Ref("RayCluster", "default", "llm"): WorkloadTimes(checkpoint_seconds=100)}
    assert len(told(gang_of_three(), after=17, times=observed)) == 3
    assert told(gang_of_three(), after=19, times=observed) == {}
    takes = {CHECKPOINT_TAKES_SECONDS: "10"}
    assert len(told(gang_of_three(annotations=takes), after=19, times=observed)) == 3


@pytest.mark.parametrize("stated", ["soon", "-5", "", "9999999"])
def test_a_gang_that_states_no_number_of_seconds_is_told(stated):
    assert len(told(gang_of_three(annotations={CHECKPOINT_TAKES_SECONDS: stated}))) == 3


def test_one_plan_tells_a_bounded_number_and_small_gangs_first():
    nodes = [interrupted("spot"), a_node("od")]
    large = [member(f"large-{n}", "od" if n else "spot", gang="large") for n in range(MOST_TOLD)]
    found = told([*large, *gang_of_three()], nodes=nodes)
    assert len(found) == MOST_TOLD
    assert {"default/a", "default/b", "default/c"} <= found.keys()


def test_pods_are_evicted_before_others_are_told():
    late = a_pod("late", node="spot", owner=("Job", "j"), labels={})
    seen = looked([interrupted("spot"), a_node("od")], [*gang_of_three(), late])
    order = [type(a) for a in plan_drain(seen, noon(100)).actions]
    assert order.index(TellDeadline) > order.index(Evict)


def test_no_pod_of_a_ray_cluster_is_evicted_before_its_eviction_deadline():
    seen = looked([interrupted("spot"), a_node("od")], gang_of_three())
    assert actions(plan_drain(seen, noon(1)), Evict) == []
    assert [a.pod.name for a in actions(plan_drain(seen, noon(89)), Evict)] == ["a"]
