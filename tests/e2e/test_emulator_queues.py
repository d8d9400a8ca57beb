"""The stack of the queues, built and deployed beside the interruption path on an emulated AWS."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import pytest
import yaml

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.drain import added_by_group
from plimsoll.domain.registry import Mode
from plimsoll_batch.domain.names import CONFIGURATION, ON_INTERRUPTION
from plimsoll_batch.services.scale_up import KIND
from plimsoll_simulation.fake_aws.fleet import Fleet, Group
from plimsoll_simulation.fake_aws.machines import Machine, node_object
from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.conditions import is_true
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_simulation.rigs.access import Access
from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.emulated.stack import Stack, resync
from plimsoll_testbed.rigs.emulated.walltime import WallTime
from plimsoll_testbed.rigs.supervised import free_port
from tests.support.fake_clusters import Json, a_node
from tests.support.queue_scenes import ONE_QUEUE, a_training

from .test_emulator_stack import logged, put_spot_warning, within

pytestmark = [pytest.mark.emulator, pytest.mark.cluster]

SOON = 200.0
"""Seconds until what the next wake-up of the schedule starts is there: on the emulator it may be the second
one, and workers unpack their layers when they start."""
WORKERS = NodeGroupSpec(
    name="workers",
    kind="asg",
    capacity="on-demand",
    instance_type="m6i.large",
    zones=("us-east-1a",),
    size=0,
    max=6,
    allocatable={"cpu": "1", "memory": "8Gi"},
)
"""Takes longer to start a node than a planner runs: another one finds the nodes there."""


@dataclass
class Shop:
    """A cluster with queues, in wall-clock time behind HTTP; nodes of a fleet that tells it may join."""

    name: str
    nodes: int = 6
    clock: SystemClock = field(default_factory=SystemClock)
    server: FakeApiServer = field(init=False)

    def __post_init__(self) -> None:
        cluster = FakeCluster(now=self.clock.now())
        self.server = FakeApiServer(cluster)
        for number in range(self.nodes):
            cluster.join(a_node(f"{self.name}-{number}", cpu="1"), now=self.clock.now())
        self.apply(*({"kind": "Namespace", "metadata": {"name": n}} for n in ("lab", "plimsoll")))
        data = {"queues.json": json.dumps(yaml.safe_load(ONE_QUEUE))}
        meta = {"name": CONFIGURATION, "namespace": "plimsoll"}
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})

    def asked(self, group: Group, now: datetime) -> None:
        """The test reads the group itself."""

    def launched(self, machine: Machine, now: datetime) -> None:
        """Its node joins later."""

    def joined(self, machine: Machine, now: datetime) -> None:
        with self.server.lock:
            self.server.cluster.join(node_object(machine), now=self.clock.now())

    def vanished(self, machine: Machine, now: datetime) -> None:
        """No instance ends while a gang runs."""

    @property
    def way(self) -> Access:
        return Access(url=self.server.url, token=self.server.token)

    def apply(self, *objects: Json) -> None:
        with self.server.lock:
            self.server.cluster.apply(objects, now=self.clock.now())

    def jobs(self) -> dict[str, Json]:
        with self.server.lock:
            return {j["metadata"]["name"]: j for j in self.server.cluster.store.all("jobs")}

    def complete(self) -> set[str]:
        return {name for name, job in self.jobs().items() if is_true(job, "Complete")}

    def taken(self) -> set[str]:
        """Nodes that pods were bound to."""
        with self.server.lock:
            return {p["spec"].get("nodeName") for p in self.server.cluster.store.all("pods")}

    def ready(self) -> set[str]:
        """Jobs of which a pod is Ready."""
        return {n for n, j in self.jobs().items() if (j.get("status") or {}).get("ready")}

    def planners(self) -> set[str]:
        """Who holds a Lease."""
        with self.server.lock:
            specs = [lease["spec"] for lease in self.server.cluster.store.all("leases")]
        return {spec["holderIdentity"] for spec in specs if spec.get("holderIdentity")}

    def instance(self, node: str) -> str:
        with self.server.lock:
            spec = self.server.cluster.store.must_get("nodes", "", node)["spec"]
        return str(spec["providerID"]).rpartition("/")[2]

    def written(self) -> list[str]:
        """Jobs that a planner wrote on."""
        return [n for n, j in self.jobs().items() if "plimsoll.dev/admission" in json.dumps(j)]


@dataclass
class Rig:
    emulator: MiniStack
    stack: Stack
    fleet: Fleet
    """Behind the cluster `yard`."""
    queues: Mapping[str, str]
    """Outputs of the stack of the queues."""

    @contextmanager
    def unscheduled(self) -> Iterator[None]:
        """Keep the schedule from waking anybody: what is planned meanwhile, somebody else woke."""
        events = self.emulator.client("events")
        function = self.queues["ScheduleFunction"]
        arn = self.emulator.client("lambda").get_function(FunctionName=function)["Configuration"]
        [rule] = events.list_rule_names_by_target(TargetArn=arn["FunctionArn"])["RuleNames"]
        events.disable_rule(Name=rule)
        try:
            yield
        finally:
            events.enable_rule(Name=rule)

    def wake(self, cluster: str) -> None:
        """Let the planner of a cluster begin, as a wake-up does."""
        event = {"Records": [{"messageId": "first", "body": json.dumps({"cluster": cluster})}]}
        self.emulator.client("lambda").invoke(
            FunctionName=self.queues["BatchFunction"],
            InvocationType="Event",
            Payload=json.dumps(event),
        )

    def complaints(self) -> str:
        """What a failed test wants to know."""
        return "\n".join(self.emulator.complaints())


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    time = WallTime(SystemClock())
    fleet = Fleet("yard", [WORKERS], seed=0, now=time.clock.now())
    time.clock.follow(fleet)
    with (
        time,
        AwsFleet([fleet], clock=time.catch_up, lock=time.lock, changed=time.clock.touch) as aws,
        MiniStack(endpoints=aws.endpoints) as emulator,
    ):
        core = emulator.deploy(AcceptDrills="true", Size="small")
        queues = emulator.deploy(
            emulator.checkout.batch_template,
            beside="queues",
            AcceptDrills="true",
            Size="small",
            ClustersTable=core["ClustersTable"],
            NodesTable=core["NodesTable"],
            TimesTable=core["TimesTable"],
            GrowGroups="true",
            PoolsTable=core["PoolsTable"],
            ReportsTable=core["ReportsTable"],
        )
        yield Rig(emulator, Stack(emulator, aws), fleet, queues)
    assert time.error is None


@pytest.fixture
def shops(rig: Rig) -> Iterator[Callable[..., Shop]]:
    """Makes and registers clusters; they are taken out again at the end."""
    names: list[str] = []
    with ExitStack() as exits:

        def made(name: str, mode: Mode = Mode.ACT, nodes: int = 6) -> Shop:
            shop = Shop(name, nodes)
            exits.enter_context(shop.server)
            rig.stack.register(name, shop.way, mode)
            names.append(name)
            return shop

        yield made
        for name in names:
            rig.stack.remove(name)


def test_a_gang_that_is_submitted_is_started_by_the_schedule_and_runs_to_its_end(
    rig: Rig, shops: Callable[..., Shop]
):
    """Beside a cluster that does not answer, and one that is only observed."""
    rig.stack.register("away", Access(url=f"http://127.0.0.1:{free_port()}", token="none"))
    harbor, watched = shops("harbor"), shops("watched", Mode.OBSERVE)
    for shop in (harbor, watched):
        shop.apply(*a_training("train", run="3s"))
    both = {"train-ps", "train-workers"}
    assert within(SOON, lambda: harbor.complete() == both), rig.complaints()
    assert within(SOON, lambda: logged(rig.emulator, "queues not planned"))
    rig.stack.remove("away")
    assert watched.written() == []
    assert all(job["spec"]["suspend"] for job in watched.jobs().values())


@pytest.mark.long
def test_a_gang_without_a_place_asks_a_node_group_for_what_it_lacks_and_runs_once_that_is_there(
    rig: Rig, shops: Callable[..., Shop]
):
    yard = shops("yard", nodes=2)
    rig.fleet.tell(yard)
    yard.apply(*a_training("train", run="3s"))
    both = {"train-ps", "train-workers"}
    assert within(2 * SOON, lambda: yard.complete() == both), rig.complaints()
    group = rig.fleet.group("workers")
    launched = {machine.node for machine in group.machines}
    assert (len(launched), group.desired) == (4, 4)
    assert yard.taken() == {"yard-0", "yard-1"} | launched
    [report] = [r for r in rig.stack.reports("yard") if r.kind == KIND]
    assert added_by_group(report) == {"asg/workers": 4}
    unread = ("node groups not read", "capacity pools not read", "adapter warning")
    assert [line for message in unread for line in logged(rig.emulator, message)] == []


@pytest.mark.long
def test_a_notice_wakes_the_planner_which_suspends_a_gang_that_asks_for_it(
    rig: Rig, shops: Callable[..., Shop]
):
    """The schedule is off, and the planner that started the gang has ended: nothing but the notice is left to wake one."""
    with rig.unscheduled():
        harbor = shops("port")
        resync(rig.emulator, "port")
        harbor.apply(*a_training("train", run="600s", annotations={ON_INTERRUPTION: "suspend"}))
        rig.wake("port")
        both = {"train-ps", "train-workers"}
        assert within(60, lambda: harbor.ready() == both), rig.complaints()
        assert within(60, lambda: not harbor.planners()), rig.complaints()
        put_spot_warning(rig.emulator, harbor.instance("port-0"))
        suspended = within(25, lambda: all(j["spec"]["suspend"] for j in harbor.jobs().values()))
    assert suspended, rig.complaints()
    assert [line["cluster"] for line in logged(rig.emulator, "queues woken")] == ["port"]
