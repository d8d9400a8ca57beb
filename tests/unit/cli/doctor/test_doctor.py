"""`plimsoll doctor`: what is wrong, and the cure. Every check is made to fail once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response, Transport
from plimsoll.adapters.nodegroups import CALLS
from plimsoll.domain.capacity import VcpuQuota
from plimsoll.domain.errors import NotFound, PlimsollError, Refused
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll_cli.doctor.cluster_checks import STALE
from plimsoll_cli.probes.aws import Direct, GroupSettings, Simulated, Target
from plimsoll_cli.probes.drainers import AUTOSCALER, HANDLER, KARPENTER, marks_of
from plimsoll_cli.probes.iam_requests import Case, Request
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support.builders import NOON, a_group, budget_json
from tests.support.cli_environment import (
    SPOT,
    Away,
    FixedLimits,
    MemoryEnvironment,
    StillClock,
    a_cluster,
    an_environment,
    entry,
    run,
)

BY_POLICY = (
    "nodes \"a\" is forbidden: ValidatingAdmissionPolicy 'plimsoll-nodes' with binding "
    "'plimsoll-nodes' denied request: this changes the annotation x"
)
SCHEMA = {"metadata": {"uid": "7"}, "status": {"conditions": []}}
USED = {"x-kubernetes-pf-flowschema-uid": "7"}
QUEUE = {"name": "INTERRUPTION_QUEUE", "value": "harbor-interruptions"}
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
POLICIES = ("validatingadmissionpolicies", "validatingadmissionpolicybindings", "clusterroles")
NORMAL = GroupSettings(suspended=frozenset())


class Denying:
    """Says of some rights that they are not held, and may refuse to say anything."""

    def __init__(self, transport: Transport, *, verbs: set[str], open_: bool = True) -> None:
        self._transport = transport
        self._verbs = verbs
        self._open = open_
        self.asked: list[Mapping[str, Any]] = []

    def call(self, method: str, path: str, **request: Any) -> Response:
        answer = self._transport.call(method, path, **request)
        if "accessreviews" not in path:
            return answer
        self.asked.append(request["body"])
        if not self._open:
            return Response(status=403, body={"reason": "Forbidden", "message": "no"})
        verb = request["body"]["spec"]["resourceAttributes"]["verb"]
        status = {"allowed": verb not in self._verbs}
        return Response(status=201, body={**answer.body, "status": status})


@dataclass
class Guarding:
    """A cluster that holds us to our fields and gives us a queue, or does something like it."""

    inner: Transport
    version: str = "v1.36.3"
    foreign: Response | None = field(default_factory=lambda: refused(BY_POLICY))
    """To a dry run of what is not ours; None lets it pass."""
    ours: Response | None = None
    """To a dry run of what is ours."""
    queue: Response = field(default_factory=lambda: Response(status=200, body=SCHEMA, headers=USED))
    tried: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of the dry runs."""
    lists: dict[str, Sequence[Mapping[str, Any]] | None] = field(
        default_factory=lambda: dict.fromkeys((*WEBHOOKS, *POLICIES), ())
    )
    """Plural -> the objects that there are; None where they may not be read."""

    def call(self, method: str, path: str, **request: Any) -> Response:
        instead: Response | None = None
        if path == "/version":
            instead = Response(status=200, body={"gitVersion": self.version})
        elif "/flowschemas/" in path:
            instead = self.queue
        elif (request.get("query") or {}).get("dryRun") == "All":
            self.tried.append((method, path))
            instead = self.ours if "plimsoll.dev/" in json.dumps(request["body"]) else self.foreign
        elif (plural := path.rpartition("/")[2]) in self.lists:
            items = self.lists[plural]
            body = {"items": items, "metadata": {"resourceVersion": "1"}}
            instead = refused("forbidden") if items is None else Response(status=200, body=body)
        if instead is not None:
            return instead
        return self.inner.call(method, path, **request)


def refused(message: str, status: int = 403) -> Response:
    return Response(status=status, body={"kind": "Status", "message": message})


def guarding(environment: MemoryEnvironment) -> Guarding:
    found = environment.transports["harbor"]
    assert isinstance(found, Guarding)
    return found


def healthy(mode: Mode = Mode.ACT) -> MemoryEnvironment:
    """Return an environment where nothing is wrong."""
    environment, _ = an_environment(mode=mode)
    environment.transports["harbor"] = Guarding(environment.transports["harbor"])
    base = next(n for n in environment.open(a_cluster()).nodes() if n.name == "base-1")
    environment.index.put([entry(base.instance or "", "base-1")])
    environment.groups = [a_group("base")]
    environment.group_settings = {"base": NORMAL}
    return environment


def findings_by_check(
    environment: MemoryEnvironment, *args: str
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit status and the findings by their checks."""
    result = run(environment, "doctor", "--cluster", "harbor", "--output", "json", *args)
    found = json.loads(result.stdout)["findings"]
    return result.exit_code, {finding["check"]: finding for finding in found}


def deny(environment: MemoryEnvironment, *verbs: str, open_: bool = True) -> Denying:
    denying = Denying(environment.transports["harbor"], verbs=set(verbs), open_=open_)
    environment.transports["harbor"] = denying
    return denying


def by_endpoint(environment: MemoryEnvironment) -> None:
    """Register the cluster by its endpoint instead."""
    environment.registry.update(
        Cluster(
            name="harbor",
            kind=ClusterKind.ENDPOINT,
            mode=Mode.ACT,
            region="us-east-1",
            endpoint="https://10.0.0.1",
            secret="plimsoll/harbor",
            added=environment.clock.now(),
        )
    )


class Failing:
    """An API server that is not reached, or does not let in, for a reason."""

    def __init__(self, reason: PlimsollError | None = None) -> None:
        self._reason = reason

    def call(self, method: str, path: str, **_: Any) -> Response:
        if self._reason is not None:
            raise self._reason
        return Response(status=401, body={"message": "Unauthorized"})


def test_nothing_is_wrong_with_a_healthy_installation():
    status, found = findings_by_check(healthy())
    assert status == 0
    assert {check: f["state"] for check, f in found.items()} == dict.fromkeys(
        (
            "stack",
            "kill switch",
            "drills",
            "mode",
            "notices",
            "senders",
            "delivery",
            "cluster",
            "access entries",
            "rights",
            "fields",
            "queue",
            "node index",
            "other drainers",
            "node groups",
            "group maxima",
            "AWS rights",
            "concurrency",
            "quota",
            "addresses",
            "launch templates",
            "start-up",
            "tolerations",
            "opt-outs",
            "webhooks",
            "quotas",
            "budgets",
        ),
        "ok",
    )


def test_people_see_each_finding_with_its_cure_below():
    environment = healthy()
    environment.parameters["KillSwitch"] = "true"
    result = run(environment, "doctor", "--cluster", "harbor")
    assert result.exit_code == 1
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    at = next(n for n, line in enumerate(lines) if line.startswith("fail kill switch it is on"))
    assert lines[at + 1].startswith("-> when its reason is over")


def test_observing_is_right_for_some_and_said_in_words():
    status, found = findings_by_check(healthy(Mode.OBSERVE))
    assert status == 0
    assert found["mode"]["state"] == "info"
    assert "nothing is written to harbor" in found["mode"]["says"]
    assert "--mode act" in found["mode"]["cure"]


ROLE = "arn:aws:iam::123456789012:role/plimsoll-SweepRole-1"
FULL = a_group("base", desired=10)
UNKNOWN = replace(a_group("base"), template=None)
CLOSED = replace(a_group("base"), may_grow=False)
SCARCE = VcpuQuota(limit=10, used=9)
ROOTLESS = replace(a_group("base"), image="ami-0")
CROWDED = replace(a_group("base"), subnets=("subnet-1",))
SUSPENDED = {"base": replace(NORMAL, suspended=frozenset({"Launch"}))}


@pytest.mark.parametrize(
    ("changed", "check", "state", "exit_status", "words"),
    [
        ({"stack_status": "UPDATE_ROLLBACK_FAILED"}, "stack", "fail", 1, "describe-stack-events"),
        ({"stack_status": "UPDATE_ROLLBACK_COMPLETE"}, "stack", "info", 0, "deploy again"),
        ({"stack_status": "UPDATE_IN_PROGRESS"}, "stack", "info", 0, "when it is done"),
        ({"stack_status": "CREATE_COMPLETE"}, "stack", "ok", 0, "plimsoll in us-east-1"),
        ({"stack_version": "0.0.1"}, "stack", "info", 0, "version 0.0.1"),
        ({"stack_version": None}, "stack", "info", 0, "version not known"),
        ({"parameters": {"AcceptDrills": "true"}}, "drills", "info", 0, "AcceptDrills=false"),
        ({"canary_seconds": 21.0}, "notices", "info", 0, "21.0 s"),
        ({"unknown_roles": [ROLE]}, "access entries", "fail", 1, "SweepRole"),
        ({"unknown_roles": [ROLE]}, "access entries", "fail", 1, "--cluster-name harbor"),
        ({"groups": []}, "node groups", "fail", 1, "kubernetes.io/cluster/harbor"),
        ({"groups": [a_group("base", capacity="spot")]}, "node groups", "fail", 1, "on-demand"),
        ({"groups": [FULL]}, "node group base", "fail", 1, "at its maximum of 10"),
        ({"groups": [UNKNOWN]}, "node group base", "fail", 1, "what a new node of it would be"),
        ({"groups": [CLOSED]}, "node group base", "fail", 1, "lacks the tag plimsoll.dev/grow"),
        ({"group_settings": SUSPENDED}, "node group base", "fail", 1, "Launch is suspended"),
        (
            {"groups": [a_group("managed", kind="eks-nodegroup")], "group_settings": {}},
            *("node groups", "ok", 0, "managed"),
        ),
        ({"limits": FixedLimits(SCARCE)}, "quota", "fail", 1, "request-service-quota-increase"),
        ({"limits": FixedLimits(Refused("AccessDenied"))}, "quota", "info", 0, "AccessDenied"),
        ({"groups": [ROOTLESS]}, "launch templates", "fail", 1, "ami-0"),
        (
            {"groups": [CROWDED], "limits": FixedLimits(free=1)},
            *("addresses", "fail", 1, "larger or another subnet"),
        ),
    ],
)
def test_each_thing_that_is_otherwise_is_found_and_said_with_its_cure(
    changed: dict[str, Any], check: str, state: str, exit_status: int, words: str
):
    environment = healthy()
    for name, value in changed.items():
        setattr(environment, name, value)
    status, found = findings_by_check(environment)
    whole = "node groups" if check == "node group base" else check
    assert (status, found[whole]["state"]) == (exit_status, state)
    assert words in found[check]["says"] + (found[check]["cure"] or "")


def test_a_canary_that_does_not_arrive_is_waited_for_and_then_said():
    environment = healthy()
    environment.canary_seconds = None
    before = environment.clock.now()
    status, found = findings_by_check(environment, "--wait", "5")
    assert (status, found["notices"]["state"]) == (1, "fail")
    assert "CanaryMissing" in found["notices"]["cure"]
    assert environment.clock.now() - before == timedelta(seconds=5)


def test_each_run_has_a_canary_of_its_own():
    environment = healthy()
    assert findings_by_check(environment)[0] == 0
    environment.canary_seconds = None
    assert findings_by_check(environment)[0] == 1


def test_an_api_server_that_does_not_answer_here_leaves_the_question_open():
    environment = healthy()
    environment.transports["harbor"] = Away()
    status, found = findings_by_check(environment)
    assert status == 2
    for check in ("cluster", "rights", "fields", "queue", "node index"):
        assert found[check]["state"] == "skipped"
    assert found["notices"]["state"] == "ok"


def test_a_token_that_the_cluster_does_not_take_must_be_fixed():
    environment = healthy()
    by_endpoint(environment)
    environment.transports["harbor"] = Failing()
    status, found = findings_by_check(environment)
    assert (status, found["cluster"]["state"]) == (1, "fail")
    assert "plimsoll/harbor" in found["cluster"]["cure"]


def test_that_an_eks_cluster_does_not_know_whoever_asks_says_nothing_of_the_functions():
    environment = healthy()
    environment.transports["harbor"] = Failing()
    status, found = findings_by_check(environment)
    assert (status, found["cluster"]["state"]) == (2, "skipped")


def test_a_cluster_that_is_no_more_should_not_be_registered():
    environment = healthy()
    environment.transports["harbor"] = Failing(NotFound("there is no EKS cluster harbor"))
    status, found = findings_by_check(environment)
    assert (status, found["cluster"]["state"]) == (1, "fail")
    assert "plimsoll clusters remove harbor" in found["cluster"]["cure"]


def test_what_must_be_fixed_counts_more_than_what_could_not_be_asked():
    environment = healthy()
    environment.transports["harbor"] = Away()
    environment.parameters["KillSwitch"] = "true"
    assert findings_by_check(environment)[0] == 1


def test_the_rights_of_overlays_may_be_withheld():
    environment = healthy()
    deny(environment, "delete")
    exit_status, found = findings_by_check(environment)
    assert exit_status == 0
    for overlay, effect in {
        "deletions": "(delete pods): no budget is overruled",
        "guard": "no budget is made for workloads that opted in",
        "injection": "is neither told of floors nor proven",
    }.items():
        finding = found[f"rights of {overlay}"]
        assert finding["state"] == "info"
        assert effect in finding["says"]
        assert finding["cure"].endswith(f"infra/cluster/{overlay}")


def test_missing_rights_are_named():
    environment = healthy()
    deny(environment, "patch")
    status, found = findings_by_check(environment)
    assert (status, found["rights"]["state"]) == (1, "fail")
    assert "patch nodes" in found["rights"]["says"]
    assert "patch pods" in found["rights"]["says"]
    assert "list" not in found["rights"]["says"]
    assert "infra/cluster" in found["rights"]["cure"]


def test_rights_to_write_are_not_needed_to_observe():
    environment = healthy(Mode.OBSERVE)
    deny(environment, "patch", "create", "update", "delete")
    status, found = findings_by_check(environment)
    assert (status, found["rights"]["state"]) == (0, "info")
    assert "delete pods" in found["rights"]["says"]


def test_without_the_right_to_watch_a_drain_is_said_to_list_instead():
    environment = healthy()
    deny(environment, "watch")
    status, found = findings_by_check(environment)
    assert (status, found["rights"]["state"]) == (0, "ok")
    assert found["rights to watch"]["state"] == "info"
    assert "watch pods" in found["rights to watch"]["says"]
    assert "infra/cluster" in found["rights to watch"]["cure"]


def test_no_right_at_all_means_that_the_manifests_are_not_applied():
    environment = healthy()
    deny(environment, *{call.verb for call in CALLS})
    _, found = findings_by_check(environment)
    assert "infra/cluster is not applied" in found["rights"]["says"]


def test_in_an_eks_cluster_the_group_is_asked_about_and_elsewhere_the_token_itself():
    environment = healthy()
    asked = deny(environment).asked
    findings_by_check(environment)
    assert {review["kind"] for review in asked} == {"SubjectAccessReview"}
    assert all("plimsoll" in review["spec"]["groups"] for review in asked)
    assert len(asked) == len(CALLS)
    about = [r["spec"]["resourceAttributes"] for r in asked]
    assert {(a["namespace"], a["name"]) for a in about if a["resource"] == "leases"} == {
        ("plimsoll", "drains"),
        ("plimsoll", ""),
    }
    asked.clear()
    by_endpoint(environment)
    status, found = findings_by_check(environment)
    assert status == 0
    assert {review["kind"] for review in asked} == {"SelfSubjectAccessReview"}
    assert "access entries" not in found
    assert "the functions use" in found["cluster"]["says"]


def test_who_may_not_ask_about_a_group_is_told_who_may():
    environment = healthy()
    deny(environment, open_=False)
    status, found = findings_by_check(environment)
    assert (status, found["rights"]["state"]) == (2, "skipped")
    assert "as an administrator" in found["rights"]["says"]


def test_fields_that_nobody_holds_us_to_must_be_fixed():
    environment = healthy()
    guarding(environment).foreign = None
    status, found = findings_by_check(environment)
    assert (status, found["fields"]["state"]) == (1, "fail")
    for about in ("Node base-1", "Pod default/web-", "plimsoll-departures", "plimsoll-history"):
        assert about in found["fields"]["says"]
    assert found["fields"]["cure"].startswith("kubectl apply -k infra/cluster")


def test_what_something_else_refuses_proves_nothing_of_our_policies():
    environment = healthy()
    guarding(environment).foreign = refused('admission webhook "w" denied the request: no', 400)
    status, found = findings_by_check(environment)
    assert (status, found["fields"]["state"]) == (0, "info")
    assert 'Node base-1: admission webhook "w"' in found["fields"]["says"]


def test_another_policy_is_not_ours():
    environment = healthy()
    guarding(environment).foreign = refused(BY_POLICY.replace("'plimsoll-nodes'", "'house-rules'"))
    assert findings_by_check(environment)[1]["fields"]["state"] == "info"


def test_without_any_right_to_write_no_field_can_be_changed():
    environment = healthy(Mode.OBSERVE)
    no_right = refused('nodes "a" is forbidden: User "x" cannot patch resource "nodes"')
    guarding(environment).foreign = guarding(environment).ours = no_right
    status, found = findings_by_check(environment)
    assert (status, found["fields"]["state"]) == (0, "ok")
    assert "no right to write at all" in found["fields"]["says"]
    assert "our fields" not in found


def test_a_webhook_that_spoils_our_own_writes_is_found_before_a_drain_finds_it():
    environment = healthy()
    guarding(environment).ours = refused(f"{BY_POLICY}, spec.template.spec")
    status, found = findings_by_check(environment)
    assert (status, found["our fields"]["state"]) == (1, "fail")
    assert "exempt the group" in found["our fields"]["cure"]
    assert found["fields"]["state"] == "ok"


def test_a_cluster_that_has_nothing_yet_cannot_be_tried():
    environment = healthy()
    empty = FakeTransport(FakeCluster(now=NOON), environment.clock)
    guarding(environment).inner = empty
    _, found = findings_by_check(environment)
    assert found["fields"]["state"] == "info"


def test_no_trial_is_kept():
    environment, _ = an_environment(mode=Mode.ACT)
    before = [n.resource_version for n in environment.open(a_cluster()).nodes()]
    _, found = findings_by_check(environment)
    assert found["fields"]["state"] == "fail"  # a fake cluster has no policies, so both passed
    assert [n.resource_version for n in environment.open(a_cluster()).nodes()] == before


@pytest.mark.parametrize(
    ("version", "fields", "queue"),
    [
        ("v1.28.5-eks-1", "info", "info"),
        ("v1.29.0", "info", "fail"),
        ("v1.30.0", "fail", "fail"),
        ("a fork of its own", "fail", "fail"),
    ],
)
def test_what_a_cluster_is_too_old_for_is_told_and_need_not_be_fixed(version, fields, queue):
    environment = healthy()
    guard = guarding(environment)
    guard.version, guard.foreign = version, None
    guard.queue = Response(status=404, body={"message": "not found"}, headers=USED)
    _, found = findings_by_check(environment)
    assert (found["fields"]["state"], found["queue"]["state"]) == (fields, queue)


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        (Response(status=404, body={}, headers=USED), "fail", "no FlowSchema plimsoll"),
        (Response(status=200, body=SCHEMA), "info", "does not say"),
        (
            Response(status=200, body=SCHEMA, headers={"x-kubernetes-pf-flowschema-uid": "8"}),
            "fail",
            "do not go through",
        ),
        (
            Response(
                status=200,
                body={**SCHEMA, "status": {"conditions": [{"type": "Dangling", "status": "True"}]}},
                headers=USED,
            ),
            "fail",
            "priority level that is not there",
        ),
        (refused("no"), "skipped", "get flowcontrol.apiserver.k8s.io/flowschemas"),
    ],
    ids=["missing", "no queues", "another's", "dangling", "may not read"],
)
def test_the_queue_that_our_requests_go_through_is_named_by_the_answers(answer, state, said):
    environment = healthy()
    guarding(environment).queue = answer
    _, found = findings_by_check(environment)
    assert found["queue"]["state"] == state
    assert said in found["queue"]["says"]


def test_an_index_that_no_sweep_renews_is_stale():
    environment = healthy()
    environment.clock.time += STALE + timedelta(minutes=1)
    status, found = findings_by_check(environment)
    assert (status, found["node index"]["state"]) == (1, "fail")
    assert found["node index"]["says"].startswith("0 of 2 nodes")
    assert "2026-01-02T12:00:00Z" in found["node index"]["says"]


def test_a_node_that_joined_just_now_may_be_missing_from_the_index():
    environment = healthy()
    environment.index = type(environment.index)()
    assert findings_by_check(environment)[1]["node index"]["state"] == "fail"
    environment.clock = StillClock(environment.clock.now() - timedelta(minutes=10))
    assert findings_by_check(environment)[1]["node index"]["state"] == "info"


@pytest.mark.parametrize(
    ("program", "queue", "mode", "state"),
    [
        ("aws-node-termination-handler", None, Mode.ACT, "fail"),
        ("aws-node-termination-handler", None, Mode.OBSERVE, "info"),
        ("karpenter", "", Mode.ACT, None),
        ("karpenter", None, Mode.ACT, None),
    ],
)
def test_who_else_evicts_the_pods_of_interrupted_nodes_is_named(
    program: str, queue: str | None, mode: Mode, state: str | None
):
    environment = healthy(mode)
    env = [] if queue is None else [{"name": "INTERRUPTION_QUEUE", "value": queue}]
    labels = {"app.kubernetes.io/name": program}
    container = {"name": "main", "image": "x", "env": env}
    guarding(environment).inner.call(
        "POST",
        "/api/v1/namespaces/kube-system/pods",
        body={
            "metadata": {"name": "p", "namespace": "kube-system", "labels": labels},
            "spec": {"containers": [container]},
        },
    )
    found = findings_by_check(environment)[1]
    said = found.get(f"other drainers: {program}")
    assert (said and said["state"]) == state
    assert ("other drainers" in found) == (state is None)
    if said:
        assert "namespace kube-system" in said["says"]
        assert said["cure"]


def a_handler(environment: MemoryEnvironment) -> None:
    """Let aws-node-termination-handler run in the cluster."""
    labels = {"app.kubernetes.io/name": "aws-node-termination-handler"}
    metadata = {"name": "p", "namespace": "kube-system", "labels": labels}
    environment.transports["harbor"].call(
        "POST",
        "/api/v1/namespaces/kube-system/pods",
        body={
            "metadata": metadata,
            "spec": {"containers": [{"name": "main", "image": "x"}]},
        },
    )


@pytest.mark.parametrize(
    ("image", "env", "program", "state"),
    [
        ("public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25", [], HANDLER, "fail"),
        ("mirror/karpenter/controller:1.14", [], KARPENTER, None),
        ("registry.k8s.io/autoscaling/cluster-autoscaler:v1.34", [], AUTOSCALER, "info"),
        ("example/not-a-cluster-autoscaler-at-all", [], AUTOSCALER, None),
    ],
)
def test_a_deployment_that_drains_is_known_by_its_image_whatever_its_labels(
    image, env, program, state
):
    environment = healthy()
    container = {"name": "main", "image": image, "env": env}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container]}}
    answer = environment.transports["harbor"].call(
        "POST",
        "/apis/apps/v1/namespaces/kube-system/deployments",
        body={
            "metadata": {"name": "x", "namespace": "kube-system"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
        },
    )
    assert answer.status == 201
    said = findings_by_check(environment)[1].get(f"other drainers: {program}")
    assert (said and said["state"]) == state


def a_karpenter(environment: MemoryEnvironment, version: str = ":1.14.1") -> None:
    """Let Karpenter run in the cluster, with the queue `harbor-interruptions`."""
    image = f"public.ecr.aws/karpenter/controller{version}"
    container = {"name": "main", "image": image, "env": [QUEUE]}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container]}}
    environment.transports["harbor"].call(
        "POST",
        "/apis/apps/v1/namespaces/kube-system/deployments",
        body={
            "metadata": {"name": "x", "namespace": "kube-system"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
        },
    )


@pytest.mark.parametrize(
    ("delay", "mode", "state", "says"),
    [
        (0, Mode.ACT, "fail", "before Plimsoll has released them"),
        (5, Mode.ACT, "fail", "after 5 s"),
        (0, Mode.OBSERVE, "info", "before Plimsoll has released them"),
        (10, Mode.ACT, "ok", "for 10 s"),
        (30, Mode.ACT, "ok", "for 30 s"),
        (75, Mode.ACT, "info", "against the limits of its NodePool"),
        (None, Mode.ACT, "skipped", "AccessDenied"),
    ],
)
def test_karpenter_s_queue_is_judged_by_how_long_it_holds_messages_back(delay, mode, state, says):
    environment = healthy(mode)
    a_karpenter(environment)
    if delay is not None:
        environment.queue_delays["harbor-interruptions"] = delay
    found = findings_by_check(environment)[1]["Karpenter's queue"]
    assert found["state"] == state
    assert says in found["says"]
    assert state == "ok" or "DelaySeconds of the queue harbor-interruptions to 15" in found["cure"]


@pytest.mark.parametrize(
    ("version", "told"),
    [(":v1.11.2", True), (":1.12.0", False), (":1.14.1@sha256:0", False), ("@sha256:0", False)],
)
def test_a_karpenter_that_reads_no_durations_is_named(version, told):
    environment = healthy()
    environment.queue_delays["harbor-interruptions"] = 15
    a_karpenter(environment, version)
    found = findings_by_check(environment)[1].get("Karpenter's version")
    assert (found is not None) == told
    assert found is None or (found["state"] == "fail" and "1.12 or newer" in found["cure"])


@pytest.mark.parametrize(("most", "told"), [(9, True), (10, False)])
def test_a_node_pool_with_less_room_than_its_spot_nodes_need_is_named(most, told):
    environment = healthy()
    pool = a_group("flexible", kind="karpenter", capacity="spot", desired=5, max_size=most)
    environment.groups = [*environment.groups, pool]
    status, found = findings_by_check(environment)
    assert ("NodePool flexible" in found) == told
    assert status == 0


def test_a_node_pool_that_is_not_ready_is_named_with_why():
    environment = healthy()
    pool = a_group("flexible", kind="karpenter", capacity="spot", desired=5, max_size=9)
    environment.groups = [*environment.groups, replace(pool, closed="it is not Ready (no AMI)")]
    found = findings_by_check(environment)[1]["NodePool flexible"]
    assert "not Ready (no AMI)" in str(found)
    assert "EC2NodeClass" in found["cure"]


@pytest.mark.parametrize(
    ("spec", "labels", "who"),
    [
        ({"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}, {}, KARPENTER),
        (
            {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
            {},
            AUTOSCALER,
        ),
        ({"unschedulable": True}, {f"{HANDLER}/action": "cordon-and-drain"}, HANDLER),
        ({"unschedulable": True}, {}, "a cordon by kubectl-cordon"),
        ({}, {}, None),
    ],
)
def test_who_drains_a_node_just_now_is_known_by_its_taints_labels_and_field_managers(
    spec, labels, who
):
    owned: dict[str, Any] = {"f:spec": {"f:unschedulable": {}}}
    managers = [
        {"manager": "kubelet", "fieldsV1": {"f:metadata": {}}},
        {"manager": "kubectl-cordon", "fieldsV1": owned},
    ]
    metadata = {"name": "spot-1", "labels": labels, "managedFields": managers}
    assert marks_of([{"metadata": metadata, "spec": spec}]) == ({} if who is None else {who: 1})


def test_a_cordon_of_somebody_else_is_told_with_what_answers_it():
    environment = healthy()
    guarding(environment).inner.call(
        "PATCH",
        "/api/v1/nodes/base-1",
        body={"spec": {"unschedulable": True}},
        content_type="application/merge-patch+json",
    )
    said = findings_by_check(environment)[1]["drained now: a cordon by somebody who does not say"]
    assert said["state"] == "info"
    assert "foreign-cordon=move" in said["cure"]


def a_guard(environment: MemoryEnvironment) -> None:
    metadata = {"name": "plimsoll-deployment-web", "labels": {"plimsoll.dev/guard": "true"}}
    environment.transports["harbor"].call(
        "POST",
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        body={"metadata": metadata, "spec": {"maxUnavailable": 0}},
    )


def test_beside_the_guard_another_that_drains_is_only_told_of():
    environment = healthy()
    a_handler(environment)
    a_guard(environment)
    found = findings_by_check(environment)[1]["other drainers: aws-node-termination-handler"]
    assert found["state"] == "info"
    assert "Budgets of the guard: 1" in found["says"]
    assert "the mode act fits" in found["says"]


def test_a_cluster_acts_beside_another_that_drains_only_with_the_guard_or_where_that_is_said():
    environment = healthy(Mode.OBSERVE)
    a_handler(environment)
    act = ("clusters", "set", "harbor", "--mode", "act", "--yes")
    refused = run(environment, *act)
    assert refused.exit_code == 2
    assert "aws-node-termination-handler in namespace kube-system" in refused.output
    assert "plimsoll guard install" in refused.output
    assert run(environment, *act, "--beside-drainers").exit_code == 0
    assert run(environment, "clusters", "set", "harbor", "--mode", "observe").exit_code == 0
    a_guard(environment)
    assert run(environment, *act).exit_code == 0


@pytest.mark.parametrize(("delay", "agrees"), [(15, True), (75, True), (0, False), (None, False)])
def test_a_cluster_acts_beside_a_karpenter_whose_queue_holds_messages_back(delay, agrees):
    environment = healthy(Mode.OBSERVE)
    a_karpenter(environment)
    if delay is not None:
        environment.queue_delays["harbor-interruptions"] = delay
    result = run(environment, "clusters", "set", "harbor", "--mode", "act", "--yes")
    assert (result.exit_code == 0) == agrees
    assert agrees or "Delay Karpenter's queue" in result.output


def test_nodes_that_eks_drains_itself_are_noted():
    environment = healthy()
    guarding(environment).inner.call(
        "PATCH",
        "/api/v1/nodes/spot-1",
        body={"metadata": {"labels": {"eks.amazonaws.com/nodegroup": "pool"}}},
        content_type="application/merge-patch+json",
    )
    status, found = findings_by_check(environment)
    assert (status, found["other drainers: EKS"]["state"]) == (0, "info")
    assert "managed node groups: 1." in found["other drainers: EKS"]["says"]


def test_one_group_that_can_grow_is_enough_and_the_others_are_noted():
    environment = healthy()
    environment.groups = [a_group("base"), a_group("full", desired=10)]
    environment.group_settings["full"] = NORMAL
    status, found = findings_by_check(environment)
    assert (status, found["node groups"]["state"]) == (0, "ok")
    assert "base (on-demand) by 10" in found["node groups"]["says"]
    assert found["node group full"]["state"] == "info"


def test_a_cluster_that_is_not_registered_and_a_stack_that_is_not_there_cannot_be_asked():
    assert run(healthy(), "doctor", "--cluster", "nowhere").exit_code == 2
    assert run(healthy(), "doctor", "--cluster", "harbor", "--stack", "other").exit_code == 2


def test_the_cluster_is_only_read():
    environment, counting = an_environment()
    run(environment, "doctor", "--cluster", "harbor")
    assert {write.rpartition("/")[2] for write in counting.writes} == {"subjectaccessreviews"}
    assert SPOT in environment.index.find([SPOT])


# --- What IAM decides ------------------------------------------------------------------------------


def simulated(*, allowed: bool, decision: str) -> Simulated:
    request = Request(action="dynamodb:GetItem", resource="arn:aws:dynamodb:::table/clusters")
    return Simulated(
        case=Case(role="NoticesRole", request=request, allowed=allowed), decision=decision
    )


@pytest.mark.parametrize(
    ("allowed", "decision", "state"),
    [
        (True, "allowed", "ok"),
        (True, "implicitDeny", "fail"),
        (True, "explicitDeny", "fail"),
        (False, "implicitDeny", "ok"),
        (False, "explicitDeny", "ok"),
        (False, "allowed", "fail"),
    ],
)
def test_a_role_that_may_more_or_less_than_it_must_is_named(allowed, decision, state):
    environment = healthy()
    right = simulated(allowed=False, decision="implicitDeny")
    environment.simulated = [right, simulated(allowed=allowed, decision=decision)]
    status, found = findings_by_check(environment)
    assert (found["AWS rights"]["state"], status) == (state, int(state == "fail"))
    if state == "fail":
        assert "1 of 2" in found["AWS rights"]["says"]
        assert f"NoticesRole dynamodb:GetItem ({decision})" in found["AWS rights"]["says"]


@pytest.mark.parametrize(
    ("direct", "parameters", "state"),
    [
        (Direct.BY_THE_QUEUE, {}, "ok"),
        (Direct.OTHERWISE, {}, "info"),
        (Direct.TAKEN, {}, "fail"),
        (Direct.TAKEN, {"AcceptDrills": "true"}, "info"),
    ],
    ids=["denied by the queue", "denied otherwise", "taken", "taken by an emulator"],
)
def test_who_may_send_past_the_rules_is_tried(direct, parameters, state):
    environment = healthy()
    environment.direct, environment.parameters = direct, parameters
    status, found = findings_by_check(environment)
    assert (found["senders"]["state"], status) == (state, int(state == "fail"))


@pytest.mark.parametrize(
    ("target", "state"),
    [
        (Target(rule="notices", seconds=300, dead_letters="arn"), "ok"),
        (Target(rule="notices", seconds=None, dead_letters="arn"), "fail"),
        (Target(rule="notices", seconds=300, dead_letters=None), "fail"),
    ],
    ids=["as told", "for a day", "not kept"],
)
def test_rules_are_compared_with_what_the_template_told_them(target, state):
    environment = healthy()
    environment.targets = [target]
    assert findings_by_check(environment)[1]["delivery"]["state"] == state


def test_groups_whose_maxima_do_not_hold_what_spot_nodes_are_is_noted_before_a_storm():
    environment = healthy()
    for group, said in ((FULL, "0 of"), (CLOSED, "0 of"), (a_group("base", cpu="1"), "of")):
        environment.groups = [replace(group, max_size=min(group.max_size, group.desired + 1))]
        _, found = findings_by_check(environment)
        assert found["group maxima"]["state"] == "info"
        assert said in found["group maxima"]["says"]
        assert "raise the maximum" in found["group maxima"]["cure"]


def test_a_group_that_launches_nothing_at_once_is_named():
    environment = healthy()
    environment.group_settings = {"base": replace(NORMAL, slow="it mixes on-demand and spot")}
    status, found = findings_by_check(environment)
    assert status == 0
    assert "its desired capacity is raised" in found["node group base"]["says"]


# --- What the cluster holds against a storm --------------------------------------------------------


def a_webhook(resource: str, *operations: str, group: str = "", **how: Any) -> dict[str, Any]:
    rule = {"apiGroups": [group], "resources": [resource], "operations": operations}
    return {"name": "guard.example.com", "rules": [rule], **how}


@pytest.mark.parametrize(
    ("hook", "says"),
    [
        (a_webhook("pods/eviction", "CREATE", timeoutSeconds=30), "refuses them where it fails"),
        (a_webhook("*/*", "*"), "asked about evictions, and refuses them"),
        (a_webhook("pods/eviction", "CREATE", failurePolicy="Ignore"), "longer than 10 s"),
        (a_webhook("pods", "CREATE"), "new and changed pods, and refuses them"),
        (a_webhook("pods", "CREATE", failurePolicy="Ignore"), None),
        (a_webhook("pods", "DELETE"), None),
        (a_webhook("pods/eviction", "CREATE", group="policy.example.com"), None),
        (a_webhook("deployments", "*", group="apps"), None),
    ],
)
def test_a_webhook_on_evictions_or_pods_is_named_with_its_failure_policy_and_time(hook, says):
    environment = healthy()
    guarding(environment).lists["validatingwebhookconfigurations"] = [{"webhooks": [hook]}]
    status, found = findings_by_check(environment)
    told = found.get("webhook guard.example.com")
    assert (told is None) == (says is None)
    assert ("webhooks" in found) == (says is None)
    assert told is None or (says in told["says"] and "failurePolicy: Ignore" in told["cure"])
    assert status == 0


def test_that_webhooks_may_not_be_read_leaves_everything_else_fine():
    environment = healthy()
    guarding(environment).lists.update(dict.fromkeys(WEBHOOKS))
    status, found = findings_by_check(environment)
    assert (found["webhooks"]["state"], status) == ("info", 0)


def holding(plural: str, *objects: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what is found of a healthy cluster that has these objects."""
    environment = healthy()
    guarding(environment).lists[plural] = objects
    status, found = findings_by_check(environment)
    assert status == 0
    return found


def a_quota(used: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "tight", "namespace": "default"},
        "spec": spec,
        "status": {"hard": {"pods": "3"}, "used": {"pods": used}},
    }


@pytest.mark.parametrize(("said", "told"), [("ja", True), ("yes", False), ("false", False)])
def test_a_mark_that_opts_out_of_nothing_is_named(said: str, *, told: bool):
    environment = healthy()
    body = {"metadata": {"annotations": {"plimsoll.dev/ignore": said}}}
    answer = environment.transports["harbor"].call(
        "PATCH",
        "/apis/apps/v1/namespaces/default/deployments/web",
        body=body,
        content_type="application/merge-patch+json",
    )
    assert answer.status == 200
    found = findings_by_check(environment)[1]["opt-outs"]
    assert (found["state"] == "info") is told
    assert (
        not told
        or "Deployment default/web: plimsoll.dev/ignore has the value 'ja'" in found["says"]
    )


@pytest.mark.parametrize(
    ("quota", "told"),
    [
        (a_quota("3"), True),
        (a_quota("2"), False),
        (a_quota("3", scopes=["NotTerminating"]), True),
        (a_quota("3", scopes=["Terminating"]), False),
    ],
)
def test_a_quota_without_headroom_for_one_more_pod_is_named_where_it_binds_the_pod(quota, told):
    found = holding("resourcequotas", quota)
    assert ("ResourceQuota default/tight" in found) == told
    assert ("quotas" in found) != told


@pytest.mark.parametrize(
    ("budgets", "says"),
    [
        ([budget_json("web", allowed=0)], "lets none go"),
        ([budget_json("web", allowed=1)], None),
        ([budget_json("other", allowed=0)], None),
        (
            [budget_json(name, allowed=1, selector={}) for name in ("web", "all")],
            "PodDisruptionBudget default/all covers too",
        ),
    ],
)
def test_a_budget_that_never_lets_a_pod_go_is_named(budgets, says):
    found = holding("poddisruptionbudgets", *budgets)
    told = found.get("PodDisruptionBudget default/web")
    assert (told is None) == (says is None) == ("budgets" in found)
    assert told is None or says in told["says"]
