"""`kubectl drain` and `plimsoll drain` side by side, on a real control plane, on the same Deployments.

For each case and each tool a node holds all pods of a Deployment, a second node has room for them, and
the tool drains the first. Seconds at zero are those in which the Service's EndpointSlices had no ready
address, from the start of the tool until it has ended and the Deployment is whole again. Run it from
the repository; the programs are built once:

    .venv/bin/python -m benchmarks.drains [--runs 3] [--timeout 60]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from rich.console import Console

from benchmarks.output import machine, spread, table
from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll_simulation.fake_cluster.resources import path_of
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.controlplane import ControlPlane, binaries
from plimsoll_testbed.rigs.controlplane.modules import NEWEST, Module
from plimsoll_testbed.rigs.endpoints import ReadyEndpoints

type Json = dict[str, Any]

CLOCK: Final = SystemClock()
STARTUP: Final = timedelta(seconds=5)
STOP: Final = timedelta(seconds=3)
CREATED: Final = 201
WHOLE_SECONDS: Final = 60.0
POLL_SECONDS: Final = 0.1
LABELS: Final = {"app": "web"}
PLIMSOLL: Final = (sys.executable, "-c", "from plimsoll_cli import main; main()", "drain")
REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget"
"""What kubectl says, each time that it tries."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A Deployment, and what stands beside it."""

    name: str
    replicas: int
    budget: Mapping[str, Any] | None = None
    autoscaler: bool = False


CASES: Final = (
    Case(name="one replica, minAvailable 1", replicas=1, budget={"minAvailable": 1}),
    Case(name="three, maxUnavailable 0", replicas=3, budget={"maxUnavailable": 0}),
    Case(name="autoscaler of one, no budget", replicas=1, autoscaler=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one drain came to."""

    seconds: float
    at_zero: float
    status: int
    refusals: int

    @property
    def end(self) -> str:
        """In words."""
        return "drained" if self.status == 0 else "gave up"


def manifests(case: Case, namespace: str) -> Sequence[Json]:
    """Return what a case holds."""
    meta = {"name": "web", "namespace": namespace}
    container = {"name": "app", "image": "example/app", "resources": {"requests": {"cpu": "500m"}}}
    selector = {"matchLabels": LABELS}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    found: list[tuple[str, str, Json]] = [
        (
            "apps/v1",
            "Deployment",
            {"replicas": case.replicas, "selector": selector, "template": template},
        ),
        ("v1", "Service", {"selector": LABELS, "ports": [{"port": 80}]}),
    ]
    if case.budget is not None:
        found.append(("policy/v1", "PodDisruptionBudget", {"selector": selector, **case.budget}))
    if case.autoscaler:
        limits = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 5}
        metrics = [{"type": "Resource", "resource": cpu}]
        found.append(("autoscaling/v2", "HorizontalPodAutoscaler", {**limits, "metrics": metrics}))
    return [
        {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec}
        for version, kind, spec in found
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One control plane, on which drains are measured one after the other."""

    plane: ControlPlane
    api: ClientTransport
    endpoints: ReadyEndpoints
    timeout: int

    def measure(self, case: Case, tool: Sequence[str]) -> Outcome:
        """Drain a node that holds the case."""
        namespace = f"bench-{next(_numbers)}"
        old, new = f"{namespace}-old", f"{namespace}-new"
        service = namespace, "web"

        def whole() -> bool:
            return len(self.endpoints.ready(service)) == case.replicas

        self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        self.plane.join(node(old))
        for manifest in manifests(case, namespace):
            self._create(manifest)
        until(whole)
        self.plane.join(node(new))
        began = CLOCK.now()
        done = subprocess.run(
            [*tool, old, f"--timeout={self.timeout}s", f"--kubeconfig={self.plane.kubeconfig()}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        ended = CLOCK.now()
        until(whole)
        at_zero = self.endpoints.seconds_below(1, service, began, CLOCK.now())
        self.api.call("DELETE", f"/api/v1/namespaces/{namespace}")
        for name in (old, new):
            self.plane.vanish(name)
            self.api.call("DELETE", f"/api/v1/nodes/{name}")
        return Outcome(
            seconds=(ended - began).total_seconds(),
            at_zero=at_zero,
            status=done.returncode,
            refusals=done.stdout.count(REFUSED),
        )

    def _create(self, manifest: Json) -> None:
        path, _ = path_of(manifest)
        answer = self.api.call("POST", path, body=manifest, content_type="application/json")
        assert answer.status == CREATED, answer.body


def node(name: str) -> Json:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "58"}},
    }


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WHOLE_SECONDS
    while not holds():
        assert time.monotonic() < end, f"not so after {WHOLE_SECONDS:.0f} s"
        time.sleep(POLL_SECONDS)


def row(case: str, tool: str, outcomes: Sequence[Outcome]) -> Sequence[str]:
    """Return the cells of one tool: medians, with the fastest and the slowest run."""
    ends = sorted({outcome.end for outcome in outcomes})
    refusals = statistics.median(outcome.refusals for outcome in outcomes)
    return [
        case,
        tool,
        ranged([outcome.at_zero for outcome in outcomes]),
        ranged([outcome.seconds for outcome in outcomes]),
        " or ".join(ends) + (f"; {refusals:.0f} refusals" if refusals else ""),
    ]


def ranged(seconds: Sequence[float]) -> str:
    return "{} s ({}-{})".format(*spread(seconds, "{:.1f}"))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drains")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=60, help="seconds until a drain gives up")
    chosen = parser.parse_args()
    on = machine()
    kubectl = [
        str(binaries.find(NEWEST)["kubectl"]),
        "drain",
        "--ignore-daemonsets",
        "--delete-emptydir-data",
    ]
    tools = {"kubectl drain": kubectl, "plimsoll drain": list(PLIMSOLL)}
    shown = table("", "Deployment", "tool", "at zero", "took", "end")
    settings = Settings(pod_startup=STARTUP, pod_stop=STOP)
    with ControlPlane(settings=settings) as plane, ReadyEndpoints(plane.kubeconfig()) as endpoints:
        bench = Bench(
            plane=plane, api=plane.transport(), endpoints=endpoints, timeout=chosen.timeout
        )
        for case, (name, tool) in itertools.product(CASES, tools.items()):
            outcomes = [bench.measure(case, tool) for _ in range(chosen.runs)]
            shown.add_row(*row(case.name, name, outcomes))
    shown.caption = (
        f"a pod takes {STARTUP.seconds} s to be Ready, {STOP.seconds} s to stop; a drain gives up after "
        f"{chosen.timeout} s; {chosen.runs} runs"
    )
    console = Console(width=130)
    console.print(f"{on}, {Module.of(NEWEST).label}")
    console.print(shown)


if __name__ == "__main__":
    main()
