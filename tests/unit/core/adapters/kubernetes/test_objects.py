"""Kubernetes objects become domain types; what is missing is tolerated, what is wrong is named."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Lock
from time import sleep
from typing import Any

import msgspec
import pytest

from plimsoll.adapters.kubernetes import decoding, schema
from plimsoll.adapters.kubernetes.objects import (
    parse_any_replica_set,
    parse_budget,
    parse_claim,
    parse_deployment,
    parse_node,
    parse_pod,
    parse_scaler,
    parse_selector,
    parse_stateful_set,
    parse_storage_class,
    parse_volume,
    parse_volume_limits,
)
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import parse_time
from plimsoll.domain.interruptions import Interruption, NoticeRecord, to_record
from plimsoll.domain.kubernetes import (
    DELETION_COST,
    INTERRUPTION,
    MIRROR,
    RELEASED,
    NodeTerm,
    Ref,
    Requirement,
    Resources,
    Workload,
    matches,
)
from plimsoll.domain.kubernetes.names import REVISIONS
from tests.support.builders import (
    NOON,
    a_claim,
    a_deployment,
    a_node,
    a_pod,
    a_replica_set,
    a_stateful_set,
    budget_json,
    claim_json,
    deployment_json,
    mounting,
    node_json,
    pod_json,
    pod_spec_json,
    stateful_set_json,
    volume_json,
)

HIGH: Any = "high"
NULL: Any = None
LIST: Any = []
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def container(**resources: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": resources}}


class TestTimes:
    def test_reads_seconds_and_fractions_as_utc(self):
        assert parse_time("2026-01-02T12:00:00Z") == NOON
        assert parse_time("2026-01-02T12:00:00.000000Z") == NOON
        assert parse_time("2026-01-02T13:00:00+01:00") == NOON
        assert parse_time("2026-01-02T13:00:00+01:00").tzinfo is UTC

    @pytest.mark.parametrize("text", ["", "yesterday", "2026-01-02T12:00:00", "2026-13-02T12:00Z"])
    def test_refuses_what_is_no_moment(self, text):
        with pytest.raises(BadInput, match=r"\d\dZ"):
            parse_time(text)


class TestNodes:
    def test_finds_instance_zone_and_capacity(self):
        node = a_node("n", instance="i-0abc", zone="eu-west-1c", capacity="spot")
        assert (node.instance, node.zone, node.capacity) == ("i-0abc", "eu-west-1c", "spot")
        assert node.staying

    @pytest.mark.parametrize(
        ("labels", "capacity"),
        [
            ({"eks.amazonaws.com/capacityType": "SPOT"}, "spot"),
            ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, "on-demand"),
            ({"karpenter.sh/capacity-type": "spot"}, "spot"),
            ({"karpenter.sh/capacity-type": "reserved"}, "on-demand"),
            (
                {"node.kubernetes.io/capacity": "spot", "karpenter.sh/capacity-type": "on-demand"},
                "spot",
            ),
            ({}, None),
        ],
    )
    def test_reads_capacity_from_the_first_label_that_says(self, labels, capacity):
        assert a_node(capacity=None, labels=labels).capacity == capacity

    @pytest.mark.parametrize(
        "provider",
        ["", "gce://p/z/n", "aws:///us-west-2b/0123/fargate-ip-10-0-0-1.internal", "i-0abc"],
    )
    def test_knows_no_instance_of_other_kinds_of_nodes(self, provider):
        obj = node_json()
        obj["spec"]["providerID"] = provider
        assert parse_node(obj).instance is None

    def test_knows_its_instance_by_a_bare_id(self):
        obj = node_json()
        obj["spec"]["providerID"] = "i-0123456789abcdef0"
        assert parse_node(obj).instance == "i-0123456789abcdef0"

    @pytest.mark.parametrize(
        ("said", "ready"), [("True", True), ("False", False), ("Unknown", False)]
    )
    def test_is_ready_only_when_its_condition_is_true(self, said, ready):
        node, pod = node_json("a"), pod_json("p", node="a")
        for obj in (node, pod):
            obj["status"]["conditions"] = [{"type": "Ready", "status": said}]
        assert (parse_node(node).ready, parse_pod(pod).ready) == (ready, ready)

    def test_is_not_staying_when_cordoned_or_not_ready(self):
        assert not a_node(unschedulable=True).staying
        assert not a_node(ready=False).staying

    def test_reads_the_interruption_recorded_on_it(self):
        notice = NoticeRecord(kind="spot-interruption", time=NOON, id="1")
        interrupted = Interruption(
            instance="i-0123456789abcdef0", launched=None, node="n", notices=(notice,)
        )
        node = a_node(
            "n", instance="i-0123456789abcdef0", annotations={INTERRUPTION: to_record(interrupted)}
        )
        assert node.interruption == interrupted
        assert not node.staying

    @pytest.mark.parametrize("record", ["not a record", '{"v": 99}'])
    def test_says_why_a_record_cannot_be_read_and_reads_the_rest(self, record):
        node = a_node("n", annotations={INTERRUPTION: record})
        assert node.name == "n"
        assert node.interruption is None
        assert node.unreadable

    def test_tolerates_a_node_that_has_only_a_name(self):
        node = parse_node({"metadata": {"name": "bare"}})
        assert node.allocatable == Resources()
        assert not node.ready


class TestPods:
    def test_reads_owner_place_and_state(self):
        pod = a_pod("web-1", namespace="shop", node="n", deleting=NOON, priority=7)
        assert pod.owner == Ref("ReplicaSet", "shop", "web-abc")
        assert (pod.node, pod.phase, pod.ready, pod.serving) == ("n", "Running", True, False)
        assert (pod.deleting, pod.priority, pod.grace_seconds) == (NOON, 7, 30)

    def test_only_the_controller_is_the_owner(self):
        obj = pod_json()
        obj["metadata"]["ownerReferences"][0]["controller"] = False
        assert parse_pod(obj).owner is None

    def test_knows_mirror_pods_by_annotation_or_owner(self):
        assert a_pod(annotations={"kubernetes.io/config.mirror": "x"}, owner=None).mirror
        assert a_pod(owner=("Node", "n")).mirror
        assert not a_pod().mirror

    def test_tolerates_a_pod_that_has_only_a_name(self):
        pod = parse_pod({"metadata": {"name": "bare"}})
        assert (pod.namespace, pod.phase, pod.node) == ("default", "Pending", None)
        assert pod.scheduling.requests == Resources(pods=1)

    def test_keeps_nothing_of_the_json_it_was_read_from(self):
        obj = pod_json(labels={"app": "web"}, nodeSelector={"disk": "ssd"})
        pod = parse_pod(obj)
        obj["metadata"]["labels"]["app"] = "other"
        obj["spec"]["nodeSelector"]["disk"] = "hdd"
        assert pod.labels["app"] == "web"
        assert pod.scheduling.node_selector == {"disk": "ssd"}


class TestRequests:
    def requests(self, **spec: Any) -> Resources:
        return a_pod(**spec).scheduling.requests

    def test_adds_up_the_containers(self):
        found = self.requests(containers=[container(cpu="100m", memory="1Mi"), container(cpu="1")])
        assert found == Resources(cpu=1100, memory=1 << 20, pods=1)

    def test_takes_the_greediest_init_container_where_it_asks_for_more(self):
        found = self.requests(
            containers=[container(cpu="100m", memory="10")],
            initContainers=[container(cpu="2"), container(memory="5")],
        )
        assert found == Resources(cpu=2000, memory=10, pods=1)

    def test_counts_sidecars_beside_containers_and_later_init_containers(self):
        found = self.requests(
            containers=[container(cpu="1")],
            initContainers=[
                container(cpu="3"),
                {**container(cpu="2"), "restartPolicy": "Always"},
                container(cpu="2500m"),
            ],
        )
        assert found.cpu == 4500

    def test_adds_overhead_and_keeps_other_resources(self):
        found = self.requests(
            containers=[container(**{"nvidia.com/gpu": "1"})],
            overhead={"cpu": "250m", "memory": "1Ki"},
        )
        assert found == Resources(cpu=250, memory=1024, pods=1, extended=(("nvidia.com/gpu", 1),))

    def test_takes_a_limit_for_a_request_that_is_missing(self):
        limited = {"resources": {"limits": {"cpu": "2", "memory": "9"}, "requests": {"cpu": "1"}}}
        assert self.requests(containers=[limited]) == Resources(cpu=1000, memory=9, pods=1)

    def test_lets_requests_of_the_whole_pod_stand_for_the_sum(self):
        found = self.requests(
            containers=[container(cpu="1", memory="10")], resources={"requests": {"cpu": "300m"}}
        )
        assert found == Resources(cpu=300, memory=10, pods=1)


class TestScheduling:
    def test_is_one_object_for_the_pods_of_a_template_and_another_when_one_was_changed(self):
        one, two, resized = a_pod("web-1"), a_pod("web-2"), a_pod("web-3", cpu="200m")
        assert one.scheduling is two.scheduling
        assert resized.scheduling is not one.scheduling

    def test_reads_node_affinity_tolerations_spread_and_ports(self):
        expression = {"key": "arch", "operator": "In", "values": ["arm64"]}
        found = a_pod(
            affinity={
                "nodeAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
                }
            },
            tolerations=[{"operator": "Exists"}],
            topologySpreadConstraints=[
                {
                    "maxSkew": 2,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "web"}},
                }
            ],
            containers=[{"name": "c", "ports": [{"hostPort": 80, "containerPort": 8080}]}],
        ).scheduling
        assert found.node_terms is not None
        assert found.node_terms[0].expressions == (
            Requirement(key="arch", operator="In", values=("arm64",)),
        )
        assert found.tolerations[0].operator == "Exists"
        assert (found.spread[0].max_skew, found.spread[0].hard) == (2, False)
        assert found.host_ports == (("TCP", 80, ""),)

    def test_takes_every_port_on_the_network_of_the_host(self):
        ports = [{"containerPort": 53, "protocol": "UDP"}]
        found = a_pod(hostNetwork=True, containers=[{"name": "c", "ports": ports}])
        assert found.scheduling.host_ports == (("UDP", 53, ""),)

    def test_puts_match_label_keys_into_the_selector_of_an_affinity_term(self):
        term = {
            "topologyKey": "zone",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["hash", "absent"],
            "mismatchLabelKeys": ["tenant"],
        }
        pod = a_pod(
            labels={"app": "web", "hash": "1", "tenant": "t"},
            affinity={"podAntiAffinity": {REQUIRED: [term]}},
        )
        selector = pod.scheduling.anti_affinity[0].selector
        assert matches(selector, {"app": "web", "hash": "1", "tenant": "u"})
        assert not matches(selector, {"app": "web", "hash": "2", "tenant": "u"})
        assert not matches(selector, {"app": "web", "hash": "1", "tenant": "t"})

    def test_names_the_claims_of_ordinary_and_ephemeral_volumes(self):
        volumes = [*mounting("data"), {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
        assert a_pod("db-0", volumes=volumes).scheduling.claims == ("data", "db-0-scratch")


class TestWorkloads:
    def test_reads_a_settled_deployment(self):
        web = a_deployment("web", namespace="shop", replicas=6)
        assert web.ref == Ref("Deployment", "shop", "web")
        assert (web.replicas, web.max_unavailable, web.max_surge) == (6, "25%", "25%")
        assert not web.rolling_out
        assert web.scheduling is a_pod().scheduling

    def test_a_deployment_rolls_out_while_old_pods_remain_or_its_status_lags(self):
        assert a_deployment(status={"updatedReplicas": 1}).rolling_out
        assert a_deployment(status={"observedGeneration": 0}).rolling_out

    @pytest.mark.parametrize(
        ("said", "why"),
        [
            ({"reason": "FailedCreate", "message": "exceeded quota"}, "exceeded quota"),
            ({"reason": "FailedCreate"}, "FailedCreate"),
            ({}, "ReplicaFailure"),
        ],
    )
    def test_why_no_replica_can_be_made_is_read_from_the_condition(self, said, why):
        failure = {"type": "ReplicaFailure", "status": "True", **said}
        assert a_deployment(status={"conditions": [failure]}).replica_failure == why

    def test_scaling_or_a_pod_that_is_not_ready_is_no_rollout(self):
        assert not a_deployment(
            replicas=9, status={"replicas": 6, "updatedReplicas": 6, "readyReplicas": 5}
        ).rolling_out

    def test_a_stateful_set_rolls_out_above_its_partition_only(self):
        behind = {"currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1}
        held: dict[str, Any] = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}
        assert a_stateful_set(status=behind).rolling_out
        assert not a_stateful_set(status=behind, **held).rolling_out
        assert not a_stateful_set(status=behind, updateStrategy={"type": "OnDelete"}).rolling_out

    def test_a_stateful_set_never_runs_a_pod_twice(self):
        db = a_stateful_set(podManagementPolicy="Parallel")
        assert (db.max_unavailable, db.max_surge) == (1, 0)

    def test_tolerates_workloads_that_have_only_a_name(self):
        for parse in (parse_deployment, parse_stateful_set, parse_any_replica_set):
            found = parse({"metadata": {"name": "bare"}})
            assert isinstance(found, Workload)
            assert (found.replicas, found.rolling_out) == (1, False)

    def test_reads_a_replica_set(self):
        assert a_replica_set("x", replicas=2).ref == Ref("ReplicaSet", "default", "x")

    @pytest.mark.parametrize(
        ("kind", "alone"), [("Deployment", False), ("Rollout", False), ("Database", True)]
    )
    def test_a_replica_set_of_a_controller_that_nobody_knows_is_a_workload(self, kind, alone):
        controller = {"kind": kind, "name": "db", "uid": "u", "controller": True}
        read = parse_any_replica_set({"metadata": {"name": "x", "ownerReferences": [controller]}})
        assert isinstance(read, Workload) is alone


def in_zones(*zones: str) -> NodeTerm:
    line = Requirement(key="topology.kubernetes.io/zone", operator="In", values=zones)
    return NodeTerm(expressions=(line,))


def in_topology(*zones: str) -> dict[str, Any]:
    return {"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": zones}]}


class TestBudgetsAndClaims:
    def test_reads_a_budget(self):
        budget = parse_budget(budget_json(allowed=1, maxUnavailable="30%"))
        assert (budget.disruptions_allowed, budget.max_unavailable) == (1, "30%")
        assert matches(budget.selector, {"app": "web"})

    def test_an_empty_selector_guards_all_pods_and_an_absent_one_none(self):
        everything = parse_budget(budget_json(selector={}, minAvailable=0))
        obj = budget_json()
        del obj["spec"]["selector"]
        assert everything.min_available == 0
        assert matches(everything.selector, {})
        assert not matches(parse_budget(obj).selector, {"app": "web"})

    def test_a_bound_claim_wants_the_zone_of_its_volume(self):
        claim = a_claim("data", zone="us-east-1b")
        assert claim.bound
        assert claim.node_terms == (in_zones("us-east-1b"),)

    def test_an_unbound_claim_wants_nothing(self):
        claim = a_claim("data")
        assert (claim.bound, claim.node_terms, claim.single_node) == (False, None, True)

    def test_reads_every_term_of_a_volume_and_its_zones_from_a_label(self):
        volume = volume_json(zone="a")
        terms = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        terms.append(
            volume_json(zone="b")["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
        )
        assert parse_volume(volume).node_terms == (in_zones("a"), in_zones("b"))
        labelled = {"metadata": {"labels": {"topology.kubernetes.io/zone": "a__b"}}}
        assert parse_volume(labelled).node_terms == (in_zones("a", "b"),)

    @pytest.mark.parametrize(
        ("phase", "deleted", "nowhere"),
        [
            ("Bound", "", False),
            ("Pending", "", True),
            ("Lost", "", True),
            ("Bound", "2026-01-01T12:00:00Z", True),
        ],
    )
    def test_pods_of_a_claim_that_is_lost_or_deleted_run_nowhere(self, phase, deleted, nowhere):
        obj = claim_json(volume="pv") | {"status": {"phase": phase}}
        obj["metadata"]["deletionTimestamp"] = deleted
        claim = parse_claim(obj).on(parse_volume(volume_json(zone="a")))
        assert claim.node_terms == (() if nowhere else (in_zones("a"),))

    @pytest.mark.parametrize(
        ("fields", "terms"),
        [
            ({}, None),
            ({"allowedTopologies": [in_topology("a", "b")]}, (in_zones("a", "b"),)),
            ({"volumeBindingMode": "Immediate"}, ()),
            ({"provisioner": "kubernetes.io/no-provisioner"}, ()),
        ],
    )
    def test_an_unbound_claim_goes_where_its_class_makes_volumes(self, fields, terms):
        made = {"provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer"}
        made_by = parse_storage_class({"metadata": {"name": "gp3"}, **made, **fields})
        assert a_claim("data").of(made_by).node_terms == terms
        assert a_claim("data").of(None).node_terms == ()
        assert a_claim("data", zone="c").of(made_by).node_terms == (in_zones("c"),)

    def test_reads_how_many_volumes_a_node_may_have(self):
        drivers = [{"name": "ebs", "allocatable": {"count": 25}}, {"name": "efs"}]
        node = {"metadata": {"name": "n"}, "spec": {"drivers": drivers}}
        assert parse_volume_limits(node) == ("n", {"ebs": 25})

    def test_a_claim_for_many_nodes_says_so(self):
        obj = claim_json()
        obj["spec"]["accessModes"] = ["ReadWriteMany"]
        assert not parse_claim(obj).single_node


class TestSelectors:
    def test_an_empty_one_selects_everything_and_an_absent_one_nothing(self):
        assert matches(parse_selector({}), {})
        assert not matches(parse_selector(None), {"": ""})

    def test_labels_must_all_be_there(self):
        selector = parse_selector({"matchLabels": {"a": "1"}})
        assert matches(selector, {"a": "1", "b": "2"})
        assert not matches(selector, {"a": "2"})
        assert not matches(selector, {"b": "2"})

    @pytest.mark.parametrize(
        ("operator", "values", "labels", "holds"),
        [
            ("In", ["a", "b"], {"k": "b"}, True),
            ("In", ["a"], {}, False),
            ("NotIn", ["a"], {}, True),
            ("NotIn", ["a"], {"k": "a"}, False),
            ("Exists", [], {"k": ""}, True),
            ("DoesNotExist", [], {"k": ""}, False),
            ("Gt", ["4"], {"k": "5"}, True),
            ("Gt", ["4"], {"k": "4"}, False),
            ("Lt", ["4"], {"k": "x"}, False),
            ("Lt", ["4"], {}, False),
            ("Like", ["4"], {"k": "4"}, False),
        ],
    )
    def test_evaluates_each_operator(self, operator, values, labels, holds):
        selector = parse_selector(
            {"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}
        )
        assert matches(selector, labels) is holds


def complaint(parse, obj) -> str:
    """Return why an object, or where a pod may run, cannot be read."""
    try:
        return f"Pod {(pod := parse(obj))}: {pod.unread}"
    except BadInput as error:
        return str(error)


class TestBadObjects:
    @pytest.mark.parametrize(
        ("parse", "obj", "place"),
        [
            (parse_pod, pod_json(cpu="lots"), r"spec.containers\[0\].resources.requests: 'lots'"),
            (parse_pod, pod_json(priority=HIGH), "spec.priority: Expected `int`, got `str`"),
            (parse_pod, pod_json(containers={}), "spec.containers: Expected `array`, got `object`"),
            (
                parse_pod,
                pod_json(nodeSelector={"a": 1}),
                r"spec.nodeSelector\[...\]: Expected `str`, got `int`",
            ),
            (parse_pod, pod_json(created="soon"), "metadata.creationTimestamp: must be a time"),
            (parse_node, node_json(memory="1 GB"), "status.allocatable: '1 GB'"),
            (
                parse_node,
                node_json(labels={"a": LIST}),
                r"metadata.labels\[...\]: Expected `str`, got `array`",
            ),
            (
                parse_deployment,
                {**deployment_json(), "spec": {"replicas": "3"}},
                "spec.replicas: Expected `int`, got `str`",
            ),
            (
                parse_deployment,
                deployment_json(paused="no"),
                "spec.paused: Expected `bool`, got `str`",
            ),
            (
                parse_deployment,
                deployment_json(strategy={"rollingUpdate": {"maxSurge": "some"}}),
                "spec.strategy.rollingUpdate.maxSurge: Expected .+ matching",
            ),
            (
                parse_stateful_set,
                stateful_set_json(template=pod_spec_json(tolerations=["all"])),
                r"spec.tolerations\[0\]: Expected `object`, got `str`",
            ),
            (
                parse_pod,
                pod_json(volumes=[*mounting(NULL), HIGH]),
                r"spec.volumes\[1\]: Expected `object`, got `str`",
            ),
            (
                parse_pod,
                pod_json(overhead={"cpu": True}),
                r"spec.overhead\[...\]: Expected .+, got `bool`",
            ),
            (parse_pod, pod_json(nodeName=1), "spec.nodeName: Expected `str`, got `int`"),
            (
                parse_budget,
                budget_json(minAvailable=True),
                "spec.minAvailable: Expected .+, got `bool`",
            ),
        ],
    )
    def test_the_message_names_object_and_field(self, parse, obj, place):
        said = complaint(parse, obj)
        assert re.search(place, said)
        assert f"{obj['kind']} " in said
        assert obj["metadata"]["name"] in said

    @pytest.mark.parametrize(
        "obj", [None, [], "pod", {"metadata": "x"}, {"metadata": {}, "spec": 1}]
    )
    def test_what_is_no_object_is_refused(self, obj):
        with pytest.raises(BadInput, match=r"Pod \(without a name\)"):
            parse_pod(obj)


@pytest.mark.parametrize(
    ("said", "least"), [({}, 1), ({"minReplicas": 0}, 1), ({"minReplicas": 2}, 2)]
)
def test_an_autoscaler_that_may_pause_its_workload_scales_it_to_one_while_it_runs(said, least):
    target = {"kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 5, **said}
    _, (_, found, _) = parse_scaler(
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    )
    assert found == least


def test_a_null_is_a_field_that_is_missing():
    obj = pod_json(nodeSelector=NULL, priority=NULL)
    obj["status"]["conditions"] = NULL
    pod = parse_pod(obj)
    assert (pod.priority, pod.ready, pod.unread) == (0, False, None)


def test_of_annotations_only_those_that_are_read_are_kept():
    read = {DELETION_COST: "7", RELEASED: "i-1@noon", REVISIONS[0]: "2", MIRROR: "x"}
    assert parse_pod(pod_json(annotations=read | {"theirs": "x" * 9})).annotations == read


def test_an_object_without_an_age_is_old():
    assert parse_pod({"metadata": {"name": "x"}}).created == datetime(1970, 1, 1, tzinfo=UTC)


def test_threads_that_read_their_first_objects_make_decoders_one_at_a_time(monkeypatch):
    making, most, lock = 0, 0, Lock()
    real = msgspec.json.Decoder

    def slow(kind):
        nonlocal making, most
        with lock:
            making += 1
            most = max(most, making)
        sleep(0.01)
        with lock:
            making -= 1
        return real(kind)

    monkeypatch.setattr(msgspec.json, "Decoder", slow)
    decoding._decoder.cache_clear()
    kinds = [schema.Node, schema.Pod, schema.Workload, schema.Named]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda kind: decoding.decoded(_EMPTY, kind), kinds * 4))
    assert {each.metadata.name for each in found} == {"a"}
    assert most == 1


_EMPTY = msgspec.Raw(b'{"metadata": {"name": "a", "uid": "b"}, "spec": {}, "status": {}}')


def ready_pod(scheduled: str | None, ready: str, *, status: str = "True"):
    raw = pod_json(node="n")
    raw["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled},
        {"type": "Ready", "status": status, "lastTransitionTime": ready},
    ]
    return parse_pod(raw)


@pytest.mark.parametrize(
    ("scheduled", "ready", "seconds"),
    [
        ("2026-01-02T12:00:00Z", "2026-01-02T12:00:42Z", 42),
        ("2026-01-02T12:00:00Z", "2026-01-02T12:15:00Z", 900),
        ("2026-01-02T12:00:00Z", "2026-01-02T12:15:01Z", None),
        ("2026-01-02T12:00:00Z", "2026-01-09T12:00:01Z", None),
        ("2026-01-02T12:00:42Z", "2026-01-02T12:00:00Z", None),
        ("2026-01-02T12:00:42", "2026-01-02T12:00:43Z", None),
        ("noon", "2026-01-02T12:00:43Z", None),
        (None, "2026-01-02T12:00:43Z", None),
    ],
)
def test_a_pod_tells_how_long_it_took_from_its_node_to_ready(scheduled, ready, seconds):
    assert ready_pod(scheduled, ready).start_seconds == seconds


def test_a_pod_that_is_not_ready_does_not_tell_how_long_it_took():
    pod = ready_pod("2026-01-02T12:00:00Z", "2026-01-02T12:00:42Z", status="False")
    assert pod.start_seconds is None


@pytest.mark.parametrize(
    ("grace", "since"), [(30, 30), (0, 60), (-(2**62), 60), (None, None)], ids=str
)
def test_a_pod_is_asked_to_stop_its_grace_before_its_deletion_timestamp(grace, since):
    raw = pod_json(deleting=NOON + timedelta(seconds=60))
    raw["metadata"]["deletionGracePeriodSeconds"] = grace
    assert parse_pod(raw).stopping_since == (
        None if since is None else NOON + timedelta(seconds=since)
    )
