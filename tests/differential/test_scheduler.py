"""Random pods and nodes: a pod fits by our rules exactly where the real kube-scheduler binds it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import pytest
import yaml
from _pytest.mark import ParameterSet

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.api import KubernetesCluster
from plimsoll.adapters.workers import ThreadWorkers
from plimsoll.domain.errors import Temporary
from plimsoll.domain.observation import Observation
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_simulation.fake_cluster.conditions import condition
from plimsoll_simulation.fake_cluster.edits import look
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.differential.bench import FOREVER
from tests.differential.drawn import SHARED, Case, cluster, pair
from tests.differential.known import LIMITS, comes_late
from tests.differential.scenario import JSON, MERGE, STRATEGIC, Json

pytestmark = pytest.mark.cluster

_MOMENT: Final = timedelta(milliseconds=50)
SETTINGS: Final = Settings(
    pod_startup=_MOMENT, pod_stop=_MOMENT, volume_attach=_MOMENT, volume_detach=_MOMENT
)
GATE: Final = {"name": "differential.plimsoll.dev/not-yet"}
"""Keeps the scheduler from a pod until it was observed as the product sees it."""
PATIENCE: Final = 40.0
AGAIN: Final = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Where a pod fits, as we say, and where the scheduler bound it."""

    case: Case
    fits: frozenset[str]
    preempts: frozenset[str]
    """Nodes on which pods of a lower priority would make way."""
    bound: str
    nominated: str = ""
    """The node on which pods make way for it, as the scheduler says."""
    why: str
    minor: str
    """The scheduler's version."""

    @property
    def agrees(self) -> bool:
        places = self.fits or self.preempts
        if not self.bound:
            return not places or (self.nominated in places and comes_late(self.case, self.minor))
        return self.bound in places or any(limits(self.case) for limits in LIMITS.values())

    def __str__(self) -> str:
        ours = f"{sorted(self.fits)}, by preemption {sorted(self.preempts)}"
        nominated = f"nominates {self.nominated} " if self.nominated else ""
        told = f"{self.case.name}: we say {ours}; the scheduler {nominated}{self.bound or self.why}"
        objects = yaml.safe_dump_all([*self.case.objects, self.case.pod], sort_keys=False)
        return f"{told}\n{objects}"


class Rig:
    """A real control plane to which cases are put, many at a time."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._api = plane.transport(connections=32)
        self._threads = ThreadPoolExecutor(16)
        self._workers = ThreadWorkers(16)
        self._create(SHARED)

    def close(self) -> None:
        self._threads.shutdown()
        self._workers.close()

    def verdicts(self, cases: Sequence[Case]) -> list[Verdict]:
        """Ask both about each case, on what is left of a cluster that had others before."""
        self._clear()
        self._prepare(cases)
        waiting = [_waiting(case) for case in cases]
        self._create(waiting)
        self._until(lambda: self._claims_settled(cases), "ephemeral claims are made")
        cluster = KubernetesCluster(self._api, "drawn", SystemClock(), workers=self._workers)
        ours = list(_ours(cluster.observe(), cases, self._plane.version))
        self._each(cases, self._open)
        return self._decided(ours)

    def _prepare(self, cases: Sequence[Case]) -> None:
        by_kind: dict[str, list[Json]] = {}
        for obj in (obj for case in cases for obj in case.objects):
            by_kind.setdefault(obj["kind"], []).append(obj)
        pods = by_kind.pop("Pod", [])
        self._create(by_kind.pop("Namespace"))
        nodes = by_kind.pop("Node")
        for kind in sorted(by_kind, reverse=True):  # volumes come after their claims, or at once
            self._create(by_kind[kind])
        self._plane.join(*nodes)  # while claims are bound
        self._create([{k: v for k, v in pod.items() if k != "status"} for pod in pods])
        self._until(lambda: all(map(_started, self._pods().values())), "pods are started")
        self._until(lambda: self._claims_settled(cases), "claims are bound")
        self._each(pods, self._alter)

    def _claims_settled(self, cases: Sequence[Case]) -> bool:
        listed = self._get("/api/v1/persistentvolumeclaims")
        there = {(c["metadata"]["namespace"], c["metadata"]["name"]): c for c in listed}
        for case in cases:
            for obj in case.objects:
                if obj["kind"] == "PersistentVolumeClaim":
                    claim = there[f"{case.name}-a", obj["metadata"]["name"]]
                    volume = look(claim, "spec", "volumeName", default="")
                    if volume and "nothing" not in volume and claim["status"]["phase"] != "Bound":
                        return False
        return all(
            (p["metadata"]["namespace"], f"{p['metadata']['name']}-{v['name']}") in there
            for p in self._pods().values()
            for v in p["spec"].get("volumes", ())
            if "ephemeral" in v
        )

    def _alter(self, pod: Json) -> None:
        path = f"{_path(pod)}/{pod['metadata']['name']}"
        if "status" in pod:
            body = {"status": pod["status"]}
            self._call("PATCH", f"{path}/status", body, STRATEGIC)
        if pod["metadata"]["annotations"]["drill.plimsoll.dev/stop"] == FOREVER:
            self._call("DELETE", path, {"gracePeriodSeconds": 3600})

    def _open(self, case: Case) -> None:
        gates = case.pod["spec"].get("schedulingGates", [])
        path = f"{_path(case.pod)}/{case.pod['metadata']['name']}"
        self._call("PATCH", path, {"spec": {"schedulingGates": gates}}, MERGE)

    def _decided(self, ours: Sequence[Verdict]) -> list[Verdict]:
        """Wait until the scheduler has looked at every pod, and a while longer where it may look again."""
        found: list[Verdict] = []
        end, last = time.monotonic() + PATIENCE, 0.0
        while time.monotonic() < end:
            pods = self._pods()
            found = [_with_answer(each, pods[f"{each.case.name}-a", "waits"]) for each in ours]
            looked = all(each.bound or each.why for each in found)
            if looked and not last:
                last = time.monotonic() + AGAIN
            if looked and (all(each.agrees for each in found) or time.monotonic() > last):
                return found
            time.sleep(0.3)
        return found

    def _clear(self) -> None:
        """Take away all pods and nodes."""
        at_once = {"gracePeriodSeconds": 0}
        spaces = {space for space, _ in self._pods()}
        self._each(
            [*spaces],
            lambda space: self._call("DELETE", f"/api/v1/namespaces/{space}/pods", at_once),
        )
        self._call("DELETE", "/api/v1/nodes")

    def _pods(self) -> dict[tuple[str, str], Json]:
        pods = self._get("/api/v1/pods")
        return {(p["metadata"]["namespace"], p["metadata"]["name"]): p for p in pods}

    def _get(self, path: str) -> list[Json]:
        items: list[Json] = self._call("GET", path)["items"]
        return items

    def _create(self, objects: Sequence[Json]) -> None:
        self._each(objects, lambda obj: self._call("POST", _path(obj), obj))

    def _each[T](self, of: Sequence[T], act: Callable[[T], object]) -> None:
        list(self._threads.map(act, of))

    def _call(self, method: str, path: str, body: Any = None, kind: str = JSON) -> Json:
        """Send a request, again where the answer is late: then the first may have been carried out."""
        late, end = False, time.monotonic() + PATIENCE
        while True:
            try:
                answer = self._api.call(method, path, body=body, content_type=kind)
            except Temporary:
                late = True
                assert time.monotonic() < end, f"no answer to {method} {path}"
                continue
            done = answer.status < 300 or (late and answer.status in {404, 409})
            assert done, f"{answer.body['message']}\n{yaml.safe_dump(body)}"
            found: Json = answer.body
            return found

    def _until(self, holds: Callable[[], bool], otherwise: str) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, f"not so in time: {otherwise}"
            time.sleep(0.3)


def _waiting(case: Case) -> Json:
    spec = case.pod["spec"]
    gates = [GATE, *spec.get("schedulingGates", [])]
    return {**case.pod, "spec": {**spec, "schedulingGates": gates}}


def _started(pod: Json) -> bool:
    """Whether a pod is as it stays; with volumes that takes long, and nobody asks."""
    phase: str = pod["status"]["phase"]
    if "drill.plimsoll.dev/run" in pod["metadata"]["annotations"]:
        return phase == "Succeeded"
    return phase == "Running" or "volumes" in pod["spec"] or pod["metadata"]["name"] == "waits"


def _path(obj: Json) -> str:
    plural = obj["kind"].lower() + ("es" if obj["kind"].endswith("s") else "s")
    space = obj["metadata"].get("namespace")
    group = obj["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    return f"{root}/namespaces/{space}/{plural}" if space else f"{root}/{plural}"


def _ours(seen: Observation, cases: Sequence[Case], minor: str) -> Iterator[Verdict]:
    snapshot = ClusterSnapshot(seen.nodes, seen.pods, seen.claims)
    waiting = {pod.namespace: pod for pod in seen.pods if pod.name == "waits"}
    for case in cases:
        gated = "schedulingGates" in case.pod["spec"]
        pod = replace(waiting[f"{case.name}-a"], gated=gated)
        nodes = [snapshot.nodes[node["metadata"]["name"]] for node in case.nodes]
        fits = {n.name for n in nodes if pod.pending and snapshot.why_not(pod, n) is None}
        assert not pod.pending or fits == {node.name for node in snapshot.candidates(pod)}, (
            case.name
        )
        preempts = {
            node.name
            for node in nodes
            if pod.pending and pod.preempts
            if (lower := [p for p in snapshot.on(node.name) if p.priority < pod.priority])
            if snapshot.must_leave(pod, node, lower) is not None
        }
        yield Verdict(
            case=case,
            fits=frozenset(fits),
            preempts=frozenset(preempts),
            bound="",
            why="" if pod.pending else "leaves it alone",
            minor=minor,
        )


def _with_answer(ours: Verdict, pod: Json) -> Verdict:
    bound = look(pod, "spec", "nodeName", default="")
    told = condition(pod, "PodScheduled") or {}
    why = told.get("message", "") if told.get("reason") == "Unschedulable" else ours.why
    nominated = look(pod, "status", "nominatedNodeName", default="")
    if nominated:
        why = ""  # it waits for its victims
    return replace(ours, bound=bound, nominated=nominated, why=why)


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with ControlPlane(settings=SETTINGS) as plane:
        rig = Rig(plane)
        yield rig
        rig.close()


def _seeds(batch: int, count: int, *, brief: int) -> list[ParameterSet]:
    """Return seeds in batches, of which all but the first few take long.

    The scheduler tries the pods of high priority first, and again whenever others come or go: of more at once the last
    ones wait for minutes on a busy machine.
    """
    return [
        pytest.param(
            range(first, first + batch),
            id=f"{first}-{first + batch - 1}",
            marks=() if first < brief else pytest.mark.long,
        )
        for first in range(0, count, batch)
    ]


def _check(verdicts: Sequence[Verdict]) -> None:
    wrong = [each for each in verdicts if not each.agrees]
    harm_first = sorted(wrong, key=lambda each: bool(each.bound))
    assert not wrong, "\n\n".join(map(str, harm_first))


@pytest.mark.parametrize("seeds", _seeds(100, 2000, brief=100))
def test_a_pod_fits_on_a_node_exactly_where_the_scheduler_binds_it(rig: Rig, seeds: range):
    _check(rig.verdicts([pair(seed) for seed in seeds]))


@pytest.mark.parametrize("seeds", _seeds(20, 200, brief=20))
def test_of_a_few_nodes_the_scheduler_takes_one_that_we_call_fit(rig: Rig, seeds: range):
    _check(rig.verdicts([cluster(seed) for seed in seeds]))
