"""Random trees of queues, on nodes that are there or have to be asked for, while everything may fail."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from math import inf
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.domain.errors import Throttled
from tests.support.growing_scenes import GrowingScene, a_worker_group
from tests.support.properties import drawn
from tests.support.queue_scenes import Scene, a_training
from tests.unit.batch.test_queue_storms import NODES
from tests.unit.batch.test_queue_storms_at_fault import BOUND_SECONDS, StormAtFault

ORDERS = ("priority", "dominant-resource-share", "drf", "hierarchical-drf", "water-filling")
LARGEST = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A queue or a cohort of a random tree."""

    name: str
    parent: Branch | None
    nominal: int
    borrow: float = inf
    lend: float = inf

    def within(self) -> float:
        """What it may keep for itself though it lends the rest."""
        return max(0, self.nominal - self.lend)


class Tree:
    """Quotas of one resource in one flavor, by the rules that the pages state; none of the planner's code."""

    def __init__(self, storm: StormAtFault) -> None:
        chance = storm.chance

        def limit() -> float:
            return chance.choice((inf, inf, 0, 2, 4))

        root = Branch(name="root", parent=None, nominal=chance.randint(0, 4))
        self.cohorts = [root]
        for number in range(chance.randint(0, 3)):
            parent = chance.choice(self.cohorts)
            more: dict[str, Any] = {
                "nominal": chance.randint(0, 3),
                "borrow": limit(),
                "lend": limit(),
            }
            self.cohorts.append(Branch(name=f"c{number}", parent=parent, **more))
        self.queues = [
            Branch(
                name=f"q{number}",
                parent=chance.choice(self.cohorts),
                nominal=chance.randint(0, 6),
                borrow=limit(),
                lend=limit(),
            )
            for number in range(chance.randint(2, 5))
        ]
        self.order = chance.choice(ORDERS)
        self.how = {
            queue.name: {
                "order": chance.choice(("StrictFIFO", "BestEffortFIFO")),
                "preemption": {
                    "withinQueue": chance.choice(("Never", "LowerPriority")),
                    "reclaimWithinCohort": chance.choice(("Never", "LowerPriority", "Any")),
                },
            }
            for queue in self.queues
        }

    def document(self) -> str:
        """Return it as the file that configures queues."""

        def quota(branch: Branch) -> dict[str, Any]:
            said: dict[str, Any] = {"nominal": branch.nominal}
            if branch.parent is not None:
                said |= {"borrowingLimit": branch.borrow} if branch.borrow != inf else {}
                said |= {"lendingLimit": branch.lend} if branch.lend != inf else {}
            return {"flavors": [{"name": "any", "resources": {"cpu": said}}]}

        cohorts: list[dict[str, Any]] = [
            {"name": each.name, "resourceGroups": [quota(each)]}
            | ({"parent": each.parent.name} if each.parent else {"order": self.order})
            for each in self.cohorts
        ]
        queues = [
            {"name": each.name, "cohort": each.parent.name, "resourceGroups": [quota(each)]}
            | self.how[each.name]
            for each in self.queues
            if each.parent is not None
        ]
        return json.dumps({"flavors": [{"name": "any"}], "cohorts": cohorts, "queues": queues})

    def _below(self, branch: Branch) -> list[Branch]:
        return [each for each in (*self.cohorts, *self.queues) if each.parent is branch]

    def whole(self, branch: Branch) -> float:
        """What a branch has with what those below it lend."""
        return branch.nominal + sum(min(self.whole(b), b.lend) for b in self._below(branch))

    def most(self, branch: Branch) -> float:
        """What a branch can have when nobody else uses anything."""
        whole = self.whole(branch)
        if branch.parent is None:
            return whole
        kept = max(0, whole - branch.lend)
        return min(whole + branch.borrow, kept + self.most(branch.parent))

    def use(self, branch: Branch, used: Counter[str]) -> float:
        """What is used of a branch's quota: its own use, and what those below it do not keep to themselves."""
        return used[branch.name] + sum(
            max(0, self.use(b, used) - max(0, self.whole(b) - b.lend)) for b in self._below(branch)
        )

    def exceeded(self, used: Counter[str]) -> list[str]:
        """Name the branches that use more than their quota and what they may borrow."""
        return [
            each.name
            for each in (*self.cohorts, *self.queues)
            if self.use(each, used) > self.whole(each) + (0 if each.parent is None else each.borrow)
        ]


class StormOfTrees(StormAtFault):
    """As a storm at fault; half of them have few nodes, and groups that may be asked for more."""

    scene: Scene

    def scene_of(self) -> Scene:
        self.tree = Tree(self)
        while not self.possible():
            self.tree = Tree(self)
        queues = self.tree.document()
        if self.chance.random() < 0.5:
            return Scene(nodes=NODES, queues=queues, pod_stop=2)
        groups = [
            a_worker_group(name, max_size=self.chance.randint(LARGEST, 8)) for name in ("x", "y")
        ]
        return GrowingScene(*groups, nodes=3, queues=queues, pod_stop=2)

    def possible(self) -> list[str]:
        """Queues in which a gang of any size may start at some time."""
        return [each.name for each in self.tree.queues if self.tree.most(each) >= LARGEST]

    def befall(self) -> None:
        if isinstance(self.scene, GrowingScene):
            self.befall_groups(self.scene)
        super().befall()

    def befall_groups(self, scene: GrowingScene) -> None:
        groups, name = scene.groups, self.chance.choice("xy")
        match self.chance.choice(("refuse", "silent", "throttle", "die", "calm", "calm")):
            case "refuse":
                groups.refusing ^= {name}
            case "silent":
                groups.silent ^= {name}
            case "throttle":
                groups.failing.append(Throttled("slow down"))
            case "die":
                place = self.chance.choice(("before", "after"))
                setattr(groups, place, lambda: self.die(scene, place))
            case _:
                return
        self.faults["groups"] += 1

    def die(self, scene: GrowingScene, place: str) -> None:
        setattr(scene.groups, place, None)
        scene.kill()

    def submit(self) -> None:
        for _ in range(self.chance.randint(1, 3)):
            self.submit_one()

    def submit_one(self) -> None:
        name = f"g{len(self.gangs)}"
        queue = self.gangs[name] = self.chance.choice(self.possible())
        notes = {
            "plimsoll.dev/priority": str(self.chance.randrange(3)),
            "plimsoll.dev/start-seconds": "20",
        }
        if self.chance.random() < 0.5:
            self.whole.add(name)
            notes["plimsoll.dev/on-interruption"] = "suspend"
        workers = self.chance.randint(1, LARGEST - 1)
        self.scene.submit(
            *a_training(name, ps=1, workers=workers, queue=queue, run="20s", annotations=notes)
        )

    def calm_down(self) -> float:
        if isinstance(self.scene, GrowingScene):
            groups = self.scene.groups
            groups.refusing.clear()
            groups.failing.clear()
            groups.before = groups.after = None
            groups.wake()
        return super().calm_down()

    def judge(self) -> None:
        assert self.tree.exceeded(self.used()) == [], (self.used(), self.tree.document())
        if isinstance(self.scene, GrowingScene):
            for group in self.scene.groups.known.values():
                assert group.desired <= group.max_size


def play(seed: int) -> StormOfTrees:
    storm = StormOfTrees(seed)
    for _ in range(10):
        storm.befall()
        storm.judge()
    return storm


@drawn(6, many=20)
@given(st.integers(min_value=0, max_value=10**6))
@example(1)
def test_in_any_tree_no_quota_is_exceeded_no_gang_is_left_in_pieces_and_none_starves(seed):
    storm = play(seed)
    seconds = storm.calm_down()
    storm.judge()
    assert storm.half_admitted() == []
    assert not storm.left(), f"{storm.left()} after {seconds} s: {storm.scene.heard.said[-5:]}"
    assert seconds <= BOUND_SECONDS


def test_trees_of_all_orders_and_groups_of_all_moods_are_played():
    orders: set[str] = set()
    said: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for seed in range(14):
        storm = play(seed)
        orders.add(storm.tree.order)
        assert storm.tree.exceeded(Counter({storm.tree.queues[0].name: 1000}))
        faults += storm.faults
        said.update(message for message, _ in storm.scene.heard.said)
    assert orders == {*ORDERS}
    assert said["nodes asked for"] > 3
    assert said["nodes refused"] > 0
    assert said["gang started"] > 10
    assert said["gang suspended"] > 3
    assert faults["groups"] > 3
