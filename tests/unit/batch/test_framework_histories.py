"""Drawn histories of one object of a framework: whatever happens to it, its planner and its rival, it runs whole or not at all."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from plimsoll_batch.domain.frameworks import at
from tests.support.fake_clusters import Json
from tests.support.framework_operators import (
    FLAVORS,
    JOBSETS,
    PYTORCH,
    Operators,
    a_job_set,
    a_pytorch_job,
)
from tests.support.properties import drawn
from tests.support.queue_scenes import JOBS, KilledError, Scene, a_job, record

NODES = 4
"""In each pool, with one core each: as much as the quota of each flavor."""
ROLES = {
    "PyTorchJob": ("spec", "pytorchReplicaSpecs"),
    "JobSet": ("spec", "replicatedJobs"),
}
EVENTS = st.one_of(
    st.sampled_from(
        [
            "plan",
            "plan twice",
            "operate",
            "rival",
            "rival goes",
            "status",
            "cordon",
            "uncordon",
            "run",
        ]
    ).map(lambda word: (word, 0)),
    st.tuples(st.sampled_from(["dies before", "dies after"]), st.integers(0, 4)),
)
URGENT = {"plimsoll.dev/priority": "10"}


class History:
    """One object in a queue of two flavors, and all that befalls it."""

    def __init__(self, kind: str) -> None:
        self.scene = Scene(nodes=0, queues=FLAVORS, pod_stop=1)
        for pool in ("a", "b"):
            self.scene.play.nodes(*(f"{pool}{n}" for n in range(NODES)), cpu="1", pool=pool)
        self.operators = Operators(self.scene)
        self.kind = kind
        self.switch: tuple[str, ...] = ("spec", "suspend")
        if kind == "PyTorchJob":
            self.path, made = PYTORCH, a_pytorch_job("train")
            self.switch = ("spec", "runPolicy", "suspend")
        else:
            self.path, made = JOBSETS, a_job_set("train")
        self.scene.submit(made)
        self.created: Json = deepcopy(self.scene.play.get(f"{self.path}/train"))

    def there(self) -> Json | None:
        found = self.scene.play.call("GET", f"{self.path}/train")
        return found.body if found.status == 200 else None

    def pods(self) -> list[Json]:
        return [
            pod
            for pod in self.scene.play.cluster.store.all("pods")
            if pod["metadata"]["name"].startswith("train-")
            and pod["status"]["phase"] in {"Pending", "Running"}
        ]

    def befall(self, event: str, number: int) -> None:
        match event:
            case "plan":
                self.scene.run(0.1)
            case "plan twice":
                self.scene.run(0)
                self.scene.run(0)
            case "operate":
                self.operators.act(0.5)
            case "run":
                self.goes_on(3)
            case "rival":
                self.scene.play.call("POST", JOBS, a_job("urgent", NODES, annotations=URGENT))
                self.scene.clock.sleep(0.2)
            case "rival goes":
                self.scene.play.call(
                    "DELETE", f"{JOBS}/urgent", {"propagationPolicy": "Background"}
                )
                self.scene.clock.sleep(0.2)
            case "status":
                self.scene.wire.before = self._status_once
                self.scene.run(0.1)
            case "cordon" | "uncordon":
                body = {"spec": {"unschedulable": event == "cordon" or None}}
                self.scene.play.patch("/api/v1/nodes/b0", body)
            case _:
                self._dies(number, after=event == "dies after")
        self.scene.wire.before = self.scene.wire.after = lambda *_: None
        self.holds()

    def goes_on(self, seconds: int) -> None:
        for _ in range(seconds):
            self.scene.run(0.5)
            self.operators.act(0.5)

    def holds(self) -> None:
        """What is true at every moment."""
        obj, pods = self.there(), self.pods()
        stays = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        pools = {pod["spec"].get("nodeSelector", {}).get("pool") for pod in stays}
        assert len(pools) <= 1
        assert pools <= {"a", "b"}
        bound = Counter(
            pod["spec"]["nodeName"]
            for pod in self.scene.play.cluster.store.all("pods")
            if pod["spec"].get("nodeName") and pod["status"]["phase"] in {"Pending", "Running"}
        )
        assert all(count == 1 for count in bound.values())
        if obj is not None:
            assert at(obj, self.switch) or record(obj)["started"]
            assert without_steering(obj, self.kind) == without_steering(self.created, self.kind)

    def _status_once(self, method: str, path: str, _: object) -> None:
        """Let its operator write its status between the read and the write of the planner."""
        if path.startswith(f"{self.path}/train") and method == "PATCH":
            self.scene.wire.before = lambda *_: None
            self.scene.play.patch(f"{self.path}/train/status", {"status": {"seen": "again"}})

    def _dies(self, number: int, *, after: bool) -> None:
        left = number

        def kill(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise KilledError

        setattr(self.scene.wire, "after" if after else "before", kill)
        self.scene.run(0.5)


def without_steering(obj: Json, kind: str) -> Json:
    """What the planner must never change of an object."""
    spec = deepcopy(obj["spec"])
    (spec["runPolicy"] if kind == "PyTorchJob" else spec).pop("suspend")
    roles = at({"spec": spec}, ROLES[kind])
    for role in roles.values() if isinstance(roles, dict) else roles:
        template = (
            role["template"] if kind == "PyTorchJob" else role["template"]["spec"]["template"]
        )
        for field in ("nodeSelector", "tolerations"):
            template["spec"].pop(field, None)
    found: Json = {"spec": spec, "labels": obj["metadata"]["labels"]}
    return found


@pytest.mark.parametrize("kind", ROLES)
@drawn(8, many=1000, suppress_health_check=[HealthCheck.too_slow])
@given(events=st.lists(EVENTS, max_size=12), ends=st.sampled_from(["runs on", "is deleted"]))
def test_whatever_befalls_an_object_it_runs_whole_in_one_flavor_or_not_at_all(kind, events, ends):
    history = History(kind)
    for event, number in events:
        history.befall(event, number)
    if ends == "is deleted":
        answer = history.scene.play.call("DELETE", f"{history.path}/train")
        assert answer.status == 200
        history.goes_on(6)
        assert history.there() is None
        assert history.pods() == []
        return
    history.befall("uncordon", 0)
    history.befall("rival goes", 0)
    history.goes_on(20)
    history.holds()
    assert [pod["status"]["phase"] for pod in history.pods()] == ["Running"] * 3
