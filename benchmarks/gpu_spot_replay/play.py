"""One stretch of recorded capacity, played against the simulated EC2 with one program that reacts."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final, override

import yaml

from benchmarks.gpu_spot_replay.traces import Pool, Region
from benchmarks.gpu_spot_replay.training import (
    CHECKPOINT_SECONDS,
    WRITES_SECONDS,
    Member,
    Trainer,
    Training,
)
from plimsoll_batch.domain.names import DEADLINE
from plimsoll_simulation.fake_aws.machines import Machine
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.drill import Drill, read_drill
from plimsoll_simulation.scenario.selectors import Selector
from plimsoll_simulation.scenario.timeline import NoticeEntry

LEAD: Final = timedelta(seconds=60)
"""From time 0 to the first loss."""
SECOND: Final = timedelta(seconds=1)
TOLD_WITHIN: Final = timedelta(seconds=5)
LEAST: Final = 4
"""Instances of a region that hold the workloads."""
CLUSTER: Final = "replay"
POOL: Final = "example.com/pool"
GPU: Final = "nvidia.com/gpu"
SERVE: Final = "Deployment/default/serve"
INTERRUPTION: Final = NoticeEntry(
    at=timedelta(0), notice="spot-interruption", nodes=Selector(capacity="spot")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Who reacts to a notice."""

    name: str
    responder: str
    karpenter: bool = False
    """Whether Karpenter makes and drains the nodes. It makes none for gangs that wait in a queue, so the gangs are plain Jobs."""


CONTENDERS: Final = (
    Contender(name="Plimsoll", responder="plimsoll"),
    Contender(name="plain drain", responder="drain"),
    Contender(name="Karpenter", responder="none", karpenter=True),
    Contender(name="no notice", responder="none"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workloads:
    """What fills all instances of a region, one pod each: a quarter serves, at least two, and gangs of at most four train.

    The nodes are drawn here, and not left to the scheduler: all contenders begin alike, though they make their
    pods in another order.
    """

    serving: Sequence[str]
    """The nodes that serve."""
    gangs: Sequence[Sequence[str]]
    """The nodes of each gang."""

    @classmethod
    def of(cls, region: Region, draw: random.Random) -> Workloads:
        """Return what a region holds."""
        nodes = [
            f"{_group(pool)}-{number + 1}"
            for pool, whole in zip(region.pools, region.whole, strict=True)
            for number in range(whole)
        ]
        draw.shuffle(nodes)
        serving = max(2, len(nodes) // 4)
        members = min(4, len(nodes) - serving)
        begins = range(serving, len(nodes) - members + 1, members)
        return cls(serving=nodes[:serving], gangs=[nodes[at : at + members] for at in begins])

    def bindings(self) -> Mapping[str, Sequence[str]]:
        """Return the nodes of each workload, as a drill names them."""
        gangs = {f"Job/default/{_name(number)}": nodes for number, nodes in enumerate(self.gangs)}
        return {SERVE: self.serving, **gangs}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one stretch came to."""

    lost: int
    """Step-seconds of training; see `Training`."""
    still: int
    half_killed: int
    due: int
    """Pods of gangs of which a node got its notice."""
    told: int
    """Of these, how many had the deadline written on them within 5 s."""
    serving_lost: float
    """Ready-replica-seconds."""
    at_zero: float
    """Seconds without a serving pod."""
    killed: int
    """Serving pods that ended with their instance."""
    on_demand_hours: float


class Replay(Simulation):
    """One stretch.

    Args:
        region: whose pools are played.
        ticks: the counts of its pools from the first loss on.
        contender: who reacts.
        trainer: the program of the gangs.
        seed: draws which instances EC2 takes, start-up times, and the age of the last checkpoints.
    """

    def __init__(
        self,
        region: Region,
        ticks: Sequence[tuple[int, ...]],
        *,
        contender: Contender,
        trainer: Trainer,
        seed: int,
    ) -> None:
        draw = random.Random(f"{seed}/{'+'.join(pool.zone for pool in region.pools)}")
        workloads = Workloads.of(region, draw)
        super().__init__(
            _drill(region, workloads, contender, trainer, LEAD + region.gap * len(ticks)),
            responder=contender.responder,
            seed=seed,
        )
        self._region, self._ticks = region, ticks
        self._gangs = {
            _name(number): Training(
                size=len(nodes),
                trainer=trainer,
                unsaved=draw.randrange(CHECKPOINT_SECONDS),
            )
            for number, nodes in enumerate(workloads.gangs)
        }
        self._due: list[tuple[datetime, frozenset[str]]] = []
        self._told = self._asked = 0

    def outcome(self) -> Outcome:
        """Play it, and return what it came to."""
        report = self.run()
        [serving] = [row for row in report["workloads"] if row["kind"] == "Deployment"]
        [on_demand] = [row for row in report["capacity"] if row["capacity"] == "on-demand"]
        gangs = self._gangs.values()
        return Outcome(
            lost=sum(gang.lost for gang in gangs),
            still=sum(gang.still for gang in gangs),
            half_killed=sum(gang.half_killed for gang in gangs),
            due=self._asked,
            told=self._told,
            serving_lost=serving["ready_replica_seconds_lost"],
            at_zero=serving["seconds_at_zero"],
            killed=serving["pods_killed"],
            on_demand_hours=on_demand["node_hours"],
        )

    @override
    def restless(self) -> list[str]:
        return ["the trace goes on", *super().restless()]

    @override
    def _begin(self, zero: datetime) -> None:
        super()._begin(zero)
        for number, counts in enumerate(self._ticks):
            self.clock.at(
                zero + LEAD + self._region.gap * number, partial(self._has_capacity, counts)
            )
        self.clock.at(zero + SECOND, self._look)

    def _has_capacity(self, counts: tuple[int, ...]) -> None:
        """Let EC2 have so many instances in each pool, and interrupt those that are too many."""
        rig_cluster = self.rig_clusters[CLUSTER]
        taken: list[Machine] = []
        for pool, count in zip(self._region.pools, counts, strict=True):
            group = rig_cluster.fleet.group(_group(pool))
            group.available = count
            staying = [machine for machine in group.alive if machine.terminates is None]
            # Ids are drawn by the seed, so the least are drawn too, and the same for all contenders.
            taken += sorted(staying, key=lambda each: each.id)[: max(0, len(staying) - count)]
        self._await_deadline({machine.node for machine in taken})
        for machine in taken:
            self.timeline.give_notice(INTERRUPTION, rig_cluster, machine)

    def _await_deadline(self, nodes: Collection[str]) -> None:
        """Take note that all pods of the gangs on these nodes are to be told."""
        pods = self._pods()
        gangs = {_gang(pod) for pod in pods if pod["spec"].get("nodeName") in nodes}
        uids = frozenset(
            pod["metadata"]["uid"]
            for pod in pods
            if _gang(pod) in gangs and "deletionTimestamp" not in pod["metadata"]
        )
        self._asked += len(uids)
        self._due.append((self.clock.now() + TOLD_WITHIN, uids))

    def _look(self) -> None:
        """See what runs in this second."""
        now, nodes = self.clock.now(), {m.node for m in self._alive()}
        pods = self._pods()
        told = {pod["metadata"]["uid"] for pod in pods if _is_told(pod)}
        for at, uids in self._due:
            self._told += len(uids & told) if at == now else 0
        for name, gang in self._gangs.items():
            gang.second(
                {
                    pod["metadata"]["uid"]: Member(
                        told=_is_told(pod), stopping="deletionTimestamp" in pod["metadata"]
                    )
                    for pod in pods
                    if _gang(pod) == name
                    and pod["status"].get("phase") == "Running"
                    and pod["spec"].get("nodeName") in nodes
                }
            )
        self.clock.at(now + SECOND, self._look)

    def _alive(self) -> Iterable[Machine]:
        return self.rig_clusters[CLUSTER].fleet.alive()

    def _pods(self) -> Sequence[Mapping[str, Any]]:
        return [pod for pod in self.rig_clusters[CLUSTER].all("pods") if _gang(pod) is not None]


def _group(pool: Pool) -> str:
    return f"spot-{pool.zone}"


def _name(gang: int) -> str:
    return f"gang-{gang}"


def _gang(pod: Mapping[str, Any]) -> str | None:
    found: str | None = pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name")
    return found


def _is_told(pod: Mapping[str, Any]) -> bool:
    return DEADLINE in (pod["metadata"].get("annotations") or {})


# --- The drill ----------------------------------------------------------------------------------


def _drill(
    region: Region,
    workloads: Workloads,
    contender: Contender,
    trainer: Trainer,
    horizon: timedelta,
) -> Drill:
    kind = "karpenter" if contender.karpenter else "eks-nodegroup"
    common = {
        "kind": kind,
        "instanceType": "p3.2xlarge",
        "startup": "100s..140s",
        "allocatable": {"cpu": "7910m", "memory": "55Gi", GPU: "1"},
    }
    groups = [
        {
            **common,
            "name": _group(pool),
            "capacity": "spot",
            "zones": [pool.zone],
            "size": whole,
            "max": whole + len(workloads.serving),
            "labels": {POOL: "spot"},
        }
        for pool, whole in zip(region.pools, region.whole, strict=True)
    ]
    on_demand = {
        **common,
        "name": "on-demand",
        "capacity": "on-demand",
        "zones": [pool.zone for pool in region.pools],
        "size": 0,
        "max": len(workloads.serving),
        "labels": {POOL: "on-demand"},
    }
    cluster = {
        "name": CLUSTER,
        "nodeGroups": [*groups, on_demand],
        "manifests": ["objects.yaml"],
        "observed": {SERVE: _SEEN},
        "bindings": workloads.bindings(),
        **({"otherControllers": ["karpenter"]} if contender.karpenter else _QUEUED),
    }
    drill = {
        "apiVersion": "plimsoll.dev/v1",
        "kind": "Drill",
        "metadata": {"name": "gpu-spot-replay"},
        "spec": {"horizon": f"{horizon.total_seconds():.0f}s", "clusters": [cluster]},
    }
    jobs = [
        _job(_name(number), len(nodes), trainer, queued=not contender.karpenter)
        for number, nodes in enumerate(workloads.gangs)
    ]
    quota = {GPU: {"nominal": sum(map(len, workloads.gangs))}}
    queues = {
        "flavors": [{"name": "spot", "nodeLabels": {POOL: "spot"}}],
        "queues": [
            {
                "name": "training",
                "resourceGroups": [{"flavors": [{"name": "spot", "resources": quota}]}],
            }
        ],
        "freeResources": ["cpu", "memory"],
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, objects in (
            ("drill", [drill]),
            ("queues", [queues]),
            ("objects", [*_serving(len(workloads.serving)), *jobs]),
        ):
            text = yaml.safe_dump_all(objects)
            (Path(folder) / f"{name}.yaml").write_text(text, encoding="utf-8")
        return read_drill(Path(folder) / "drill.yaml")


_SEEN: Final = {"start": {"pods": 20, "p95": "90s"}, "stop": {"pods": 20, "p95": "3s"}}
_QUEUED: Final = {"queues": "queues.yaml", "autoscaler": {"scan": "10s"}}


def _job(name: str, pods: int, trainer: Trainer, *, queued: bool) -> Mapping[str, Any]:
    stop = {"drill.plimsoll.dev/stop": f"{trainer.stops_seconds}s"}
    if not trainer.saves_on_sigterm:
        stop["plimsoll.dev/stop-seconds"] = str(trainer.stops_seconds)
    labels = {"plimsoll.dev/queue": "training", "plimsoll.dev/gang": name} if queued else {}
    notes = {
        "plimsoll.dev/gang-size": str(pods),
        "plimsoll.dev/on-interruption": "tell",
        "plimsoll.dev/checkpoint-seconds": str(CHECKPOINT_SECONDS),
        "plimsoll.dev/checkpoint-takes-seconds": str(WRITES_SECONDS),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels, "annotations": notes if queued else {}},
        "spec": {
            "suspend": queued,
            "parallelism": pods,
            "completions": pods,
            "completionMode": "Indexed",
            "podFailurePolicy": {
                "rules": [
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                ]
            },
            "template": {
                "metadata": {
                    "labels": {"plimsoll.dev/gang": name} if queued else {},
                    "annotations": {"drill.plimsoll.dev/startup": "60s", **stop},
                },
                "spec": {
                    "restartPolicy": "Never",
                    "priorityClassName": "training",
                    "nodeSelector": {POOL: "spot"},
                    "containers": [_container("train")],
                },
            },
        },
    }


def _serving(replicas: int) -> Iterable[Mapping[str, Any]]:
    for name, value in (("serving", 1000), ("training", 0)):
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "Never",  # a gang would lose single pods
        }
    labels = {"app": "serve"}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "serve"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {"drill.plimsoll.dev/startup": "90s"},
                },
                "spec": {"priorityClassName": "serving", "containers": [_container("serve")]},
            },
        },
    }
    yield {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "serve"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
    }


def _container(name: str) -> Mapping[str, Any]:
    return {
        "name": name,
        "image": "registry.example.com/model:1",
        "resources": {"requests": {"cpu": "4", "memory": "32Gi"}, "limits": {GPU: "1"}},
    }
