"""Random days of the queues while nodes are reclaimed and the API server, SQS and planners are at fault."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.adapters.kubernetes import Response
from plimsoll.domain.errors import Temporary
from tests.support.properties import drawn
from tests.support.queue_scenes import a_training
from tests.unit.batch.services.test_queues import reclaim
from tests.unit.batch.test_queue_storms import NODES, ROLES, Storm, judge

NOTICE_SECONDS = 120
STOP_SECONDS = 2
BOUND_SECONDS = 1800
"""Until the last of the gangs of a day has completed, from when nothing fails any more. Twelve gangs of twenty
seconds that run one after the other take five minutes; one that failed to start in time again and again is
tried again after ten minutes at the latest."""


class StormAtFault(Storm):
    """Gangs end, and some leave whole; what the planner calls may fail, and be lost on either way."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.share = self.chance.choice((0.05, 0.2, 0.5))
        """Of the planner's writes that fail while they do; of its reads a tenth of that."""
        self.failing = False
        self.faults: Counter[str] = Counter()
        self.missing: set[str] = set()
        """Gangs of which a Job was deleted."""
        self.whole: set[str] = set()
        """Gangs that leave whole."""
        self.ran_well = 0.0
        """When a planner last ran for some cycles while nothing failed."""
        self._call = self.scene.wire.call
        self.scene.wire.call = self.call  # type: ignore[method-assign] # it fails

    def befall(self) -> None:
        match self.chance.choice(("notice", "faults", "faults", "faults", "lost", "twice", "calm")):
            case "notice":
                self.notice()
            case "faults":
                self.failing = True
            case "lost":  # every wake-up of some time: SQS was throttled, or they came late
                self.pass_time(self.chance.choice((10, 60)))
            case "twice":
                self.scene.wire.after = self.twin
            case _:
                pass
        super().befall()
        self.failing = False

    def submit(self) -> None:
        name = f"g{len(self.gangs)}"
        queue = self.gangs[name] = self.chance.choice("ab")
        notes = {
            "plimsoll.dev/priority": str(self.chance.randrange(3)),
            "plimsoll.dev/start-seconds": "20",
        }
        if self.chance.random() < 0.5:
            self.whole.add(name)
            notes["plimsoll.dev/on-interruption"] = "suspend"
        workers = self.chance.randint(1, 4)
        self.scene.submit(
            *a_training(name, ps=1, workers=workers, queue=queue, run="20s", annotations=notes)
        )

    def delete(self) -> None:
        path = self.path(self.chance.choice(ROLES))
        self.missing.add(path.rpartition("/")[2].partition("-")[0])
        self.scene.play.call("DELETE", path)

    def call(self, method: str, path: str, **more: Any) -> Response:
        """Make a call of the planner; it may be refused, or its answer may be lost."""
        share = self.share / 10 if method == "GET" else self.share
        if not self.failing or self.chance.random() >= share:
            return self._call(method, path, **more)
        fault = self.chance.choice(("409", "429", "500", "unsent", "unheard"))
        if fault == "409" and method == "GET":
            fault = "500"
        self.faults[fault] += 1
        if fault in {"409", "429", "500"}:
            said = {"kind": "Status", "code": int(fault), "message": "at fault"}
            return Response(status=int(fault), body=said)
        if fault == "unheard":
            self._call(method, path, **more)
        raise Temporary(f"{method} {path}: {fault}")

    def twin(self, *_: object) -> None:
        """Let a second wake-up start a planner in the middle of the first one's work."""
        self.scene.wire.after = lambda *_: None
        self.faults["twin"] += 1
        assert self.scene.service().run(holder="twin", seconds=1) == 0

    def notice(self) -> None:
        """Reclaim a node: two minutes later it is gone, and another comes."""
        nodes = [node["metadata"]["name"] for node in self.scene.play.cluster.store.all("nodes")]
        name = self.chance.choice(sorted(self.leaving()) or sorted(nodes))
        self.scene.wire.dead = False  # it is another program that writes
        reclaim(self.scene, name)
        self.faults["notice"] += 1
        noticed = self.scene.clock.now().timestamp()
        self.run_for(self.chance.choice((5, 30)))
        self.pass_time(noticed + NOTICE_SECONDS - self.scene.clock.now().timestamp())
        if self.ran_well > noticed + STOP_SECONDS:
            assert name not in self.leaving()
        self.scene.play.cluster.vanish(name, now=self.scene.clock.now())
        self.scene.play.nodes(f"{name}-{len(self.gangs)}-{self.faults['notice']}", cpu="1")

    def leaving(self) -> set[str]:
        """Nodes on which a gang runs that leaves whole."""
        return {
            pod["spec"]["nodeName"]
            for pod in self.scene.play.cluster.store.all("pods")
            if pod["status"]["phase"] == "Running"
            and pod["metadata"]["labels"]["batch.kubernetes.io/job-name"].partition("-")[0]
            in self.whole
        }

    def run_for(self, seconds: float) -> None:
        """Run a planner, as a wake-up does."""
        try:
            if self.scene.run(seconds) > 0 and not self.failing:
                self.ran_well = self.scene.clock.now().timestamp()
        except Temporary:  # the wake-up failed; the next one is another run
            self.faults["run failed"] += 1

    def calm_down(self) -> float:
        """Let everything heal, and planners run each minute; return seconds until no whole gang is left."""
        for name in sorted(self.cordoned):
            self.node_back(name)
        for name in self.gangs:
            for role in ROLES:
                path = f"/apis/batch/v1/namespaces/lab/jobs/{name}-{role}"
                note = {"metadata": {"annotations": {"plimsoll.dev/hold": None}}}
                self.scene.play.call("PATCH", path, note)
        began = self.scene.clock.now().timestamp()
        while self.scene.clock.now().timestamp() - began < BOUND_SECONDS and self.left():
            self.run_for(60)
        return self.scene.clock.now().timestamp() - began

    def left(self) -> set[str]:
        """Gangs that have all their Jobs, and are not complete."""
        return {*self.unfinished()} - self.missing

    def node_back(self, name: str) -> None:
        body = {"spec": {"unschedulable": False}}
        self.scene.play.call("PATCH", f"/api/v1/nodes/{name}", body)

    def node(self) -> None:
        """Cordon a node, or let one back; those that came later too."""
        name = f"n{self.chance.randrange(NODES)}"
        if self.scene.play.call("GET", f"/api/v1/nodes/{name}").status == 200:
            self.cordoned ^= {name}
            body = {"spec": {"unschedulable": name in self.cordoned}}
            self.scene.play.patch(f"/api/v1/nodes/{name}", body)

    def pass_time(self, seconds: float) -> None:
        self.scene.clock.sleep(max(0.0, seconds))


@drawn(8, many=20)
@given(st.integers(min_value=0, max_value=10**6))
@example(1)
def test_no_quota_is_exceeded_no_gang_is_left_in_pieces_and_none_starves(seed):
    storm = StormAtFault(seed)
    for _ in range(10):
        storm.befall()
        judge(storm)
    seconds = storm.calm_down()
    judge(storm)
    assert storm.half_admitted() == []
    assert not storm.left(), f"{storm.left()} after {seconds} s: {storm.scene.heard.said[-5:]}"


def test_everything_that_may_befall_a_storm_does():
    faults: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for seed in range(12):
        storm = StormAtFault(seed)
        for _ in range(10):
            storm.befall()
        faults += storm.faults
        said.update(f"{m} {f.get('because', '')}" for m, f in storm.scene.heard.said)
    kinds = ("409", "429", "500", "unsent", "unheard", "twin", "notice", "run failed")
    assert all(faults[kind] for kind in kinds), faults
    assert any("is reclaimed" in words and "gang suspended" in words for words in said)
