"""One cluster of a drill, wherever it stands: the fleet behind it, its owner, and who measures both.

What timeline, snapshot and settling need to know of a cluster is asked here; a subclass says how it
is reached. Everything is called while the clusters of the drill are kept from changing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from plimsoll.adapters.kubernetes.objects import parse_deployment, parse_node, parse_stateful_set
from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.domain.actions import LabelNode
from plimsoll.domain.drain import GATHER_NOTICES, waiting_for_turn
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import INTERRUPTION, MIRROR, RELEASED, Node
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import plan_placement
from plimsoll_simulation.fake_aws.fleet import Fleet, Group
from plimsoll_simulation.fake_aws.machines import Machine, node_object
from plimsoll_simulation.fake_cluster.indexes import Indexes
from plimsoll_simulation.fake_cluster.resources import BY_KIND, path_of
from plimsoll_simulation.fake_cluster.store import Change, Store
from plimsoll_simulation.measure.actions import actions
from plimsoll_simulation.measure.measure import Measurement
from plimsoll_simulation.rigs.simulated.time import VirtualClock
from plimsoll_simulation.scenario.clusters import ClusterSpec
from plimsoll_simulation.scenario.manifests import Manifest
from plimsoll_simulation.scenario.selectors import GroupSelector
from plimsoll_simulation.scenario.timeline import ScaleEntry

OWNER: Final = "kubectl"
"""The field manager of what the owner does."""
MERGE: Final = "application/merge-patch+json"
_READERS: Final = {"Deployment": parse_deployment, "StatefulSet": parse_stateful_set}
"""Of the workloads that may have an on-demand floor."""
_CONFLICT: Final = 409
_REFUSED: Final = 400

type Json = dict[str, Any]


class RigCluster(ABC):
    """Keeps cluster and fleet in step, and tells the measurement what happens.

    Args:
        spec: the cluster.
        seed: of the fleet.
        clock: the drill's time.
        measurement: what watches it.
        store: the objects that the cluster shows.
        indexes: over that store.
        say: told each action of the responder when the cluster shows it; None where the responder
            itself tells.
    """

    def __init__(  # noqa: PLR0913 - what a cluster is made of
        self,
        spec: ClusterSpec,
        *,
        seed: int,
        clock: VirtualClock,
        measurement: Measurement,
        store: Store,
        indexes: Indexes,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.name = spec.name
        self.spec = spec
        self.declared: dict[tuple[str, str, str], Json] = {}
        """What the owner has last said of each object, by kind, namespace and name."""
        self._clock = clock
        self._measurement = measurement
        self._say = say
        self._store = store
        self._indexes = indexes
        store.subscribe(self._observe)
        for group in spec.node_groups:
            measurement.add_group(
                spec.name,
                group.name,
                capacity=group.capacity,
                price=group.price,
                stop=spec.pods.stop,
            )
        self.fleet = Fleet(spec.name, spec.node_groups, seed=seed, now=clock.now())
        self.fleet.tell(self)
        clock.follow(self.fleet)

    @property
    def started(self) -> datetime | None:
        """Time 0, once it has come."""
        return self._measurement.started

    # What the cluster shows.

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        """Return an object, or None; read it, never change it."""
        return self._store.get(resource, namespace, name)

    def all(self, resource: str) -> Iterable[Json]:
        """Return all objects of a kind, named as in a path: `pods`."""
        return self._store.all(resource)

    def on_node(self, node: str) -> Iterable[Json]:
        """Return the pods that are bound to a node."""
        return self._indexes.on_node(node)

    def _observe(self, change: Change) -> None:
        match change.resource, change.type:
            case "pods", "DELETED":
                self._measurement.pod_removed(change.at, self.name, change.object)
            case "pods", _:
                self._measurement.observe_pod(change.at, self.name, change.object)
            case "nodes", "ADDED" | "MODIFIED":
                self._measurement.observe_node(change.at, self.name, change.object)
            case "deployments" | "statefulsets", "ADDED" | "MODIFIED":
                self._measurement.observe_workload(change.at, self.name, change.object)
            case _:
                pass
        if self._say is not None and self._measurement.started is not None:
            for action in actions(change.resource, change.before, change.object):
                self._say(action)

    # How it is changed.

    @abstractmethod
    def set_up(self, objects: Sequence[Manifest]) -> None:
        """Let the nodes of the start join, and apply what the scenario names.

        Raises:
            BadInput: the cluster refuses an object.
        """

    @abstractmethod
    def take_api_away(self, until: datetime) -> None:
        """Let the API server be down until then; outages may overlap."""

    @abstractmethod
    def slow_down(self, seconds: float, until: datetime) -> None:
        """Let every answer of the API server be late until then; the worst of several counts."""

    @abstractmethod
    def call(
        self, method: str, path: str, body: Json | None, content_type: str, *, user: str = OWNER
    ) -> Response:
        """Send a request of the owner, or of another program.

        Raises:
            ConnectionRefusedError: the API server is down.
        """

    def apply(self, objects: Sequence[Manifest]) -> None:
        """Let the owner apply manifests: from now on they are what is declared.

        Raises:
            BadInput: the cluster refuses an object.
            ConnectionRefusedError: the API server is down.
        """
        now = self._clock.now()
        self._measurement.declare(now, self.name, [manifest.sent for manifest in objects])
        for manifest in objects:
            self.declared[manifest.key] = manifest.sent
            refusal = self._applied(manifest.sent)
            if refusal is not None:
                raise BadInput(f"{manifest.place}: {manifest} was refused: {refusal}")

    def label_nodes(self, objects: Sequence[Manifest]) -> None:
        """Give the nodes of the start the labels that the scheduled placement keeps in a cluster.

        Whoever responds: pods with a spread constraint run on labelled nodes only.
        """
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        nodes = [node_object(machine) for machine in self.fleet.alive()]
        seen = Observation(
            cluster=self.name,
            nodes=[parse_node(node | {"status": node["status"] | ready}) for node in nodes],
            pods=(),
            workloads=[
                _READERS[obj.sent["kind"]](obj.sent)
                for obj in objects
                if obj.sent["kind"] in _READERS
            ],
        )
        for action in (step.action for step in plan_placement(seen, self._clock.now()).steps):
            if isinstance(action, LabelNode):
                labels = {"metadata": {"labels": dict(action.labels)}}
                self.call("PATCH", f"/api/v1/nodes/{action.node.name}", labels, MERGE)

    def scale(self, entry: ScaleEntry) -> None:
        """Let the owner declare another count.

        Raises:
            BadInput: the cluster refuses it.
            ConnectionRefusedError: the API server is down.
        """
        scale = entry.scale
        plural = BY_KIND[scale.kind].plural
        answer = self.call(
            "PATCH",
            f"/apis/apps/v1/namespaces/{scale.namespace}/{plural}/{scale.name}/scale",
            {"spec": {"replicas": scale.replicas}},
            MERGE,
        )
        if answer.status >= _REFUSED:
            raise BadInput(f"{entry.place}: the cluster refused it: {answer.body['message']}")
        key = scale.kind, scale.namespace, scale.name
        spec = self.declared[key]["spec"] | {"replicas": scale.replicas}
        self.declared[key] = self.declared[key] | {"spec": spec}
        self._measurement.scale(self._clock.now(), entry)

    def refuse_launches(self, selector: GroupSelector, until: datetime, fault: str) -> None:
        """Let EC2 refuse the launches of the groups that a selector takes, in the way of a fault."""
        for group in self.spec.node_groups:
            if selector.takes_group(self.name, group):
                self.fleet.refuse(group.name, until, fault)

    def unfinished(self) -> Iterator[str]:
        """Yield in words what the measurement cannot see, and what must be over in the end."""
        alive = {None, "", *(m.node for m in self.fleet.alive() if m.joined)}
        lost = sum(
            1
            for pod in self.all("pods")
            if pod["spec"].get("nodeName") not in alive and not _of_daemon(pod)
        )
        if lost:
            yield f"{lost} pods of {self.name} are on nodes that are gone"
        released = sum(
            1 for pod in self.all("pods") if RELEASED in (pod["metadata"].get("annotations") or {})
        )
        if released:
            yield f"{released} pods of {self.name} are released"
        if lately := sum(1 for _ in self._named_lately()):
            yield f"{lately} nodes of {self.name} may have their turn"

    def _named_lately(self) -> Iterator[Node]:
        """Yield the nodes on advice that wait for others of the same moment, or are to be looked at after that."""
        recorded = (
            parse_node(node)
            for node in self.all("nodes")
            if INTERRUPTION in (node["metadata"].get("annotations") or {})
            and not node["spec"].get("unschedulable")
        )
        seen = Observation(cluster=self.name, nodes=list(recorded), pods=[], workloads=[])
        for node in waiting_for_turn(seen):
            found = node.interruption
            if found is not None and self._clock.now() < found.noticed + 2 * GATHER_NOTICES:
                yield node

    def _applied(self, obj: Json) -> str | None:
        """Create an object, or change it to what it says here; return why it was refused."""
        collection, name = path_of(obj)
        answer = self.call("POST", collection, obj, "application/json")
        if answer.status == _CONFLICT:
            answer = self.call("PATCH", f"{collection}/{name}", obj, MERGE)
        return str(answer.body["message"]) if answer.status >= _REFUSED else None

    # What the fleet tells: see `plimsoll_simulation.fake_aws.fleet.Side`.

    def asked(self, group: Group, now: datetime) -> None:
        """Somebody asked for more of a group."""
        self._measurement.capacity_asked(now, self.name, group.spec.name)

    def launched(self, machine: Machine, now: datetime) -> None:
        """A machine starts."""
        self._measurement.instance_started(
            now, self.name, machine.group.name, machine.id, node=machine.node, zone=machine.zone
        )

    @abstractmethod
    def joined(self, machine: Machine, now: datetime) -> None:
        """A machine's node registers, as soon as there is an API server."""

    @abstractmethod
    def vanished(self, machine: Machine, now: datetime) -> None:
        """A machine is gone; pods that were to end at this very instant have ended."""


def _of_daemon(pod: Mapping[str, Any]) -> bool:
    """Whether a pod belongs to its node, and is collected with it at leisure."""
    owners = pod["metadata"].get("ownerReferences") or ()
    mirror = MIRROR in (pod["metadata"].get("annotations") or {})
    return mirror or any(owner["kind"] == "DaemonSet" for owner in owners)
