"""The controllers that make pods and take them away, and their budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.differential.bench import Bench
from tests.differential.scenario import Json


def _budgets(bench: Bench) -> None:
    bench.node("n0", pods="60", cpu="16")
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
    waiting = bench.template("big", cpu="64")
    bench.create(bench.deployment("big", 2, waiting), bench.budget("big", "big", minAvailable=1))
    bench.settle()
    for number in range(len(rules)):
        bench.unready(f"db-{number}-1")
        bench.scale("Deployment", f"web-{number}", 6)
    bench.settle()
    for number in range(len(rules)):
        bench.scale("Deployment", f"web-{number}", 1)
    bench.settle()


def _quotas(bench: Bench) -> None:
    bench.node("n0")
    high = bench.priority("high", 1000)
    scope = {"scopeName": "PriorityClass", "operator": "In", "values": [high]}
    bench.create(
        bench.quota("lasting", {"requests.cpu": "350m"}, scopes=["NotTerminating"]),
        bench.quota("small", {"pods": "1"}, scopes=["BestEffort"]),
        bench.quota("urgent", {"pods": "1"}, scopeSelector={"matchExpressions": [scope]}),
    )
    bench.settle(2)
    message = ("message",)
    ends: Json = {"activeDeadlineSeconds": 900}
    bench.create(bench.pod("silent", cpu=""), show=message)
    bench.create(bench.pod("free-0", cpu="", **ends), bench.pod("free-1", cpu="", **ends))
    bench.create(bench.pod("big", cpu="400m", **ends))
    bench.create(bench.pod("urgent-0", priorityClassName=high, **ends))
    bench.create(bench.pod("urgent-1", priorityClassName=high, **ends), show=message)
    bench.settle()
    bench.create(bench.deployment("web", 4))
    bench.settle()
    bench.create(bench.pod("late"), show=message)
    bench.scale("Deployment", "web", 2)
    bench.settle(2)
    bench.create(bench.workload("StatefulSet", "db", 2, podManagementPolicy="Parallel"))
    bench.settle()
    bench.scale("Deployment", "web", 1)
    bench.settle(20)  # a controller tries again
    bench.resize("db-0", "200m", message)
    bench.resize("db-0", "150m", message)


def _sidecars(bench: Bench) -> None:
    bench.node("n0", cpu="1")
    bench.settle()
    for name, policy in (("stays", "Always"), ("passes", None)):
        init: Json = {"name": "init", "image": "one", "resources": {"requests": {"cpu": "500m"}}}
        init |= {"restartPolicy": policy} if policy else {}
        bench.create(bench.pod(name, cpu="100m", initContainers=[init]))
        bench.settle()
    sidecar = [{"name": "side", "image": "one", "restartPolicy": "Always"}]
    ending = bench.template("batch", run="1s", restartPolicy="Never", initContainers=sidecar)
    bench.create(bench.job("batch", ending))
    bench.delete("Pod", "stays")
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
    bench.unready(f"{{pod web @{bench.name}-n2}}")
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


def _stateful_updates(bench: Bench) -> None:
    bench.node("n0")
    two = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    bench.create(
        bench.workload("StatefulSet", "ordered", 3, updateStrategy=two),
        bench.workload("StatefulSet", "two", 4, podManagementPolicy="Parallel", updateStrategy=two),
        bench.workload("StatefulSet", "ill", 3, podManagementPolicy="Parallel"),
        bench.workload("StatefulSet", "by-hand", 2, updateStrategy={"type": "OnDelete"}),
    )
    bench.settle()
    for ill in ("ill-0", "ill-1"):
        bench.unready(ill)
    bench.roll("StatefulSet", "by-hand", "two")
    bench.settle()
    stuck = {"metadata": {"annotations": {"drill.plimsoll.dev/never-ready": "true"}}}
    for name in ("ordered", "two", "ill"):
        bench.strategic(bench.path("StatefulSet", name), {"spec": {"template": stuck}})
    for made_anew in ("by-hand-0", "by-hand-1"):
        bench.delete("Pod", made_anew)
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


def _job_policies(bench: Bench) -> None:
    bench.node("n0")
    target = [{"type": "DisruptionTarget"}]
    long = {"run": "3000s", "restartPolicy": "Never"}
    for name, action in (("evicted", "Ignore"), ("deleted", "Ignore"), ("counted", "Count")):
        rules = [{"action": action, "onPodConditions": target}]
        template = bench.template(name, **long)
        policy = {"backoffLimit": 0, "podFailurePolicy": {"rules": rules}}
        bench.create(bench.job(name, template, **policy))
    bench.settle(4)
    bench.evict("{pod evicted 0}")
    bench.delete("Pod", "{pod deleted 0}")
    bench.evict("{pod counted 0}")
    bench.settle(12)


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


BEHAVIOURS: Final[Mapping[str, Callable[[Bench], None]]] = {
    "budgets": _budgets,
    "quotas": _quotas,
    "sidecars": _sidecars,
    "scale-in": _scale_in,
    "rollouts": _rollouts,
    "stateful-sets": _stateful,
    "stateful-updates": _stateful_updates,
    "daemons": _daemons,
    "jobs": _jobs,
    "job-policies": _job_policies,
    "autoscalers": _autoscalers,
}
