"""What the admission policy of `plimsoll install-policy` adds to new pods, told by a ConfigMap.

Both sides have the policy from the start. Pods are created in a dry run, as canaries are, and by
workloads that the scheduler then spreads.
"""

from __future__ import annotations

from random import Random

from plimsoll.domain.kubernetes import CAPACITY_LABELS, FLOORS, INJECT_FLOORS, SPREAD_PREFIX
from tests.differential.bench import ZONE, Bench
from tests.differential.scenario import Json, Scenario

FAMILY = "injections"
COUNT = 20
_SHOW = ("spec.topologySpreadConstraints", "spec.nodeSelector", "spec.affinity")
_WORDS = ("0", "0", "1", "2", "2-1", "3", "3-3", "on-demand", "on-demand", "4", "1-2", "", "spot")


def scenario(seed: int) -> Scenario:
    """Return a namespace that opted in, or not, and the pods that are created in it."""
    chance = Random(f"{FAMILY} {seed}")
    bench = Bench(f"{FAMILY}-{seed:03}", FAMILY)
    for number, capacity in enumerate(("on-demand", "spot", "spot")):
        group = "on-demand" if number == 0 else f"spot-{number}"
        labels = {CAPACITY_LABELS[0]: capacity, f"{SPREAD_PREFIX}2": group}
        labels[f"{SPREAD_PREFIX}3-3"] = "on-demand-1" if number == 0 else group
        bench.node(f"n{number}", labels=labels)
    data = {f"{kind}.{name}": chance.choice(_WORDS) for kind, name in _WORKLOADS}
    floors = bench.object("ConfigMap", FLOORS, data=data)
    bench.create(floors if chance.random() < 0.9 else {**floors, "data": None})
    opted_in = chance.choice(["true", "true", "true", "false"])
    label = {"metadata": {"labels": {INJECT_FLOORS: opted_in}}}
    bench.patch(f"/api/v1/namespaces/{bench.name}", label)
    bench.settle(2)  # the API server hears of the ConfigMap a moment later
    for number in range(6):
        bench.post(bench.path("Pod"), _pod(bench, chance, number), show=_SHOW, dryRun="All")
    bench.settle()
    bench.create(bench.deployment("web", chance.randint(1, 6)))
    bench.settle()
    bench.create(bench.workload("StatefulSet", "db", 2, podManagementPolicy="Parallel"))
    bench.settle()
    return bench.done()


_WORKLOADS = [("deployment", "web"), ("deployment", "a-b"), ("statefulset", "db")]


def _pod(bench: Bench, chance: Random, number: int) -> Json:
    """Return a pod as a controller would create it, or nearly."""
    kind, name = chance.choice(_WORKLOADS)
    stateful = kind == "statefulset"
    revision = chance.choice(["pod-template-hash", "controller-revision-hash"])
    made = "controller-revision-hash" if stateful else "pod-template-hash"
    labels = {chance.choice([made, made, made, revision]): "abc"}
    own = chance.choice([(), (), ("DoNotSchedule", ZONE), ("ScheduleAnyway", f"{SPREAD_PREFIX}1")])
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": own[1],
            "whenUnsatisfiable": own[0],
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
        for own in (own,)
        if own
    ]
    selector = chance.choice([{}, {}, {CAPACITY_LABELS[0]: "spot"}])
    pod = bench.pod(f"canary-{number}", labels=labels, nodeSelector=selector)
    if spread:
        pod["spec"]["topologySpreadConstraints"] = spread
    if chance.random() < 0.3:
        wanted = {"key": "disk", "operator": "Exists"}
        preference = {"weight": 1, "preference": {"matchExpressions": [wanted]}}
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        pod["spec"]["affinity"] = {"nodeAffinity": {preferred: [preference]}}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet" if stateful else "ReplicaSet",
        "name": name if stateful else f"{name}-{chance.choice(['abc', 'abc', 'xyz'])}",
        "uid": "00000000-0000-0000-0000-000000000000",
        "controller": chance.random() < 0.9,
    }
    if chance.random() < 0.9:
        pod["metadata"]["ownerReferences"] = [owner]
    return pod
