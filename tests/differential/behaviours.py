"""One scenario for each behaviour that docs/hollow.md promises; the page names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.differential.bench import FOREVER, HOST, ZONE, Bench
from tests.differential.scenario import MERGE, STRATEGIC, Json, Scenario

FAMILY = "behaviours"
_UNREADY = {
    "status": {"conditions": [{"type": t, "status": "False"} for t in ("Ready", "ContainersReady")]}
}


def _unready(bench: Bench, pod: str) -> None:
    """Let a pod's readiness probe fail, as its kubelet would say."""
    bench.strategic(bench.path("Pod", pod, "status"), _UNREADY)


def _versions(bench: Bench) -> None:
    config = bench.object("Service", "one", spec={"ports": [{"port": 80}]})
    path = bench.path("Service", "one")
    bench.create(config)
    bench.create(config)
    bench.create(bench.deployment("web", 0))
    bench.settle()
    deployment = bench.path("Deployment", "web")
    same = {"metadata": {"labels": {"app": None}}}
    bench.patch(deployment, same)  # changes nothing, so the version below still holds
    bench.patch(
        deployment,
        {"metadata": {"resourceVersion": "{version deployments web}", "labels": {"a": "b"}}},
    )
    bench.patch(
        deployment,
        {"metadata": {"resourceVersion": "{version deployments web}", "labels": {"a": "c"}}},
    )
    bench.ask("DELETE", path, {"preconditions": {"resourceVersion": "1"}})
    bench.ask("DELETE", path, {"preconditions": {"uid": "another"}})
    bench.patch(deployment, {"metadata": {"uid": "another"}})
    bench.settle()


def _lists(bench: Bench) -> None:
    node = bench.node("n0")
    for number in range(5):
        tier = "front" if number % 2 else "back"
        bench.create(bench.pod(f"pod-{number}", labels={"tier": tier, f"only-{number}": ""}))
    bench.settle()
    pods, names = bench.path("Pod"), ("items.*.metadata.name", "metadata.remainingItemCount")
    for labels in (
        "tier=front",
        "tier!=front",
        "tier in (front,back),only-1",
        "!only-1",
        "tier notin (front)",
        "only-1=",
        "tier in (",
    ):
        bench.ask("GET", pods, show=names, labelSelector=labels)
    for fields in (
        f"spec.nodeName={node}",
        "spec.nodeName=",
        "status.phase!=Running",
        "metadata.name=pod-3,spec.restartPolicy=Always",
        "spec.priority=0",
    ):
        bench.ask("GET", pods, show=names, fieldSelector=fields)
    bench.ask("GET", pods, show=names, limit="2")
    bench.ask("GET", pods, show=names, limit="2", labelSelector="tier=back")
    bench.settle()


def _patches(bench: Bench) -> None:
    node = bench.node("n0", taints=[{"key": "a", "value": "1", "effect": "PreferNoSchedule"}])
    bench.create(bench.deployment("web", 0))
    bench.settle()
    path, taints = bench.path("Node", node), ("spec.taints.*.key",)
    added = {"spec": {"taints": [{"key": "b", "effect": "PreferNoSchedule"}]}}
    bench.patch(path, added, STRATEGIC, show=taints)
    bench.patch(path, {"spec": {"taints": None}}, MERGE, show=taints)
    last = {"op": "add", "path": "/spec/taints/-", "value": {"key": "c", "effect": "NoSchedule"}}
    bench.json_patch(path, last, show=taints)
    conditions = [{"type": "Mine", "status": "True"}]
    bench.strategic(
        f"{path}/status",
        {"status": {"conditions": conditions}},
        show=("spec.taints.*.key",),
    )
    web, containers = bench.path("Deployment", "web"), ("spec.template.spec.containers.*.image",)
    for container in (
        {"name": "side", "image": "two"},
        {"name": "main", "image": "three"},
        {"name": "side", "$patch": "delete"},
    ):
        body = {"spec": {"template": {"spec": {"containers": [container]}}}}
        bench.strategic(web, body, show=containers)
    whole = {"spec": {"template": {"spec": {"containers": [{"name": "x", "image": "four"}]}}}}
    bench.patch(web, whole, MERGE, show=containers)
    bench.json_patch(web, {"op": "test", "path": "/spec/replicas", "value": 9})
    bench.json_patch(web, {"op": "remove", "path": "/spec/none"})
    bench.patch(web, {}, "application/other+json")
    bench.settle()


def _subresources(bench: Bench) -> None:
    bench.create(bench.deployment("web", 0))
    bench.settle()
    web = bench.path("Deployment", "web")
    generation = ("metadata.generation", "spec.replicas")
    bench.patch(web, {"status": {"replicas": 7}}, show=("metadata.generation", "status.replicas"))
    bench.patch(f"{web}/status", {"spec": {"replicas": 7}}, show=generation)
    bench.patch(web, {"metadata": {"labels": {"a": "b"}}}, show=generation)
    bench.patch(web, {"spec": {"minReadySeconds": 1}}, show=generation)
    bench.ask("GET", f"{web}/scale", show=("spec.replicas", "status.selector", "kind"))
    bench.patch(f"{web}/scale", {"spec": {"replicas": 1}}, show=("spec.replicas",))
    bench.patch(f"{web}/scale", {"spec": {"replicas": -1}})
    bench.patch(f"{bench.path('Pod', 'nobody')}/scale", {"spec": {"replicas": 1}})
    bench.settle()


def _owners_of_replicas(bench: Bench) -> None:
    web, show = bench.path("Deployment", "web"), ("managers of replicas",)
    bench.ask("POST", bench.path("Deployment"), bench.deployment("web", 1), show=show)
    more = {"spec": {"replicas": 2}}
    bench.patch(web, more, show=show, fieldManager="tool")
    bench.patch(web, {"metadata": {"labels": {"a": "b"}}}, show=show, fieldManager="other")
    bench.patch(f"{web}/scale", {"spec": {"replicas": 3}}, fieldManager="scaler")
    bench.ask("GET", web, show=show)
    bench.settle()


def _deletion(bench: Bench) -> None:
    bench.node("n0")
    slow = {"stop": FOREVER, "terminationGracePeriodSeconds": 600}
    for name in ("shorter", "longer", "forced"):
        bench.create(bench.pod(name, **slow))
    bench.create(bench.pod("waiting", cpu="64"), bench.pod("quick"))
    bench.settle()
    bench.delete("Pod", "shorter", preconditions={"uid": "{uid pods longer}"})
    bench.delete("Pod", "shorter", preconditions={"uid": "{uid pods shorter}"})
    bench.delete("Pod", "longer", gracePeriodSeconds=300)
    bench.delete("Pod", "forced")
    bench.delete("Pod", "waiting")
    bench.delete("Pod", "quick", dryRun=["All"])
    bench.settle()
    bench.delete("Pod", "shorter", gracePeriodSeconds=200)
    bench.delete("Pod", "longer", gracePeriodSeconds=500)
    bench.delete("Pod", "forced", gracePeriodSeconds=0)
    bench.settle()


def _evictions(bench: Bench) -> None:
    bench.node("n0")
    bench.create(
        bench.deployment("web", 3),
        bench.budget("web", "web", minAvailable=2),
        bench.workload("ReplicaSet", "twice", 2),
        bench.budget("twice-a", "twice", maxUnavailable=1),
        bench.budget("twice-b", "twice", maxUnavailable=1),
        bench.workload("StatefulSet", "sick", 2, podManagementPolicy="Parallel"),
        bench.budget("sick", "sick", minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow"),
        bench.workload("StatefulSet", "ill", 2, podManagementPolicy="Parallel"),
        bench.budget("ill", "ill", minAvailable=2),
        bench.pod("big", cpu="64"),
        bench.budget("big", "big", maxUnavailable=0),
    )
    bench.settle()
    _unready(bench, "sick-0")
    _unready(bench, "ill-0")
    bench.settle()
    bench.evict("nobody")
    bench.settle()
    bench.evict("{pod web 0}")
    bench.evict("{pod web 1}")
    bench.evict("{pod twice 0}")
    bench.evict("sick-0")
    bench.evict("ill-0")
    bench.evict("ill-1")
    bench.evict("big")
    bench.settle()
    bench.evict("{pod web 0}", preconditions={"uid": "another"})
    bench.evict("{pod web 1}", dryRun=["All"])
    bench.settle()
    bench.create(bench.pod("fresh", stop=FOREVER, terminationGracePeriodSeconds=600))
    bench.settle()
    bench.evict("fresh", gracePeriodSeconds=100)
    bench.settle()
    bench.evict("fresh")
    bench.settle()


def _budgets(bench: Bench) -> None:
    bench.node("n0", pods="26")
    rules: tuple[Json, ...] = (
        {"maxUnavailable": 1},
        {"maxUnavailable": "34%"},
        {"minAvailable": 2},
        {"minAvailable": "51%"},
    )
    for number, rule in enumerate(rules):
        web, db = f"web-{number}", f"db-{number}"
        bench.create(bench.deployment(web, 4), bench.budget(web, web, **rule))
        ready: Json = {"podManagementPolicy": "Parallel"}
        bench.create(bench.workload("StatefulSet", db, 3, **ready), bench.budget(db, db, **rule))
    bench.create(bench.pod("bare"), bench.budget("bare", "bare", maxUnavailable=0))
    bench.settle()
    for number in range(len(rules)):
        _unready(bench, f"db-{number}-1")
        bench.scale("Deployment", f"web-{number}", 6)  # one node has no room for all of them
    bench.settle()
    for number in range(len(rules)):
        bench.scale("Deployment", f"web-{number}", 1)
    bench.settle()


def _scheduling(bench: Bench) -> None:
    for number, zone in enumerate("aabbc"):
        taints = [{"key": "spot", "value": "yes", "effect": "NoSchedule"}] if zone == "b" else []
        bench.node(f"n{number}", zone=zone, cpu="1", taints=taints)
    bench.settle()
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector}
    template = bench.template(
        "web",
        cpu="400m",
        topologySpreadConstraints=[{**spread, "nodeTaintsPolicy": "Honor"}],
    )
    bench.create(bench.deployment("web", 6, template))
    bench.settle()
    bench.node("late", zone="c", cpu="1")
    bench.settle()
    tolerations = [{"key": "spot", "operator": "Equal", "value": "yes"}]
    own = {"labelSelector": {"matchLabels": {"app": "lone"}}, "topologyKey": HOST}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [own]}}
    lone = bench.template("lone", cpu="100m", tolerations=tolerations, affinity=apart)
    bench.create(bench.deployment("lone", 8, lone))
    bench.settle()
    bench.cordon(f"{bench.name}-n2")
    bench.delete("Deployment", "lone")
    bench.settle()


def _priorities(bench: Bench) -> None:
    bench.node("n0")
    low = bench.priority("low", 5, globalDefault=True, preemptionPolicy="Never")
    bench.priority("lower", 3, globalDefault=True)
    bench.settle(2)  # admission reads the classes from a cache
    shown = ("spec.priority", "spec.priorityClassName", "spec.preemptionPolicy")
    bench.create(bench.pod("plain"), show=shown)
    bench.create(bench.pod("named", priorityClassName=low), show=shown)
    bench.create(bench.pod("critical", priorityClassName="system-node-critical"), show=shown)
    bench.create(bench.pod("wrong", priorityClassName="nothing"))
    bench.settle()


def _preemption(bench: Bench) -> None:
    low, high = bench.priority("low", 1), bench.priority("high", 1000)
    for number in range(2):
        node = bench.node(f"n{number}", cpu="1")
        app = "guarded" if number else "plain"
        here = {"nodeSelector": {HOST: node}, "priorityClassName": low}
        bench.create(bench.pod(f"{app}-0", app=app, cpu="800m", **here))
    bench.create(bench.budget("guarded", "guarded", maxUnavailable=0))
    bench.settle()
    bench.create(bench.pod("first", cpu="900m", priorityClassName=high))
    bench.settle()
    bench.create(bench.pod("second", cpu="900m", priorityClassName=high))
    bench.settle()
    bench.create(bench.pod("third", cpu="900m", priorityClassName=high))
    bench.settle()


def _scale_in(bench: Bench) -> None:
    full = bench.node("n0", pods="2")
    bench.node("n1", pods="1")
    bench.node("n2", pods="1")
    bench.settle()
    bench.create(bench.deployment("web", 5))
    bench.settle()
    for number in range(4):
        bench.label("Pod", f"{{pod web {1 + number}}}", mark=f"m{number}")
    bench.settle()
    bench.cost("{pod web 1}", 10)
    bench.settle()
    bench.scale("Deployment", "web", 4)  # the one that waits
    bench.settle()
    _unready(bench, f"{{pod web @{bench.name}-n2}}")
    bench.settle()
    bench.scale("Deployment", "web", 3)  # the one that is not Ready
    bench.settle()
    bench.scale("Deployment", "web", 2)  # of equal cost, one that has a neighbour
    bench.settle()
    bench.scale("Deployment", "web", 1)  # the cheaper one
    bench.label("Node", full, seen="yes")
    bench.settle()


def _rollouts(bench: Bench) -> None:
    bench.node("n0")
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    bench.create(
        bench.deployment("web", 4, strategy=rolling, revisionHistoryLimit=1),
        bench.deployment("cold", 3, strategy={"type": "Recreate"}),
    )
    bench.settle()
    bench.roll("Deployment", "web", "two")
    bench.roll("Deployment", "cold", "two")
    bench.settle()
    bench.patch(bench.path("Deployment", "web"), {"spec": {"paused": True}})
    bench.roll("Deployment", "web", "three")
    bench.settle()
    bench.scale("Deployment", "web", 6)
    bench.settle()
    bench.patch(bench.path("Deployment", "web"), {"spec": {"paused": False}})
    bench.settle()


def _stateful(bench: Bench) -> None:
    bench.node("n0")
    slow = bench.template("db", stop="1.5s")
    partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    bench.create(
        bench.workload("StatefulSet", "db", 3, slow),
        bench.workload("StatefulSet", "burst", 3, podManagementPolicy="Parallel"),
        bench.workload("StatefulSet", "parted", 3, updateStrategy=partition),
    )
    bench.settle()
    bench.evict("db-1")
    bench.evict("burst-1")
    bench.settle()
    for name in ("db", "burst", "parted"):
        bench.roll("StatefulSet", name, "two")
    bench.settle()
    bench.evict("parted-0")
    bench.settle()
    bench.scale("StatefulSet", "db", 1)
    bench.scale("StatefulSet", "burst", 5)
    bench.settle()


def _daemons(bench: Bench) -> None:
    cordoned = bench.node("n0", unschedulable=True)
    tainted = bench.node("n1")
    bench.node("n2", taints=[{"key": "spot", "value": "yes", "effect": "NoSchedule"}])
    bench.settle()
    bench.create(bench.workload("DaemonSet", "agent", None))
    bench.settle()
    bench.taint(tainted, "spot=yes:NoSchedule")
    bench.settle()
    bench.roll("DaemonSet", "agent", "two")
    bench.settle()
    bench.taint(tainted)
    bench.cordon(cordoned, on=False)
    bench.settle()


def _jobs(bench: Bench) -> None:
    bench.node("n0")
    long = {"run": "3000s", "restartPolicy": "Never"}
    bench.create(
        bench.job("done", completions=3, parallelism=2),
        bench.job("once", bench.template("once", **long), backoffLimit=0),
        bench.job("again", bench.template("again", **long)),
        bench.job("later", bench.template("later", **long), suspend=True),
    )
    bench.settle(4)
    bench.evict("{pod once 0}")
    bench.evict("{pod again 0}")
    bench.settle(12)
    bench.patch(bench.path("Job", "later"), {"spec": {"suspend": False}})
    bench.settle()


def _autoscalers(bench: Bench) -> None:
    bench.node("n0")
    bench.create(bench.deployment("web", 1))
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    missing = {"metric": {"name": "none"}, "target": {"type": "Value", "value": "1"}}
    spec = {
        "scaleTargetRef": target,
        "minReplicas": 2,
        "maxReplicas": 4,
        "metrics": [{"type": "External", "external": missing}],
    }
    bench.create(bench.object("HorizontalPodAutoscaler", "web", spec=spec))
    bench.settle(17)
    bench.patch(bench.path("HorizontalPodAutoscaler", "web"), {"spec": {"minReplicas": 3}})
    bench.settle(17)
    bench.patch(bench.path("HorizontalPodAutoscaler", "web"), {"spec": {"minReplicas": 1}})
    bench.settle(17)
    bench.scale("Deployment", "web", 9)
    bench.settle(17)
    bench.scale("Deployment", "web", 0)
    bench.settle(17)


def _pods(bench: Bench) -> None:
    bench.node("n0")
    bench.create(
        bench.pod("slow", startup="2s"),
        bench.pod("never", never_ready=True),
        bench.pod("stubborn", stop="60s", terminationGracePeriodSeconds=2),
        bench.pod("ending", run="1s", restartPolicy="Never"),
        bench.pod("starting", startup="500s"),
    )
    bench.settle()
    bench.delete("Pod", "stubborn")
    bench.delete("Pod", "starting")
    bench.delete("Pod", "ending")
    bench.settle(3)


def _nodes(bench: Bench) -> None:
    nodes = [bench.node(f"n{number}") for number in range(3)]
    bench.settle()
    bench.create(bench.deployment("web", 3))
    bench.settle()
    bench.cordon(nodes[0])
    conditions = [{"type": "DiskPressure", "status": "True"}]
    bench.strategic(
        f"{bench.path('Node', nodes[1])}/status", {"status": {"conditions": conditions}}
    )
    bench.settle()
    bench.scale("Deployment", "web", 6)
    bench.settle()
    bench.cordon(nodes[0], on=False)
    bench.settle()


def _no_execute(bench: Bench) -> None:
    node = bench.node("n0")
    taint = {"key": "spot", "operator": "Exists", "effect": "NoExecute"}
    bench.create(
        bench.pod("plain"),
        bench.pod("forever", tolerations=[taint]),
        bench.pod("brief", tolerations=[{**taint, "tolerationSeconds": 4}]),
        bench.pod("patient", tolerations=[{**taint, "tolerationSeconds": 3000}]),
        bench.workload("DaemonSet", "agent", None),
        bench.deployment("web", 2),
    )
    bench.settle()
    bench.taint(node, "spot=doomed:NoExecute")
    bench.settle(6)
    bench.taint(node)
    bench.settle()


def _orphans(bench: Bench) -> None:
    gone = bench.node("gone")
    bench.create(
        bench.deployment("web", 2),
        bench.workload("StatefulSet", "db", 1),
        bench.workload("DaemonSet", "agent", None),
        bench.pod("bare"),
    )
    bench.settle()
    bench.node("left")
    bench.settle()
    bench.ask("DELETE", bench.path("Node", gone))
    bench.settle(5)
    bench.settle(85)


def _volumes(bench: Bench) -> None:
    for number, zone in enumerate("ab"):
        bench.node(f"n{number}", zone=zone)
    bench.settle()
    request = {"resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], **request}}
    bench.create(bench.workload("StatefulSet", "db", 1, volumeClaimTemplates=[claim]))
    bench.settle(8)
    bench.evict("db-0")
    bench.settle(8)
    bench.scale("StatefulSet", "db", 0)
    bench.settle(4)


def _garbage(bench: Bench) -> None:
    bench.node("n0")
    bench.create(
        bench.deployment("web", 2),
        bench.workload("ReplicaSet", "left", 2),
        bench.workload("StatefulSet", "db", 1),
    )
    bench.settle()
    bench.delete("Deployment", "web", propagationPolicy="Background")
    bench.delete("ReplicaSet", "left", propagationPolicy="Orphan")
    bench.delete("StatefulSet", "db")
    bench.settle(2)


BEHAVIOURS: Final[Mapping[str, Callable[[Bench], None]]] = {
    "versions": _versions,
    "lists": _lists,
    "patches": _patches,
    "subresources": _subresources,
    "owners-of-replicas": _owners_of_replicas,
    "deletion": _deletion,
    "evictions": _evictions,
    "budgets": _budgets,
    "scheduling": _scheduling,
    "priorities": _priorities,
    "preemption": _preemption,
    "scale-in": _scale_in,
    "rollouts": _rollouts,
    "stateful-sets": _stateful,
    "daemons": _daemons,
    "jobs": _jobs,
    "autoscalers": _autoscalers,
    "pods": _pods,
    "nodes": _nodes,
    "no-execute": _no_execute,
    "orphans": _orphans,
    "volumes": _volumes,
    "garbage": _garbage,
}
_ALONE = frozenset({"priorities"})


def scenarios() -> Iterator[Scenario]:
    """Yield every behaviour's scenario."""
    for name, write in BEHAVIOURS.items():
        bench = Bench(f"behaviour-{name}", FAMILY)
        write(bench)
        yield bench.done(alone=name in _ALONE)
