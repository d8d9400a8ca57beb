"""What is put back when Plimsoll leaves a cluster, and what it waits for first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response, Transport
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.actions import TaintNode, Uncordon, UndoRelease
from plimsoll.domain.errors import Temporary
from plimsoll.domain.interruptions import marked
from plimsoll.domain.kubernetes import EXCLUDED, EXCLUDED_BY_US, INTERRUPTION, ZONAL_SHIFT, Taint
from plimsoll.domain.registry import Mode
from plimsoll_cli.cluster.uninstall_plan import UninstallPlan, plan_uninstall
from plimsoll_cli.cluster.uninstall_service import UninstallService
from plimsoll_cli.environment import Said
from tests.support.builders import NOON, a_deployment, a_node, a_pod, pods_of
from tests.support.cli_environment import MemoryEnvironment, a_cluster, an_environment, interrupt
from tests.support.observations import actions, died, interrupted, looked, noon, released

ADVICE = "rebalance-recommendation"


def advised(name: str = "spot", **how):
    """Return a node that AWS only advises to replace."""
    return interrupted(name, kind=ADVICE, ends=None, **how)


def test_a_cluster_without_a_change_of_ours_is_clean():
    seen = looked([a_node("od")], pods_of("web", 3, node="od"), [a_deployment()])
    assert plan_uninstall(seen, NOON) == UninstallPlan()
    assert UninstallPlan().clean


def test_a_node_that_was_only_advised_against_is_released_finished_with_or_not():
    node = advised()
    assert node.interruption is not None
    closed = replace(node, interruption=marked(node.interruption, closed=noon(30)))
    for one in (node, closed):
        [release] = plan_uninstall(looked([one], []), noon(60)).plan.actions
        assert isinstance(release, Uncordon)
        assert release.node == one


@pytest.mark.parametrize("seconds", [0, 60, 125, 230])
def test_a_node_that_goes_within_minutes_is_waited_for_and_nothing_else_is_touched(seconds):
    web = a_deployment(replicas=5)
    seen = looked([interrupted("spot"), advised("other")], pods_of("web", 5, node="od"), [web])
    left = plan_uninstall(seen, noon(seconds))
    assert left.plan.steps == ()
    assert left.interrupted == (
        "spot-interruption on node spot: its instance stops at 2026-01-02T12:01:58Z",
    )
    assert not left.clean


def test_maintenance_in_two_weeks_is_not_waited_for():
    node = interrupted("spot", kind="health-scheduled-change", ends=14 * 86_400)
    left = plan_uninstall(looked([node], []), NOON)
    assert actions(left.plan, Uncordon)
    assert left.interrupted == ()


def test_an_instance_that_did_not_go_when_it_should_have_is_released():
    left = plan_uninstall(looked([interrupted("spot")], []), noon(600))
    assert [action.node.name for action in actions(left.plan, Uncordon)] == ["spot"]


def test_a_node_that_goes_away_with_its_instance_is_left_alone():
    silent = interrupted("silent", ready=False)
    left = plan_uninstall(looked([died(interrupted("dead")), silent], []), noon(600))
    assert left == UninstallPlan()


def test_a_taint_of_ours_without_its_record_is_taken_off():
    node = replace(a_node("spot"), taints=(Taint(key=INTERRUPTION, value=ADVICE),))
    assert [
        a.node.name for a in actions(plan_uninstall(looked([node], []), NOON).plan, Uncordon)
    ] == ["spot"]


def test_the_taint_of_a_zonal_shift_goes():
    tainted = a_node("a", taints=[{"key": ZONAL_SHIFT, "effect": "PreferNoSchedule"}])
    [taint] = plan_uninstall(looked([tainted, a_node("b")], []), NOON).plan.actions
    assert isinstance(taint, TaintNode)
    assert (taint.node, taint.tainted) == (tainted, False)


def test_a_node_that_only_load_balancers_leave_out_returns_to_them():
    forgotten = a_node("a", labels={EXCLUDED: EXCLUDED_BY_US})
    theirs = a_node("b", labels={EXCLUDED: "karpenter"})
    [release] = plan_uninstall(looked([forgotten, theirs], []), NOON).plan.actions
    assert isinstance(release, Uncordon)
    assert release.node == forgotten


def test_somebody_elses_cordon_stays():
    node = replace(a_node("od"), unschedulable=True)
    assert plan_uninstall(looked([node], []), NOON).clean


def test_released_pods_on_nodes_that_stay_are_handed_back_to_their_replica_set():
    pods = [released(pod) for pod in pods_of("web", 1, node="spot")]
    seen = looked([advised(), a_node("od")], [*pods, a_pod("web-8", node="od")], [a_deployment()])
    plan = plan_uninstall(seen, NOON).plan
    assert [type(action) for action in plan.actions] == [Uncordon, UndoRelease]
    assert [action.pod for action in actions(plan, UndoRelease)] == pods


def test_what_cannot_be_read_is_left_to_a_person_and_named():
    node = replace(a_node("spot"), unreadable="version 9")
    left = plan_uninstall(looked([node], []), NOON)
    assert left.plan.steps == ()
    [about_node] = left.by_hand
    assert "node spot" in about_node
    assert "version 9" in about_node


# --- The service, over the fake cluster ----------------------------------------------------------


def service(environment: MemoryEnvironment) -> UninstallService:
    deployed = environment.deployed("plimsoll")
    return UninstallService(
        registry=environment.registry,
        clusters=deployed.clusters,
        groups=deployed.groups,
        clock=environment.clock,
        workers=SerialWorkers(),
        telemetry=Said(),
    )


def test_the_functions_are_stopped_before_anything_is_put_back():
    environment, _ = an_environment(mode=Mode.ACT)
    departure = service(environment).put_back(a_cluster(mode=Mode.ACT), "me", 10)
    assert environment.registry.get("harbor") == a_cluster(mode=Mode.OBSERVE)
    assert departure.left.clean
    assert departure.outcomes == ()


def test_a_slice_at_work_is_waited_for():
    environment, _ = an_environment()
    api = environment.open(a_cluster())
    assert api.acquire("reconcile", 10)
    began = environment.clock.now()
    service(environment).put_back(a_cluster(), "me", 30)
    assert environment.clock.now() - began >= timedelta(seconds=10)
    assert api.acquire("the next", 10), "the Lease was not given back"


def test_a_slice_that_never_ends_is_an_error_that_can_be_tried_again():
    environment, counting = an_environment()
    environment.open(a_cluster()).acquire("reconcile", 3600)
    counting.writes.clear()
    with pytest.raises(Temporary, match="holds the Lease"):
        service(environment).put_back(a_cluster(), "me", 5)
    assert counting.writes == []


class NoPatches:
    """An API server that lets nobody patch."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def call(self, method: str, path: str, **how: Any) -> Response:
        if method == "PATCH":
            return Response(status=403, body={"kind": "Status", "reason": "Forbidden", "code": 403})
        return self._transport.call(method, path, **how)


def test_what_is_refused_is_not_tried_again_and_is_named(capsys: pytest.CaptureFixture[str]):
    environment, _ = an_environment()
    interrupt(environment, kind=ADVICE, seconds=None)
    environment.transports["harbor"] = NoPatches(environment.transports["harbor"])
    began = environment.clock.now()
    departure = service(environment).put_back(a_cluster(), "me", 60)
    assert environment.clock.now() == began
    assert [outcome.done for outcome in departure.outcomes] == [False]
    assert not departure.left.clean
    assert "Node spot-1" in capsys.readouterr().err
