"""Queues at play whose gangs may ask node groups for nodes: what is launched joins after a while."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from plimsoll.adapters.nodegroups.kind import target_of
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import InsufficientCapacity, NodeGroup, NotGrown
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll_batch.domain.names import NODES
from plimsoll_batch.services.queues import QueueService
from plimsoll_batch.services.scale_up import ScaleUp
from plimsoll_simulation.fake_aws.stores import MemoryPools, MemoryReports
from tests.support import fake_clusters
from tests.support.builders import ZONE_A, a_group
from tests.support.fake_clusters import START, Json
from tests.support.queue_scenes import ONE_QUEUE, KilledError, Scene, record

HARBOR = Cluster(
    name="harbor", kind=ClusterKind.EKS, mode=Mode.ACT, region="us-east-1", added=START
)


def a_worker_group(name: str = "workers", **how: Any) -> NodeGroup:
    """Return a group of nodes that hold one pod each, in one zone."""
    what: dict[str, Any] = {"cpu": "1", "zones": (ZONE_A,), "launchable": False} | how
    return a_group(name, **what)


@dataclass
class GroupsAtPlay:
    """Implements `NodeGroups`: raises sizes as Auto Scaling does, and launches what is short."""

    scene: GrowingScene
    known: dict[str, NodeGroup]
    seconds: float = 40
    """From a request to a Ready node."""
    grown: list[tuple[str, int, str]] = field(default_factory=list)
    """Group, how many, token: each request as it came."""
    refusing: set[str] = field(default_factory=set)
    """Names of groups that have no capacity."""
    failing: list[PlimsollError] = field(default_factory=list)
    """What the next requests fail with."""
    silent: set[str] = field(default_factory=set)
    """Names of groups that launch nothing of what they are asked for."""
    before: Any = None
    after: Any = None
    """Called before and after a request takes effect."""
    due: list[tuple[datetime, Json]] = field(default_factory=list)
    launched: int = 0

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        return list(self.known.values())

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        if self.before is not None:
            self.before()
        if self.failing:
            raise self.failing.pop()
        self.grown.append((group.name, add, token))
        now, mine = self.scene.clock.now(), self.known[group.key]
        if group.name in self.refusing:
            refusal = InsufficientCapacity(at=now, why="no such instances", zone=ZONE_A)
            raise NotGrown(f"launch {add} of {group.name}", refusal)
        target = target_of(group, add, mine.max_size, now)
        more = max(0, target - mine.desired)
        self.known[group.key] = replace(mine, desired=max(mine.desired, target), asked=now)
        if group.name not in self.silent:
            self._launch(group.key, more, now)
        if self.after is not None:
            self.after()
        return target - group.desired

    def heartbeat(self, *_: object) -> None:
        raise AssertionError("queues send no heartbeats")

    complete_lifecycle = heartbeat

    def terminate(self, instance: str, *, decrement: bool) -> None:
        raise AssertionError("queues end no instances")

    def _launch(self, key: str, more: int, now: datetime) -> None:
        for _ in range(more):
            self.launched += 1
            group = self.known[key]
            instance = f"i-{self.launched:017x}"
            at = {**group.launched, instance: now}
            self.known[key] = replace(group, instances=group.instances | {instance}, launched=at)
            template = group.template
            assert template is not None
            cpu = str(template.allocatable.cpu // 1000)
            node = fake_clusters.a_node(f"{group.name}-{self.launched}", cpu=cpu, **template.labels)
            node["spec"]["providerID"] = f"aws:///{ZONE_A}/{instance}"
            self.due.append((now + timedelta(seconds=self.seconds), node))

    def wake(self) -> None:
        """Launch what groups did not while they were silent."""
        self.silent.clear()
        for key, group in self.known.items():
            self._launch(key, group.desired - len(group.instances), self.scene.clock.now())

    def join(self, now: datetime) -> None:
        """Let those join whose time has come."""
        for at, node in [each for each in self.due if each[0] <= now]:
            self.due.remove((at, node))
            self.scene.play.cluster.join(node, now=now)


class GrowingScene(Scene):
    """A scene with node groups."""

    def __init__(
        self,
        *groups: NodeGroup,
        nodes: int = 0,
        queues: str = ONE_QUEUE,
        seconds: float = 40,
        **settings: float,
    ) -> None:
        super().__init__(nodes=nodes, queues=queues, **settings)
        self.groups = GroupsAtPlay(self, {group.key: group for group in groups}, seconds)
        self.reports = MemoryReports()
        pass_to = self.clock.pass_to

        def passed(time: datetime) -> None:
            pass_to(time)
            self.groups.join(time)

        self.clock.pass_to = passed  # type: ignore[method-assign] # nodes join meanwhile

    def service(self) -> QueueService:
        growing = ScaleUp(
            cluster=HARBOR,
            groups=self.groups,
            pools=MemoryPools(),
            reports=self.reports,
            telemetry=self.heard,
        )
        return replace(super().service(), growing=growing)

    def request(self, job: str) -> Json:
        """Return what was asked for a gang, as it stands on a Job."""
        return record(self.job(job), NODES)

    @contextmanager
    def killed(self, place: str) -> Iterator[None]:
        """Let the planner die `before` or `after` a request takes effect, once."""

        def die() -> None:
            setattr(self.groups, place, None)
            self.kill()

        setattr(self.groups, place, die)
        yield
        setattr(self.groups, place, None)

    def kill(self) -> None:
        """Kill the planner where it stands."""
        self.wire.dead = True
        raise KilledError
