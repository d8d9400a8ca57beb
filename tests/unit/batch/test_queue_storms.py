"""Random days of the queues: whatever befalls them, no gang stays half-admitted and no quota is exceeded."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.fake_clusters import Json
from tests.support.properties import drawn
from tests.support.queue_scenes import KilledError, Scene, a_training, record

QUEUES = """
flavors: [{name: any}]
cohorts: [{name: all, order: dominant-resource-share}]
queues:
  - name: a
    cohort: all
    preemption: {withinQueue: LowerPriority, reclaimWithinCohort: Any}
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 6}}}]}]
  - name: b
    cohort: all
    preemption: {withinQueue: LowerPriority, reclaimWithinCohort: Any}
    resourceGroups: [{flavors: [{name: any, resources: {cpu: {nominal: 6, borrowingLimit: 3}}}]}]
"""
NODES = 10
ROLES = ("ps", "workers")


class Storm:
    """Draws what befalls a cluster, and looks at it after each time."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.scene = self.scene_of()
        self.gangs: dict[str, str] = {}
        """Gang -> queue."""
        self.cordoned: set[str] = set()

    def scene_of(self) -> Scene:
        """Draw the cluster and its queues."""
        return Scene(nodes=NODES, queues=QUEUES, pod_stop=2)

    def befall(self) -> None:
        match self.chance.choice(("submit", "submit", "kill", "node", "delete", "hold", "calm")):
            case "submit":
                self.submit()
            case "kill":
                self.submit()
                self.kill(self.chance.randrange(5), after=self.chance.random() < 0.5)
            case "node":
                self.node()
            case "delete" if self.gangs:
                self.delete()
            case "hold" if self.gangs:
                hold = self.chance.choice(("true", None))
                note = {"metadata": {"annotations": {"plimsoll.dev/hold": hold}}}
                self.scene.play.call("PATCH", self.path("ps"), note)
            case _:
                pass
        self.run_for(self.chance.choice((1, 3, 10)))
        self.scene.wire.before = self.scene.wire.after = lambda *_: None

    def run_for(self, seconds: float) -> None:
        """Run a planner, as a wake-up does."""
        self.scene.run(seconds)

    def submit(self) -> None:
        name = f"g{len(self.gangs)}"
        queue = self.gangs[name] = self.chance.choice("ab")
        self.scene.submit(
            *a_training(
                name,
                ps=1,
                workers=self.chance.randint(1, 4),
                queue=queue,
                run=self.chance.choice((None, "20s", "60s")),
                annotations={
                    "plimsoll.dev/priority": str(self.chance.randrange(3)),
                    "plimsoll.dev/start-seconds": "20",
                },
            )
        )

    def path(self, role: str) -> str:
        name = self.chance.choice(sorted(self.gangs))
        return f"/apis/batch/v1/namespaces/lab/jobs/{name}-{role}"

    def kill(self, left: int, *, after: bool) -> None:
        def count(*_: object) -> None:
            nonlocal left
            left -= 1
            if left == -1:
                raise KilledError

        setattr(self.scene.wire, "after" if after else "before", count)

    def node(self) -> None:
        """Cordon a node, or let one back."""
        name = f"n{self.chance.randrange(NODES)}"
        self.cordoned ^= {name}
        cordon = {"spec": {"unschedulable": name in self.cordoned}}
        self.scene.play.patch(f"/api/v1/nodes/{name}", cordon)

    def delete(self) -> None:
        self.scene.play.call("DELETE", self.path(self.chance.choice(ROLES)))

    def settle(self) -> None:
        """Let a planner work that nobody kills, as the schedule wakes it."""
        for _ in range(4):
            self.scene.run(60)

    def unfinished(self) -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for job in self.scene.play.cluster.store.all("jobs"):
            conditions = {
                c["type"] for c in job["status"].get("conditions", ()) if c["status"] == "True"
            }
            if not conditions & {"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"}:
                found.setdefault(job["metadata"]["labels"]["plimsoll.dev/gang"], []).append(job)
        return found

    def half_admitted(self) -> list[str]:
        """Gangs of which roles of one plan are not all suspended or all started."""
        return [
            name
            for name, jobs in self.unfinished().items()
            if len({job["spec"].get("suspend", False) for job in jobs if record(job)}) > 1
        ]

    def used(self) -> Counter[str]:
        """Places that admitted gangs take, by queue."""
        found: Counter[str] = Counter()
        for name, jobs in self.unfinished().items():
            for job in jobs:
                if not job["spec"].get("suspend"):
                    found[self.gangs[name]] += job["spec"]["parallelism"]
        return found


def judge(storm: Storm) -> None:
    used = storm.used()
    assert used["b"] <= 9
    assert used.total() <= 12


@drawn(8, many=25)
@given(st.integers(min_value=0, max_value=10**6))
@example(1)
def test_no_gang_stays_half_admitted_and_no_quota_is_exceeded(seed):
    storm = Storm(seed)
    for _ in range(12):
        storm.befall()
        judge(storm)
    storm.settle()
    judge(storm)
    assert storm.half_admitted() == []


def test_a_storm_starts_stops_and_ends_gangs():
    """The storms are worth their name: else the other test would hold of a planner that does nothing."""
    said: Counter[str] = Counter()
    for seed in range(6):
        storm = Storm(seed)
        for _ in range(12):
            storm.befall()
        storm.settle()
        said.update(message for message, _ in storm.scene.heard.said)
    assert said["gang started"] > 10
    assert said["gang suspended"] > 3
    assert said["gang started to the end"] > 0
