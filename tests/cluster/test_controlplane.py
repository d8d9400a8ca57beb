"""The control plane as its users see it: pods and nodes that behave, an API that goes and comes."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest

from plimsoll_simulation.fake_cluster.conditions import condition, is_ready
from plimsoll_simulation.fake_cluster.edits import look
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.controlplane.components import TURNED_ON, Features
from tests.cluster.ground import Ground
from tests.support.fake_clusters import a_pod, a_template

pytestmark = pytest.mark.cluster


def a_running_pod(ground: Ground, name: str, **annotations: str) -> None:
    grace = int(annotations.pop("grace", "30"))
    template = a_template(
        name,
        annotations=annotations,
        terminationGracePeriodSeconds=grace,
    )
    ground.apply(a_pod(name, template))
    ground.until(lambda: (pod := ground.pod(name)) and pod["status"]["phase"] == "Running")


def test_it_is_the_kubernetes_that_was_asked_for(plane: ControlPlane):
    version = plane.transport().call("GET", "/version").body["gitVersion"]
    assert version.startswith(f"v{plane.version}.")


def test_the_apis_that_the_rig_turns_on_are_served(plane: ControlPlane):
    for api in TURNED_ON.get(plane.version, Features()).apis:
        assert plane.transport().call("GET", f"/apis/{api}").status == 200, api


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("admin", {"system:masters", "system:authenticated"}),
        ("plimsoll", {"plimsoll", "system:authenticated"}),
        ("flood", {"flood", "system:authenticated"}),
        ("stranger", {"system:authenticated"}),
    ],
)
def test_users_are_known_by_token_with_their_groups(
    plane: ControlPlane, user: str, groups: set[str]
):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = plane.transport(user).call(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        body=review,
        content_type="application/json",
    )
    info = answer.body["status"]["userInfo"]
    assert info["username"] == user
    assert set(info["groups"]) == groups


def test_a_nodes_heartbeats_are_renewals_of_its_lease(ground: Ground):
    [name] = ground.nodes("a")
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
    first = ground.get(path)["spec"]["renewTime"]
    ground.until(lambda: ground.get(path)["spec"]["renewTime"] > first, seconds=20)


def test_pods_run_when_their_start_up_time_is_over_and_not_before(ground: Ground):
    ground.nodes("a")
    ground.apply(a_pod("slow", a_template("slow", annotations={"startup": "3s"})))
    ground.until(lambda: is_ready(ground.pod("slow") or {}))
    pod = ground.pod("slow") or {}
    scheduled, ready = (
        datetime.fromisoformat((condition(pod, kind) or {})["lastTransitionTime"])
        for kind in ("PodScheduled", "Ready")
    )
    assert ready - scheduled >= timedelta(seconds=2), "both are cut to the second"


def test_a_pod_that_is_never_ready_runs_all_the_same(ground: Ground):
    ground.nodes("a")
    a_running_pod(ground, "sick", **{"never-ready": "true"})
    assert not is_ready(ground.pod("sick") or {})


def test_a_pod_exits_after_its_stop_time_within_its_grace_period(ground: Ground):
    ground.nodes("a")
    a_running_pod(ground, "polite", stop="5s")
    at = time.monotonic()
    ground.delete("polite")
    assert is_ready(ground.pod("polite") or {})
    ground.until(lambda: ground.pod("polite") is None)
    assert time.monotonic() - at >= 5
    ground.until(lambda: [stop.how for stop in ground.stops] == ["exited"])


def test_a_pod_that_overruns_its_grace_period_is_killed_at_its_end(ground: Ground):
    ground.nodes("a")
    a_running_pod(ground, "slow", stop="60s", grace="2")
    at = time.monotonic()
    ground.delete("slow")
    ground.until(lambda: ground.pod("slow") is None)
    assert 2 <= time.monotonic() - at < 30
    ground.until(lambda: [stop.how for stop in ground.stops] == ["overran"])


def test_a_kubelet_takes_a_shorter_grace_period_from_when_it_hears_of_it(ground: Ground):
    ground.nodes("a")
    a_running_pod(ground, "slow", stop="60s", grace="60")
    ground.delete("slow")
    time.sleep(1.5)
    at = time.monotonic()
    ground.delete("slow", gracePeriodSeconds=6)
    ground.until(lambda: ground.pod("slow") is None)
    assert 5.9 <= time.monotonic() - at < 40
    ground.until(lambda: [stop.how for stop in ground.stops] == ["cut-short"])


def test_grace_zero_takes_the_object_away_at_once(ground: Ground):
    ground.nodes("a")
    a_running_pod(ground, "slow", stop="60s", grace="60")
    ground.delete("slow", gracePeriodSeconds=0)
    assert ground.pod("slow") is None
    ground.until(lambda: ground.stops)
    assert ground.stops[0].how == "cut-short"


def test_a_pod_that_was_not_running_yet_goes_at_once(ground: Ground):
    ground.nodes("a")
    ground.apply(a_pod("slow", a_template("slow", annotations={"startup": "60s", "stop": "60s"})))
    ground.until(lambda: look(ground.pod("slow") or {}, "spec", "nodeName"))
    ground.delete("slow")
    ground.until(lambda: ground.pod("slow") is None, seconds=20)
    assert ground.stops == []


def test_what_ran_on_a_node_that_vanished_is_killed_and_nobody_is_told(ground: Ground):
    [node] = ground.nodes("a")
    a_running_pod(ground, "web", stop="1s")
    before = ground.get(f"/api/v1/nodes/{node}")["metadata"]["resourceVersion"]
    pod = ground.pod("web")
    ground.plane.vanish(node)
    ground.until(lambda: ground.stops)
    assert ground.stops[0].how == "killed"
    assert ground.pod("web") == pod
    assert ground.get(f"/api/v1/nodes/{node}")["metadata"]["resourceVersion"] == before


def test_a_pod_told_to_go_on_a_node_that_vanished_stays(ground: Ground):
    [node] = ground.nodes("a")
    a_running_pod(ground, "web", stop="1s", grace="2")
    ground.plane.vanish(node)
    ground.delete("web")
    time.sleep(4)
    assert ground.pod("web") is not None


def test_a_node_that_vanished_turns_unknown_after_the_grace_period_of_its_heartbeats(
    ground: Ground,
):
    node, *_ = ground.nodes("a", "b", "c")  # with most of a zone gone the controller would wait
    path = f"/api/v1/nodes/{node}"
    ground.plane.vanish(node)
    at = time.monotonic()

    def unknown() -> bool:
        ready = condition(ground.get(path), "Ready")
        return ready is not None and ready["status"] == "Unknown"

    ground.until(unknown, seconds=90)
    assert time.monotonic() - at >= 35
    ground.until(
        lambda: any(
            taint["key"] == "node.kubernetes.io/unreachable" and taint["effect"] == "NoExecute"
            for taint in ground.get(path)["spec"].get("taints", ())
        )
    )


def test_a_node_of_the_same_name_may_join_again(ground: Ground):
    [node] = ground.nodes("a")
    ground.plane.vanish(node)
    ground.call("DELETE", f"/api/v1/nodes/{node}")
    ground.nodes("a")
    a_running_pod(ground, "web")


class TestWithAnApiServerThatGoesAway:
    """These have a control plane of their own: the shared one is others' too."""

    @pytest.fixture(scope="class")
    @staticmethod
    def own(plane: ControlPlane):
        with ControlPlane(settings=plane.settings) as own:
            assert own.url != plane.url
            yield own

    @pytest.fixture
    @staticmethod
    def ground(own: ControlPlane):
        with Ground(own) as ground:
            yield ground

    def test_it_comes_back_at_the_same_place_with_everything_in_it(self, ground: Ground):
        ground.nodes("a")
        a_running_pod(ground, "web")
        pod, url, ca = ground.pod("web"), ground.plane.url, ground.plane.ca
        ground.plane.stop_api()
        with pytest.raises(Exception, match="does not answer"):
            ground.pod("web")
        ground.plane.start_api()
        assert (ground.plane.url, ground.plane.ca) == (url, ca)
        assert ground.pod("web") == pod
        a_running_pod(ground, "after")

    def test_kubelets_go_on_meanwhile_and_write_when_it_is_back(self, ground: Ground):
        ground.nodes("a")
        a_running_pod(ground, "leaving", stop="2s")
        ground.apply(a_pod("coming", a_template("coming", annotations={"startup": "3s"})))
        ground.until(lambda: look(ground.pod("coming") or {}, "spec", "nodeName"))
        ground.delete("leaving")
        time.sleep(0.5)  # the kubelet's watch shows it before the API server goes
        ground.plane.stop_api()
        away = datetime.now().astimezone()
        ground.until(lambda: ground.stops)
        back = datetime.now().astimezone()
        ground.until(lambda: [stop.how for stop in ground.stops] == ["exited"])
        assert away < ground.stops[0].at < back
        ground.plane.start_api()
        ground.until(lambda: ground.pod("leaving") is None)
        ground.until(lambda: is_ready(ground.pod("coming") or {}))

    def test_a_node_may_vanish_meanwhile(self, ground: Ground):
        [node] = ground.nodes("a")
        a_running_pod(ground, "web")
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}"
        ground.until(lambda: ground.call("GET", path).status == 200)
        ground.plane.stop_api()
        ground.plane.vanish(node)
        ground.until(lambda: [stop.how for stop in ground.stops] == ["killed"])
        ground.plane.start_api()
        lease = ground.get(path)["spec"]
        assert lease["holderIdentity"] == "vanished"
        time.sleep(12)  # a heartbeat comes every ten seconds
        assert ground.get(path)["spec"] == lease


def test_an_annotation_that_cannot_be_read_keeps_its_pod_pending_and_says_why(ground: Ground):
    ground.nodes("a")
    ground.apply(a_pod("odd", a_template("odd", annotations={"startup": "soon"})))
    ground.until(lambda: look(ground.pod("odd") or {}, "status", "reason") == "BadAnnotation")
    assert "drill.plimsoll.dev/startup" in (ground.pod("odd") or {})["status"]["message"]
    a_running_pod(ground, "web")
