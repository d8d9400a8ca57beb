"""The command executor on a fake cluster: what it does, and all that it refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.adapters.kubernetes import KubernetesCluster, Response
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.drain.node_drain import drain_interruption
from plimsoll.domain.errors import Conflict, PlimsollError, Temporary
from plimsoll.domain.kubernetes import NAMESPACE, RELEASED
from plimsoll.domain.reports import Metric
from plimsoll_agent.calls import JOURNAL, POLICY
from plimsoll_agent.instruction_executor import InstructionExecutor
from plimsoll_agent.journal import KEPT_ENTRIES, ConfigMapJournal, Journal
from plimsoll_agent.owner_policy import OwnerPolicy, read_policy
from plimsoll_service.wire import instructions as wire
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.fake_cluster.transport import FakeTransport
from tests.support import fake_clusters
from tests.support.builders import NOON
from tests.support.cli_environment import Counting, StillClock
from tests.support.instructions import HandingOut, SeededSigner

CLUSTER = "c-1"
ALLOWED = {
    "mode": "act",
    "kinds": "consolidate-node label-node",
    "labels": "plimsoll.dev/",
    "instruction-keys": SeededSigner().pinned,
}


class Living(StillClock):
    """A clock that the cluster lives by; it may also kill whoever waits."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster: FakeCluster | None = None
        self.lowest = 99
        self.meanwhile: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        assert self.time - NOON < timedelta(hours=2), "the drain does not end"
        assert self.cluster is not None
        self.cluster.step(self.time)
        pods = self.cluster.store.all("pods")
        self.lowest = min(self.lowest, sum(is_ready(p) and not is_deleting(p) for p in pods))
        self.meanwhile()


class Said:
    """What was heard."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str]] = []

    def log(self, message: str, **facts: object) -> None: ...
    def warn(self, message: str, **facts: object) -> None: ...
    def once(self, line: str) -> None: ...
    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None: ...
    def answered(self, kind: str, outcome: str) -> None:
        self.answers.append((kind, outcome))


class Site:
    """A cluster with web on the node `old`, and an executor that the owner lets act."""

    def __init__(self, *more: dict[str, Any], **policy: str) -> None:
        self.clock, self.said, self.service = Living(), Said(), HandingOut()
        self.clock.time = early = NOON - timedelta(minutes=10)
        self.cluster = self.clock.cluster = FakeCluster(now=early)
        self.cluster.join(fake_clusters.a_node("old"), now=early)
        for name in (NAMESPACE, "shop"):
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name, data in ((POLICY, ALLOWED | policy), (JOURNAL, {"journal": "{}"})):
            meta = {"name": name, "namespace": NAMESPACE}
            self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
        self.apply(fake_clusters.a_deployment("web", 2), *more)
        self.clock.sleep(600)
        self.clock.lowest = 99
        self.cluster.join(fake_clusters.a_node("new"), now=self.clock.now())
        self.cluster.step(self.clock.now())
        self.wire = Counting(FakeTransport(self.cluster, self.clock))

    def apply(self, *manifests: dict[str, Any]) -> None:
        self.cluster.apply(manifests, now=self.clock.now())

    @property
    def executor(self) -> InstructionExecutor:
        """A new one each time, as after a restart."""
        api = KubernetesCluster(self.wire, "harbor", self.clock, workers=SerialWorkers())
        return InstructionExecutor(
            cluster_id=CLUSTER,
            api=api,
            service=self.service,
            policy=lambda: read_policy(api.requests),
            journal=ConfigMapJournal(api.requests, self.clock),
            clock=self.clock,
            progress=self.said,
        )

    def node(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.cluster.store.must_get("nodes", "", name)
        return found

    def on(self, node: str) -> int:
        pods = self.cluster.store.all("pods")
        return sum(p["spec"].get("nodeName") == node for p in pods)

    def uid(self, kind: str, name: str) -> str:
        return str(self.cluster.store.must_get(kind, "default", name)["metadata"]["uid"])

    def change_policy(self, **data: str | None) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{POLICY}"
        body = {"data": {key.replace("_", "-"): value for key, value in data.items()}}
        self.patch(path, body)

    def patch(self, path: str, body: dict[str, Any]) -> None:
        now = self.clock.now()
        answer = self.cluster.handle("PATCH", path, {}, body, fake_clusters.MERGE, now=now)
        assert answer.status == 200, answer.body

    def consolidate(self, number: int = 1, **changes: Any) -> wire.Instruction:
        node, now = self.node("old"), self.clock.now()
        standing = wire.StandingWorkload(
            kind="Deployment",
            namespace="default",
            name="web",
            uid=self.uid("deployments", "web"),
            replicas=2,
        )
        target = wire.Target(
            name="old", uid=node["metadata"]["uid"], provider_id=node["spec"]["providerID"]
        )
        meant = wire.Preconditions(
            workloads=(standing,),
            most_pods=2,
            destinations=(self.node("new")["metadata"]["uid"],),
        )
        facts: dict[str, Any] = {
            "id": f"r-{number}",
            "cluster_id": CLUSTER,
            "number": number,
            "issued_at": now,
            "expires_at": now + timedelta(minutes=30),
            "kind": "consolidate-node",
            "target": target,
            "preconditions": meant,
            "plan": wire.Plan(reason="its pods fit on the other node"),
        }
        return wire.Instruction(**facts | changes)

    def label(self, number: int = 1, **labels: str | None) -> wire.Instruction:
        asked = {f"plimsoll.dev/{key}": value for key, value in labels.items()}
        return self.consolidate(
            number, kind="label-node", labels=asked, preconditions=wire.Preconditions()
        )

    def round(self, *asked: wire.Instruction) -> str:
        """Ask, and return the outcome of the last one."""
        for instruction in asked:
            self.service.ask(instruction)
        self.executor.round()
        return self.service.results[-1].outcome if self.service.results else "nothing"

    @property
    def reason(self) -> str:
        return self.service.results[-1].reason

    def cluster_writes(self) -> list[str]:
        return [write for write in self.wire.writes if JOURNAL not in write]


@pytest.fixture
def site() -> Site:
    return Site()


def test_a_node_is_consolidated_and_no_replica_is_missed(site):
    assert site.round(site.consolidate()) == "done"
    assert site.on("old") == 0
    assert site.on("new") == 2
    assert site.node("old")["spec"]["unschedulable"]
    assert site.clock.lowest == 2


def test_a_node_is_labelled(site):
    assert site.round(site.label(group="a")) == "done"
    assert site.node("old")["metadata"]["labels"]["plimsoll.dev/group"] == "a"


def test_the_same_instruction_is_carried_out_once_however_often_it_comes(site):
    asked = site.consolidate()
    site.round(asked, asked)
    site.patch("/api/v1/nodes/old", {"spec": {"unschedulable": None}})
    writes = len(site.cluster_writes())
    assert site.round(asked) == "done"
    assert len(site.cluster_writes()) == writes


def test_a_number_that_was_passed_is_never_taken_again(site):
    site.round(site.label(7, group="a"))
    told = len(site.service.results)
    site.service.waiting.clear()
    site.round(site.label(6, group="b"))
    assert site.node("old")["metadata"]["labels"]["plimsoll.dev/group"] == "a"
    assert len(site.service.results) == told
    assert site.said.answers[-1] == ("label-node", "replayed")


def test_read_only_it_says_what_it_would_do_and_does_nothing():
    site = Site(mode="read-only")
    assert site.round(site.consolidate(1)) == "would-do"
    assert "would cordon Node old; release Pod default/web-" in site.reason
    assert site.round(site.label(2, group="a")) == "would-do"
    assert site.cluster_writes() == []


@pytest.mark.parametrize("ahead", [timedelta(minutes=4), timedelta(minutes=-29)])
def test_clocks_may_differ_by_less_than_five_minutes_and_an_instruction_is_good_to_its_end(
    site, ahead
):
    issued = site.clock.now() + ahead
    ends = issued + timedelta(minutes=30)
    asked = replace(site.label(1, group="a"), issued_at=issued, expires_at=ends)
    assert site.round(asked) == "done"


# What speaks against an instruction itself


def test_one_that_would_live_for_longer_than_an_hour_is_not_taken(site):
    ends = site.clock.now() + timedelta(hours=2)
    assert site.round(replace(site.label(1, group="a"), expires_at=ends)) == "nothing"
    assert site.said.answers == [("instruction", "untrusted")]
    assert site.cluster_writes() == []


def test_another_instruction_under_a_number_that_was_taken_is_not_carried_out(site):
    site.round(site.label(1, group="a"))
    site.service.waiting.clear()
    site.round(replace(site.label(1, group="b"), id="r-other"))
    assert site.node("old")["metadata"]["labels"]["plimsoll.dev/group"] == "a"
    assert site.said.answers[-1] == ("label-node", "replayed")


def test_a_node_that_has_another_instance_now_is_not_the_one_that_was_meant(site):
    meant = replace(site.consolidate().target, provider_id="aws:///us-east-1a/i-0123456789abcdef0")
    assert site.round(site.consolidate(1, target=meant)) == "refused"
    assert "was meant" in site.reason
    assert site.round(site.label(2, group="a")) == "done"
    assert site.round(replace(site.label(3, group="b"), target=meant)) == "refused"


def test_a_node_that_names_its_instance_by_the_bare_id_is_the_one_that_was_meant(site):
    whole = site.node("old")["spec"]["providerID"]
    bare = replace(site.consolidate().target, provider_id=whole.rpartition("/")[2])
    assert site.round(replace(site.label(1, group="a"), target=bare)) == "done"


def test_a_label_of_the_node_that_changed_speaks_against_it(site):
    before = wire.Preconditions(labels={"plimsoll.dev/group": "a"})
    assert site.round(replace(site.label(1, group="b"), preconditions=before)) == "refused"
    assert "its label plimsoll.dev/group is None, and not 'a'" in site.reason
    assert site.cluster_writes() == []


def test_an_instruction_by_another_key_is_not_even_read(site):
    site.service.signer = SeededSigner(2)
    assert site.round(site.consolidate()) == "nothing"
    assert site.said.answers == [("instruction", "untrusted")]
    assert site.cluster_writes() == []


def test_an_instruction_that_was_changed_on_its_way_is_not_even_read(site):
    site.service.ask(site.consolidate())
    (signed,) = site.service.waiting
    changed = signed.payload.replace(b'"number":1', b'"number":9')
    site.service.waiting[:] = [replace(signed, payload=changed)]
    assert site.round() == "nothing"
    assert site.said.answers == [("instruction", "untrusted")]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cluster_id": "c-2"}, "another cluster"),
        ({"issued_at": NOON - timedelta(hours=1), "expires_at": NOON}, "expired"),
        (
            {"issued_at": NOON + timedelta(hours=1), "expires_at": NOON + timedelta(hours=2)},
            "in the future",
        ),
        ({"target": wire.Target(name="old", uid="another")}, "of this uid"),
        ({"target": wire.Target(name="older", uid="another")}, "of this uid"),
        ({"labels": {"team": "red"}}, "does not allow the label team"),
    ],
)
def test_an_instruction_that_is_not_for_here_and_now_is_refused(site, change, why):
    assert site.round(site.consolidate(**change)) == "refused"
    assert why in site.reason
    assert site.cluster_writes() == []


# What speaks against it by the owner's policy: a stolen signing key gets no further than this


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ({"kinds": "label-node"}, "does not name consolidate-node"),
        ({"kinds": ""}, "does not name consolidate-node"),
        ({"hours": "fri 13:00-14:00"}, "allows it fri 13:00-14:00 UTC"),
        ({"nodes-per-hour": "0"}, "0 nodes an hour"),
        ({"pods-per-hour": "1"}, "1 pods an hour"),
        ({"nodes": "team=web"}, "does not cover Node old"),
        ({"namespaces-kept": "default"}, "keeps the pods of namespace default"),
        ({"labels": ""}, "does not allow the label plimsoll.dev/group"),
    ],
)
def test_a_signed_instruction_cannot_exceed_the_owners_policy(policy, why):
    site = Site(**policy)
    asked = site.label(1, group="a") if "labels" in policy else site.consolidate()
    assert site.round(asked) == "refused"
    assert why in site.reason
    assert site.cluster_writes() == []


def test_no_flood_of_refused_instructions_makes_it_forget_what_it_drained_in_this_hour(site):
    site.round(site.consolidate(1))
    site.patch("/api/v1/nodes/old", {"spec": {"unschedulable": None}})
    site.service.waiting.clear()
    flood = [replace(site.label(n), labels={"team": "red"}) for n in range(2, KEPT_ENTRIES + 50)]
    for each in flood:
        site.service.waiting.clear()
        assert site.round(each) == "refused"
    site.service.waiting.clear()
    nobody = wire.Preconditions()
    assert site.round(site.consolidate(KEPT_ENTRIES + 50, preconditions=nobody)) == "refused"
    assert "1 nodes an hour" in site.reason


def test_no_flood_of_signed_instructions_drains_more_nodes_than_the_owner_allows_in_an_hour(site):
    site.round(site.consolidate(1))
    site.patch("/api/v1/nodes/old", {"spec": {"unschedulable": None}})
    for number in range(2, 20):
        assert site.round(site.consolidate(number)) == "refused"
        site.clock.sleep(60)
    site.clock.sleep(3600)
    nobody = wire.Preconditions()
    assert site.round(site.consolidate(20, preconditions=nobody)) == "done"


@pytest.mark.parametrize(
    "policy", [{"mode": "Act"}, {"nodes-per-hour": "many"}, {"node-per-hour": "9"}]
)
def test_a_policy_with_a_slip_of_the_pen_allows_nothing(policy):
    site = Site(**policy)
    with pytest.raises(PlimsollError, match="ConfigMap plimsoll-agent-policy"):
        site.round(site.consolidate())
    assert site.cluster_writes() == []


def test_without_a_policy_nothing_is_trusted():
    assert OwnerPolicy() == OwnerPolicy.parse({})
    site = Site(**{"instruction-keys": ""})
    assert site.round(site.consolidate()) == "nothing"


# What speaks against it in the cluster

PROTECTED = {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}}


def remade(site: Site) -> None:
    """Another Deployment has the name, and its pods are where the first one's were."""
    site.cluster.handle("DELETE", f"{fake_clusters.DEPLOYMENTS}/web", now=site.clock.now())
    site.clock.sleep(60)
    site.apply(fake_clusters.a_deployment("web", 2))


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (lambda s: s.patch("/api/v1/nodes/old", {"spec": {"unschedulable": True}}), "cordoned"),
        (lambda s: s.patch("/api/v1/nodes/new", {"spec": {"unschedulable": True}}), "not Ready"),
        (lambda s: s.apply(fake_clusters.a_deployment("cart", 1)), "cart has a pod there"),
        (lambda s: s.apply(fake_clusters.a_pod("bare")), "nobody makes Pod default/bare anew"),
        (remade, "web is not the one that was meant"),
        (
            lambda s: s.patch(f"{fake_clusters.DEPLOYMENTS}/web", {"spec": {"replicas": 1}}),
            "web has 1 replicas, and 2 were meant",
        ),
        (
            lambda s: s.patch(
                f"{fake_clusters.DEPLOYMENTS}/web",
                {"metadata": {"labels": {"plimsoll.dev/ignore": "true"}}},
            ),
            "opted out",
        ),
        (lambda s: s.patch("/api/v1/nodes/old", PROTECTED), "Node old is protected"),
        (
            lambda s: s.patch(
                f"{fake_clusters.DEPLOYMENTS}/web", {"spec": {"template": PROTECTED}}
            ),
            "its owner protects it with karpenter.sh/do-not-disrupt: true",
        ),
    ],
)
def test_what_changed_since_the_plan_was_made_speaks_against_it(site, happens, why):
    asked = site.consolidate(preconditions=replace(site.consolidate().preconditions, most_pods=9))
    site.patch("/api/v1/nodes/new", {"spec": {"unschedulable": True}})  # so that all land on `old`
    happens(site)
    site.cluster.step(site.clock.now() + timedelta(seconds=30))
    if why != "not Ready":
        site.patch("/api/v1/nodes/new", {"spec": {"unschedulable": None}})
    before = len(site.cluster_writes())
    assert site.round(asked) == "refused"
    assert why in site.reason
    assert len(site.cluster_writes()) == before


def test_more_pods_than_were_meant_speak_against_it(site):
    few = replace(site.consolidate().preconditions, most_pods=1)
    assert site.round(site.consolidate(preconditions=few)) == "refused"
    assert "2 pods would have to leave, and 1 were meant" in site.reason


def test_without_a_place_for_every_pod_nothing_begins():
    site = Site(fake_clusters.a_deployment("fill", 1, fake_clusters.a_template("fill", cpu="7")))
    fill = wire.StandingWorkload(
        kind="Deployment",
        namespace="default",
        name="fill",
        uid=site.uid("deployments", "fill"),
        replicas=1,
    )
    asked = site.consolidate()
    meant = asked.preconditions
    before = replace(meant, workloads=(*meant.workloads, fill), most_pods=3)
    site.apply(fake_clusters.a_deployment("late", 1, fake_clusters.a_template("late", cpu="4")))
    site.cluster.step(site.clock.now() + timedelta(seconds=10))
    assert site.round(site.consolidate(preconditions=before)) == "refused"
    assert "no place is left for Pod default/fill" in site.reason


def test_a_pod_that_waits_and_fits_on_the_node_speaks_against_emptying_it(site):
    site.apply(fake_clusters.a_pod("late"))
    assert site.round(site.consolidate()) == "refused"
    assert "Pod default/late waits for a node, and fits on Node old" in site.reason
    assert site.cluster_writes() == []


def test_a_pod_that_waits_and_does_not_fit_on_the_node_does_not_speak_against_emptying_it(site):
    site.apply(fake_clusters.a_pod("big", fake_clusters.a_template("big", cpu="64")))
    assert site.round(site.consolidate()) == "done"


def test_a_pod_that_waits_takes_its_place_before_the_replacements(site):
    only_new = {"nodeSelector": {"kubernetes.io/hostname": "new"}}
    template = fake_clusters.a_template("large", cpu="7500m", **only_new)
    site.apply(fake_clusters.a_pod("large", template))
    assert site.round(site.consolidate()) == "refused"
    assert "no place is left for Pod default/web" in site.reason


def test_an_interruption_anywhere_comes_first(site):
    api = site.executor.api
    node = api.node("new")
    assert node is not None
    there = dataclasses.replace(drain_interruption("new", started=NOON), instance=node.instance)
    api.cordon(node, there)
    assert site.round(site.label(1, group="a")) == "done"
    assert site.round(site.consolidate(2)) == "refused"
    assert "interrupted" in site.reason


class Meddling(Counting):
    """A transport with something that happens right before the first cordon, and a policy that may be out of reach."""

    def __init__(self, inner: Counting, happens: Callable[[], None] = lambda: None) -> None:
        super().__init__(inner)
        self.happens = happens
        self.away: Callable[[], bool] = lambda: False

    def call(self, method: str, path: str, **request: Any) -> Response:
        if path.endswith(POLICY) and self.away():
            raise Temporary("the policy is out of reach")
        if method == "PATCH" and path == "/api/v1/nodes/old":
            happens, self.happens = self.happens, lambda: None
            happens()
        return super().call(method, path, **request)


def released(site: Site) -> list[str]:
    found = [p for p in pods(site) if RELEASED in p["metadata"].get("annotations", {})]
    return [p["metadata"]["name"] for p in found]


def test_a_pod_of_a_kept_namespace_that_lands_between_check_and_cordon_is_not_touched():
    kept = "kept-1"
    site = Site(**{"namespaces-kept": kept})
    late = fake_clusters.a_deployment("late", 1)
    late["metadata"]["namespace"] = kept

    def land() -> None:
        site.patch("/api/v1/nodes/new", {"spec": {"unschedulable": True}})
        site.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": kept}}, late)
        for seconds in (1, 2, 40):
            site.cluster.step(site.clock.now() + timedelta(seconds=seconds))
        site.patch("/api/v1/nodes/new", {"spec": {"unschedulable": None}})
        (landed,) = [p for p in pods(site) if p["metadata"]["namespace"] == kept]
        assert landed["spec"]["nodeName"] == "old"

    site.wire = Meddling(site.wire, land)
    meant = replace(site.consolidate().preconditions, most_pods=3)
    assert site.round(site.consolidate(preconditions=meant)) == "failed"
    assert f"keeps the pods of namespace {kept}" in site.reason
    assert not site.node("old")["spec"].get("unschedulable")
    assert [w for w in site.cluster_writes() if "/pods/" in w] == []


def test_a_policy_that_cannot_be_read_begins_nothing(site):
    site.wire = Meddling(site.wire)
    asked = site.consolidate()
    site.wire.away = lambda: True
    with pytest.raises(Temporary, match="out of reach"):
        site.round(asked)
    assert site.wire.writes == []


def test_a_policy_that_cannot_be_read_once_the_node_is_cordoned_moves_no_pod(site):
    site.wire = Meddling(site.wire)
    site.wire.away = lambda: site.node("old")["spec"].get("unschedulable", False)
    assert site.round(site.consolidate()) == "failed"
    assert "out of reach" in site.reason
    assert not site.node("old")["spec"].get("unschedulable")
    assert [w for w in site.cluster_writes() if "/pods/" in w] == []


def drained_without_the_policy(site: Site, last: int) -> tuple[str, list[int]]:
    """Return the outcome, and how many writes there were at each second once a pod was released.

    Args:
        site: Its replacements are Ready after fifteen seconds.
        last: The second until which the policy is away, from the tenth on.
    """
    site.wire = Meddling(site.wire)
    writes: list[int] = []

    def count() -> None:
        if any("/pods/" in write for write in site.wire.writes):
            writes.append(len(site.cluster_writes()))

    site.clock.meanwhile = count
    site.wire.away = lambda: 10 <= len(writes) <= last
    outcome = site.round(site.consolidate())
    site.clock.meanwhile = lambda: None
    site.clock.sleep(60)
    assert (len(pods(site)), site.clock.lowest) == (2, 2)
    return outcome, writes


def test_while_the_policy_cannot_be_read_a_drain_stands_still(site):
    outcome, writes = drained_without_the_policy(site, 18)
    assert outcome == "done"
    assert len(set(writes[9:19])) == 1


def test_after_ten_seconds_without_the_policy_what_was_begun_is_undone(site):
    outcome, writes = drained_without_the_policy(site, 60)
    assert (outcome, len(set(writes[9:18]))) == ("failed", 1)
    assert writes[20] > writes[9]
    assert "out of reach" in site.reason
    assert not site.node("old")["spec"].get("unschedulable")
    assert released(site) == []


# Whoever dies, and when


class KilledError(BaseException):
    """The process is gone."""


def die() -> None:
    raise KilledError


def test_killed_midway_the_drain_is_undone_by_the_next_one(site):
    site.clock.meanwhile = die
    with pytest.raises(KilledError):
        site.round(site.consolidate())
    assert site.node("old")["spec"]["unschedulable"]
    site.clock.meanwhile = lambda: None
    assert site.round() == "failed"
    assert "undone" in site.reason
    assert not site.node("old")["spec"].get("unschedulable")
    site.clock.sleep(60)
    assert all(
        "plimsoll.dev/released" not in p["metadata"].get("annotations", {}) for p in pods(site)
    )
    assert len(pods(site)) == 2
    assert site.clock.lowest == 2


def pods(site: Site) -> list[dict[str, Any]]:
    return [p for p in site.cluster.store.all("pods") if not is_deleting(p)]


class Killing(Counting):
    """A transport under which the executor dies at one of its writes."""

    def __init__(self, inner: Counting, write: int, *, carried_out: bool) -> None:
        super().__init__(inner)
        self.left, self.carried_out = write, carried_out

    def call(self, method: str, path: str, **request: Any) -> Response:
        reads = method == "GET"
        self.left -= not reads
        dies = self.left == 0 and not reads
        if dies and not self.carried_out:
            die()
        answer = super().call(method, path, **request)
        if dies:
            die()
        return answer


def at_every_write() -> Iterator[tuple[int, bool]]:
    """Yield numbers of writes until there are no more in one round, and whether each is carried out."""
    counted = Site()
    counted.round(counted.consolidate())
    assert len(counted.wire.writes) > 6
    for number in range(1, len(counted.wire.writes) + 1):
        yield number, False
        yield number, True


def test_killed_at_any_write_it_is_done_or_undone_once_and_no_replica_is_missed():
    """The journal's own writes among them; before the API server took the write, and after it."""
    for number, carried_out in at_every_write():
        site = Site()
        wire_, asked = site.wire, site.consolidate()
        site.wire = Killing(wire_, number, carried_out=carried_out)
        with pytest.raises(KilledError):
            site.round(asked)
        site.wire = wire_
        outcome = site.round()
        told = {(result.number, result.outcome) for result in site.service.results}
        where = f"write {number}, carried out: {carried_out}"
        assert told == {(1, outcome)}, where
        assert site.clock.lowest >= 2, where
        if outcome == "done":
            assert (site.on("old"), site.node("old")["spec"]["unschedulable"]) == (0, True), where
        else:
            assert outcome == "failed", where
            assert not site.node("old")["spec"].get("unschedulable"), where
            site.clock.sleep(60)
            assert len(pods(site)) == 2, where
            assert not [p for p in pods(site) if RELEASED in p["metadata"].get("annotations", {})]
        writes = site.cluster_writes()[:]
        site.executor.round()
        assert site.cluster_writes() == writes, where


@pytest.mark.parametrize("text", ["no journal", '{"last": "many"}', '{"entries": [{}]}'])
def test_without_a_journal_that_can_be_read_nothing_is_begun(site, text):
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{JOURNAL}"
    site.patch(path, {"data": {"journal": text}})
    with pytest.raises(PlimsollError, match=JOURNAL):
        site.round(site.consolidate())
    assert site.cluster_writes() == []


def lose_the_journal(site: Site) -> None:
    site.patch(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{JOURNAL}", {"data": None})


def test_a_journal_that_is_lost_repeats_no_instruction(site):
    asked = site.label(1, group="a")
    site.round(asked)
    site.patch("/api/v1/nodes/old", {"metadata": {"labels": {"plimsoll.dev/group": "mine"}}})
    lose_the_journal(site)
    for _ in range(31):
        site.executor.round()
        site.clock.sleep(60)
    assert site.node("old")["metadata"]["labels"]["plimsoll.dev/group"] == "mine"
    site.service.waiting.clear()
    assert site.round(site.label(1, group="b")) == "done"


def test_a_journal_that_is_lost_does_not_reset_the_hour(site):
    site.round(site.consolidate(1))
    site.patch("/api/v1/nodes/old", {"spec": {"unschedulable": None}})
    lose_the_journal(site)
    nobody = wire.Preconditions()
    for number in range(2, 11):
        site.executor.round()
        site.clock.sleep(360)
        assert site.round(site.consolidate(number, preconditions=nobody)) == "refused"
        assert "the journal was lost" in site.reason
    site.clock.sleep(360)
    assert site.round(site.consolidate(11, preconditions=nobody)) == "done"


def test_an_agent_that_is_enrolled_begins_its_journal_once(site):
    journal = ConfigMapJournal(site.executor.api.requests, site.clock)
    lose_the_journal(site)
    journal.establish()
    assert journal.load() == Journal()
    site.round(site.label(1, group="a"))
    journal.establish()
    assert [entry.number for entry in journal.load().entries] == [1]


def test_a_huge_number_shuts_out_nothing(site):
    assert site.round(site.label(2**53, group="a")) == "done"
    site.clock.sleep(1)
    assert site.round(site.label(2, group="b")) == "done"
    assert site.node("old")["metadata"]["labels"]["plimsoll.dev/group"] == "b"
    assert site.round() == "done"
    assert site.node("old")["metadata"]["labels"]["plimsoll.dev/group"] == "b"


def test_one_that_is_issued_in_the_future_shuts_out_nothing(site):
    later = site.clock.now() + timedelta(hours=5)
    asked = replace(site.label(7, group="a"), issued_at=later, expires_at=later + timedelta(1 / 48))
    assert site.round(asked) == "refused"
    assert site.round(site.label(8, group="b")) == "done"


def test_a_journal_of_the_version_before_keeps_its_word(site):
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{JOURNAL}"
    site.patch(path, {"data": {"journal": '{"last": 7, "entries": []}'}})
    assert site.round(site.label(7, group="a")) == "nothing"
    assert site.said.answers == [("label-node", "replayed")]
    assert site.round(site.label(8, group="a")) == "done"


def test_killed_after_the_last_pod_left_it_is_done(site):
    site.clock.meanwhile = lambda: die() if site.on("old") == 0 else None
    with pytest.raises(KilledError):
        site.round(site.consolidate())
    site.clock.meanwhile = lambda: None
    assert site.round() == "done"


def test_of_two_executors_one_acts(site):
    site.service.ask(site.consolidate())
    first, second = site.executor, site.executor
    load = second.journal.load
    journal = load()
    first.round()
    writes = len(site.cluster_writes())
    second.journal.load = lambda: journal
    with pytest.raises(Conflict):
        second.round()
    assert len(site.cluster_writes()) == writes


def test_a_result_that_the_service_did_not_hear_is_told_again(site):
    site.service.deaf = Temporary("503")
    with pytest.raises(Temporary):
        site.round(site.consolidate())
    site.service.deaf = None
    assert site.round() == "done"


@pytest.mark.parametrize(
    "happens",
    [
        lambda site: site.change_policy(mode="read-only"),
        lambda site: site.change_policy(mode="stop!"),
        lambda site: site.patch("/api/v1/nodes/old", {"spec": {"unschedulable": None}}),
        lambda site: site.change_policy(namespaces_kept="default"),
        lambda site: site.change_policy(kinds="label-node"),
        lambda site: site.change_policy(nodes="team=web"),
        lambda site: site.change_policy(nodes_per_hour="0"),
        lambda site: site.change_policy(pods_per_hour="1"),
        lambda site: site.change_policy(hours="fri 13:00-14:00"),
        lambda site: site.change_policy(drain_minutes="0"),
        lambda site: site.change_policy(instruction_keys=SeededSigner(2, "k-2").pinned),
    ],
    ids=[
        "read-only",
        "a policy that cannot be read",
        "uncordoned",
        "its namespace is kept",
        "no such kind",
        "other nodes",
        "no node an hour",
        "fewer pods an hour",
        "other hours",
        "no time",
        "another key",
    ],
)
def test_the_owner_may_take_the_right_back_while_a_node_is_drained(site, happens):
    done: list[bool] = []

    def once() -> None:
        if not done:
            done.append(True)
            happens(site)

    site.clock.meanwhile = once
    asked = site.consolidate()
    site.service.ask(asked)
    site.executor.round()
    assert site.service.results[-1].outcome == "failed"
    assert not site.node("old")["spec"].get("unschedulable")


def test_a_drain_that_takes_too_long_is_undone():
    blocked = fake_clusters.a_budget("web", "web", minAvailable=2)
    site = Site(blocked, **{"drain-minutes": "1"})
    site.patch(f"{fake_clusters.DEPLOYMENTS}/web", {"spec": {"strategy": {"type": "Recreate"}}})
    site.clock.sleep(5)
    assert site.round(site.consolidate()) == "failed"
    assert "timed out" in site.reason
    assert not site.node("old")["spec"].get("unschedulable")
