"""Where pods go, who makes room for them, and what happens on nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.differential.bench import HOST, ZONE, Bench
from tests.differential.scenario import Json


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
    bench.settle(2)  # admission reads the classes from a cache
    bench.priority("lower", 3, globalDefault=True)
    bench.settle(2)
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
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    work = bench.template("work", run="3000s", restartPolicy="Never")
    bench.create(
        bench.job("work", work, backoffLimit=0, podFailurePolicy={"rules": rules}),
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


def _volume_limits(bench: Bench) -> None:
    node = bench.node("n0")
    driver: Json = {"name": "ebs.csi.aws.com", "nodeID": node, "topologyKeys": None}
    driver["allocatable"] = {"count": 2}
    bench.create(bench.object("CSINode", node, spec={"drivers": [driver]}))
    bench.settle(2)
    request = {"resources": {"requests": {"storage": "1Gi"}}}
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], **request}}
    parallel: Json = {"podManagementPolicy": "Parallel", "volumeClaimTemplates": [claim]}
    bench.create(bench.workload("StatefulSet", "db", 3, **parallel))
    bench.settle(4)
    bench.node("n1")
    bench.settle(8)


def _devices(bench: Bench) -> None:
    late, lost = bench.node("n0"), bench.node("n1", room={"example.com/chip": "0"})
    bench.settle()
    for number in range(3):
        pod = bench.pod(f"chip-{number}", requests={"example.com/chip": "1"})
        pod["spec"]["containers"][0]["resources"]["limits"] = {"example.com/chip": "1"}
        bench.create(pod)
    bench.settle()
    bench.devices(late, chip="2")
    bench.settle()
    bench.devices(lost, chip="1")
    bench.settle()
    bench.devices(lost, chip="0")
    bench.settle()


def _resizes(bench: Bench) -> None:
    node = bench.node("n0", cpu="1")
    bench.create(bench.pod("web", cpu="600m"))
    bench.settle()
    bench.create(bench.pod("db", cpu="100m"))
    bench.settle()
    shown = ("spec.containers.*.resources.requests.cpu",)
    bench.resize("web", "800m", shown, image="two")
    bench.settle()
    held = ("status.containerStatuses.*.allocatedResources.cpu", *shown)
    bench.ask("GET", bench.path("Pod", "web"), show=held)
    bench.create(bench.pod("late", cpu="200m"))
    bench.settle()
    bench.resize("web", "500m")
    bench.settle()
    bench.resize("db", "700m")  # which has to wait for room, and counts
    bench.settle()
    bench.ask("GET", bench.path("Pod", "db"), show=held)
    bench.create(bench.pod("more", cpu="90m"))
    bench.settle()
    bench.resize("db", "64")
    bench.settle()
    bench.offer(node, cpu="690m")  # too little for it, however much is free
    bench.settle()
    bench.delete("Pod", "late")
    bench.settle()
    bench.ask("GET", bench.path("Pod", "db"), show=held)
    bench.resize("db", "150m")
    bench.settle()
    bench.delete("Pod", "web")
    bench.settle()
    bench.ask("GET", bench.path("Pod", "db"), show=held)
    bench.resize("nobody", "300m")
    bench.settle()


def _left_alone(bench: Bench) -> None:
    bench.node("n0")
    gates = [{"name": "example.com/a"}, {"name": "example.com/b"}]
    bench.create(
        bench.pod("gated", schedulingGates=gates), bench.pod("foreign", schedulerName="other")
    )
    bench.settle()
    gated = bench.path("Pod", "gated")
    bench.patch(gated, {"spec": {"schedulingGates": gates[:1]}})
    bench.settle()
    bench.patch(gated, {"spec": {"schedulingGates": None}})
    bench.settle()


def _pod_defaults(bench: Bench) -> None:
    bench.node("n0", cpu="1")
    item = {"type": "Container", "default": {"cpu": "300m"}, "min": {"cpu": "60m"}}
    heavy = f"{bench.name}-heavy"
    runtime = bench.object("RuntimeClass", heavy, handler="heavy")
    runtime["overhead"] = {"podFixed": {"cpu": "250m"}}
    bench.create(runtime, bench.object("LimitRange", "bounds", spec={"limits": [item]}))
    bench.settle(2)  # admission reads them from a cache
    shown = ("spec.containers.*.resources.requests", "spec.overhead")
    bench.create(bench.pod("plain", cpu=""), show=shown)
    bench.create(bench.pod("heavy", cpu="200m", runtimeClassName=heavy), show=shown)
    bench.create(bench.pod("big", cpu="600m"))
    bench.create(bench.pod("small", cpu="50m"), show=("message",))
    bench.create(bench.pod("lost", runtimeClassName="nothing"))
    bench.settle()
    bench.create(bench.deployment("web", 2, bench.template("web", cpu="", runtimeClassName=heavy)))
    bench.settle()


BEHAVIOURS: Final[Mapping[str, Callable[[Bench], None]]] = {
    "scheduling": _scheduling,
    "priorities": _priorities,
    "preemption": _preemption,
    "pods": _pods,
    "nodes": _nodes,
    "no-execute": _no_execute,
    "orphans": _orphans,
    "volumes": _volumes,
    "volume-limits": _volume_limits,
    "devices": _devices,
    "resizes": _resizes,
    "left-alone": _left_alone,
    "pod-defaults": _pod_defaults,
}
