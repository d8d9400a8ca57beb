"""What the services need of the world, in their own words. Adapters implement these.

Every call may raise the errors of `plimsoll.domain.errors`, and nothing else that is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from plimsoll.domain.interruptions import Interruption, LifecycleHook
from plimsoll.domain.kubernetes import (
    Budget,
    ClusterEvent,
    Namespace,
    Node,
    Pod,
    Ref,
    ReplicaSet,
    Scheduling,
    Workload,
)
from plimsoll.domain.node_groups import Instance, NodeGroup
from plimsoll.domain.notices import InstanceNotice, ZonalShift
from plimsoll.domain.observation import Observation, Samples
from plimsoll.domain.registry import Cluster, IndexEntry, ResyncRequest
from plimsoll.domain.reports import Metric, Report, Score
from plimsoll.domain.spot import HeldPool, PoolEvent, PoolMemory
from plimsoll.domain.zones import ShiftEvent

if TYPE_CHECKING:  # the first cordon does not wait for what it never needs
    from plimsoll.domain.capacity import VcpuQuota
    from plimsoll.domain.frames import Frame
    from plimsoll.domain.placement import ChosenLayout


class Clock(Protocol):
    """The time, and waiting. Virtual in drills."""

    def now(self) -> datetime:
        """Return the time, in UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class RepeatingClock(Clock, Protocol):
    """A clock by which something is done beside the caller, again and again."""

    def repeating(self, act: Callable[[], None], seconds: float) -> AbstractContextManager[None]:
        """Call `act` so many seconds from now and after each call, until the context ends.

        A call that is under way ends first. `act` runs beside the caller, shares only what may be
        read at any moment, and raises nothing that is meant.
        """


class Workers(Protocol):
    """Runs independent calls side by side."""

    def run[T](self, tasks: Sequence[Callable[[], T]]) -> Sequence[T | Exception]:
        """Run all and return, in order, what each returned or raised."""


class EventWriter(Protocol):
    """Tells about objects of one Kubernetes cluster."""

    def create_event(self, event: ClusterEvent) -> None:
        """Create an Event of Kubernetes; `Conflict` where it was created before."""


class ClusterWriter(EventWriter, Protocol):
    """Writes to one Kubernetes cluster.

    Every write is safe to repeat, and carries a precondition (UID or resourceVersion) where a repeat could hurt.
    """

    def cordon(self, node: Node, interruption: Interruption) -> None:
        """Cordon, taint and record in one patch, under the node's resourceVersion."""

    def record(self, node: Node, interruption: Interruption) -> None:
        """Replace the record only, under the node's resourceVersion."""

    def uncordon(self, node: Node) -> None:
        """Take taint and record off again, and our own cordon, under the node's resourceVersion."""

    def mark_unschedulable(self, node: Node, *, unschedulable: bool) -> None:
        """Set or take off the cordon alone, under the node's resourceVersion."""

    def out_of_service(self, node: Node) -> None:
        """Add the taint `node.kubernetes.io/out-of-service` so that volumes detach at once."""

    def taint(self, node: Node, *, tainted: bool) -> None:
        """Set or take off the taint of a zonal shift, under the node's resourceVersion."""

    def label(self, node: Node, labels: Mapping[str, str | None]) -> None:
        """Change labels of a node, under its resourceVersion; None takes one off."""

    def annotate_pod(self, pod: Pod, key: str, value: str | None) -> None:
        """Set an annotation of a pod, under its UID and resourceVersion; None takes it off."""

    def inject_floors(self, namespace: str, entries: Mapping[str, str | None]) -> None:
        """Change what the admission policy gives the new pods of workloads; None gives nothing."""

    def guard(self, workload: Workload, name: str) -> None:
        """Create a PodDisruptionBudget that lets no pod of a workload go; it is deleted with the workload."""

    def unguard(self, budget: Budget) -> None:
        """Delete such a budget, under its UID."""

    def remove_injection(self) -> None:
        """Delete the binding of the admission policy: pods are created as without it from then on."""

    def do_not_disrupt(self, pod: Pod, duration: str | None) -> None:
        """Have Karpenter leave a pod to us up to an age; None takes off what we set. An owner's own mark stays."""

    def release(
        self,
        pod: Pod,
        replica_set: ReplicaSet,
        interruption: str,
        moved: str | None = None,
        do_not_disrupt: str | None = None,
    ) -> None:
        """Take the label by which its ReplicaSet counts a pod off, and annotate the interruption.

        In one patch under UID and resourceVersion, which makes the Deployment above the controlling
        owner; where that is a Rollout, or the API server keeps owners from us, the label goes alone.
        `moved` is the mark of a voluntary move, `do_not_disrupt` the age up to which Karpenter leaves the pod to us.
        """

    def undo_release(self, pod: Pod, replica_set: ReplicaSet) -> None:
        """Put the label back, and the owner where it was changed, in one patch as `release` does."""

    def evict(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Evict a pod, under its UID; None keeps its own grace period."""

    def delete(self, pod: Pod, grace_seconds: int | None = None) -> None:
        """Delete a pod past its budget, under its UID."""


class CapacityWriter(Protocol):
    """Writes to node groups."""

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:
        """Ask for more nodes and return how many were promised; never lowers anything.

        Launches instances where the endpoint and the group allow it, else raises the desired
        capacity from a fresh read. The same token asks only once.
        """

    def heartbeat(self, hook: LifecycleHook, instance: str) -> None:
        """Let an instance wait for its hook once more as long as the hook's timeout."""

    def complete_lifecycle(self, hook: LifecycleHook, instance: str) -> None:
        """Let an instance that is drained be terminated at once."""

    def terminate(self, instance: str, *, decrement: bool) -> None:
        """Terminate an instance, and lower the desired capacity of its group; else it launches another."""


class LeaseKeeper(Protocol):
    """Where a Lease is kept."""

    def acquire(self, holder: str, seconds: float) -> bool:
        """Take or renew it; False while somebody else's is live."""

    def release_lease(self, holder: str) -> None:
        """Give it back, if it is ours."""


class ClusterApi(ClusterWriter, LeaseKeeper, Protocol):
    """One Kubernetes cluster."""

    def node(self, name: str) -> Node | None:
        """Return the Node of a name; None where there is none."""

    def nodes(self) -> Sequence[Node]:
        """Return all Nodes."""

    def unbound_pods(self) -> Sequence[Pod]:
        """Return the pods without a node."""

    def observe(self) -> Observation:
        """Read everything that a plan needs, but for node groups."""

    def following(self) -> AbstractContextManager[ClusterApi]:
        """Give the same cluster for many observations: they need not read everything again.

        They show what was written through it. Else one may be up to 20 seconds older than the cluster, where
        the API server falls silent without a word, and is otherwise as old as an event takes to come.
        """

    def namespaces(self) -> Sequence[Namespace]:
        """Return all Namespaces, with what they say of their workloads."""

    def injected_floors(self) -> Mapping[str, Mapping[str, str]]:
        """Return what the admission policy is told, by namespace; only those that opted in."""

    def try_pod(self, owner: Ref | None) -> Scheduling:
        """Create a pod of an owner in a dry run, and return what became of its scheduling."""


class Clusters(Protocol):
    """Opens registered clusters."""

    def open(self, cluster: Cluster) -> ClusterApi:
        """Return the API of a cluster; connects on first use."""


class NodeGroups(CapacityWriter, Protocol):
    """The node groups of one cluster."""

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        """Return the groups of the cluster; existing nodes tell what a new one will be like."""


class Limits(Protocol):
    """What bounds the launches of a cluster's account and region."""

    def quota(self) -> VcpuQuota:
        """Return the quota of on-demand vCPUs of the standard families, and what is in use."""

    def free_addresses(self, subnets: Sequence[str]) -> Mapping[str, int]:
        """Return how many addresses are free in these subnets; the unknown ones are left out."""

    def images(self, ids: Sequence[str]) -> Collection[str]:
        """Return which of these images exist and may be used."""


class Instances(Protocol):
    """EC2."""

    def describe(self, ids: Sequence[str]) -> Mapping[str, Instance]:
        """Return what EC2 knows of these instances; the unknown ones are left out."""

    def interrupted(self, ids: Sequence[str]) -> Sequence[InstanceNotice]:
        """Return notices for those of the instances that are interrupted, as events would have told.

        From spot request state, instance state and scheduled events.
        """

    def zones(self) -> Mapping[str, str]:
        """Return the zones of the region in this account: their ids, and their names."""


class ZonalShifts(Protocol):
    """The Application Recovery Controller of one account and region."""

    def active(self) -> Sequence[ZonalShift]:
        """Return notices of the shifts that stand, as events would have told, but for the account."""


class RegisteredClusters(Protocol):
    """The registered clusters, each in the mode that counts."""

    def get(self, name: str) -> Cluster | None:
        """Return a cluster, or None when nobody registered it."""

    def list(self) -> Sequence[Cluster]:
        """Return all clusters, by name."""


class AgentBindings(Protocol):
    """Which agent of the optimisation service each registered cluster is bound to."""

    def agents(self) -> Mapping[str, str]:
        """Return agent -> name of its cluster, and read nothing else of clusters."""


class Registry(RegisteredClusters, AgentBindings, Protocol):
    """The table of clusters."""

    def names(self) -> Sequence[str]:
        """Return the names of all clusters, and read nothing else of them."""

    def add(self, cluster: Cluster) -> None:
        """Add a cluster.

        Raises:
            Conflict: the name is taken.
        """

    def update(self, cluster: Cluster) -> None:
        """Replace what is known of a cluster.

        Raises:
            NotFound: it is not registered.
        """

    def remove(self, name: str) -> None:
        """Remove a cluster.

        Raises:
            NotFound: it is not registered.
        """


class NodeIndex(Protocol):
    """Instance -> node, kept by the resync."""

    def find(self, instances: Sequence[str]) -> Mapping[str, IndexEntry]:
        """Return the entries that exist."""

    def put(self, entries: Sequence[IndexEntry]) -> None:
        """Write entries; the newest `seen` wins."""


class Reports(Protocol):
    """Reports of interruptions."""

    def merge(self, report: Report) -> Report:
        """Merge into what is stored under the same interruption, and return the result."""

    def list(self, cluster: str, limit: int = 50) -> Sequence[Report]:
        """Return the newest reports of a cluster, newest first."""

    def scores(self, cluster: str, months: Sequence[str]) -> Sequence[Score]:
        """Return the scores that are kept of a cluster for these months, in the same order."""

    def put_score(self, score: Score) -> None:
        """Write a score under the version that it has.

        Raises:
            Conflict: somebody else wrote in between.
        """


class FrameStore(Protocol):
    """Keeps the frames of storms."""

    def put(self, frame: Frame) -> None:
        """Write a frame; written twice it is one."""

    def begin(self, frame: Frame) -> bool:
        """Note that people are told of a storm; False where that was noted before."""

    def latest(self, cluster: str) -> Frame | None:
        """Return the last frame of a cluster, if one is kept."""


class FrameArchive(Protocol):
    """The frames of storms, to be looked at."""

    def latest(self, cluster: str, until: datetime | None = None) -> Frame | None:
        """Return the last frame of a cluster, up to a time, if one is kept."""

    def since(self, cluster: str, at: datetime) -> Sequence[Frame]:
        """Return the frames of a cluster from a time on, the oldest first."""


class FrameSink(Protocol):
    """Takes the frames of storms. No call raises, and none but `end` waits for a database."""

    def watch(self, cluster: str) -> None:
        """Learn that a reconcile of a cluster begins."""

    def latest(self, cluster: str) -> Frame | None:
        """Return the last frame of a cluster, as far as it is known."""

    def take(self, frame: Frame) -> None:
        """Take a frame to be kept; a newer one may replace it before it is."""

    def end(self, cluster: str, seconds: float) -> int:
        """Keep what is left of a cluster, for so long at most; return how many frames and messages were lost."""


class Pools(Protocol):
    """The memory of capacity pools and of zonal shifts, by region."""

    def read(self, region: str, now: datetime) -> Sequence[PoolEvent]:
        """Return the events that are not too old to count."""

    def put(self, region: str, events: Iterable[PoolEvent]) -> None:
        """Write events; one that is told again is the same."""

    def memory(self, region: str, now: datetime) -> PoolMemory:
        """Return these events, and the pools whose hours are counted, in one read."""

    def held(self, region: str) -> Sequence[HeldPool]:
        """Return the pools whose hours are counted."""

    def count(self, region: str, before: HeldPool | None, after: HeldPool) -> None:
        """Write that an hour of a pool is counted.

        Args:
            region: the account and region of the pool.
            before: what was read of it; None where nothing is known.
            after: what is known of it now.

        Raises:
            Conflict: another cluster of the region counted in between.
        """

    def shifts(self, region: str, now: datetime) -> Sequence[ShiftEvent]:
        """Return what was told of zonal shifts that may still stand."""

    def put_shift(self, region: str, event: ShiftEvent) -> None:
        """Write what was told of a zonal shift; told again it is the same."""


class Times(Protocol):
    """What is remembered by cluster and workload: how long pods took to stop and to start."""

    def read(self, cluster: str, workloads: Collection[Ref]) -> Mapping[Ref, Samples]:
        """Return what is remembered of these workloads; those of which nothing is are left out."""

    def merge(self, cluster: str, workload: Ref, told: Samples) -> None:
        """Merge into what is remembered; what is told again changes nothing."""


class LayoutStore(Protocol):
    """The layouts that were chosen for promised workloads, by cluster."""

    def read(self, cluster: str) -> Mapping[Ref, ChosenLayout]:
        """Return those of all workloads of a cluster."""

    def write(
        self, cluster: str, workload: Ref, before: ChosenLayout | None, after: ChosenLayout
    ) -> None:
        """Write the layout that is chosen for a workload; a Conflict where another run chose in between."""


class WakeUps(Protocol):
    """The queue that wakes the drain of a cluster."""

    def send(self, cluster: str, delays: Sequence[int], traceparent: str | None = None) -> None:
        """Send one wake-up for each delay, in seconds; `traceparent` is of the span that sends them."""


class Resyncs(Protocol):
    """The queue of resyncs."""

    def send(self, requests: Sequence[ResyncRequest]) -> None:
        """Send one message for each request."""


class Announcer(Protocol):
    """Tells people what happened."""

    def tell(self, subject: str, text: str) -> None:
        """Send one message; nothing where nobody asked for any."""


class Telemetry(Protocol):
    """Logs and metrics; a service says what happened, the adapter says it to people."""

    def log(self, message: str, **facts: object) -> None:
        """Log a stable message with facts beside it."""

    def warn(self, message: str, **facts: object) -> None:
        """Log something that a person should look at when it repeats."""

    def count(self, metric: Metric, value: float = 1, *, cluster: str | None = None) -> None:
        """Add to a metric, of one cluster where it is named."""


class Traces(Protocol):
    """Begins spans of OpenTelemetry; where no layer exports them, `plimsoll.services.untraced.UNTRACED`.

    No call raises, or waits for whoever takes the spans. Facts become attributes `plimsoll.<fact>`: names and
    identities, never what an API said.
    """

    def begin(
        self, name: str, *, parent: str | None = None, at: datetime | None = None, **facts: str
    ) -> Span:
        """Begin a span, now or `at`: as a child of the traceparent `parent`, else of a trace of its own."""


class Span(Protocol):
    """A span that has begun. Its block ends it; an error that leaves the block is named in it."""

    @property
    def traceparent(self) -> str | None:
        """What another process continues it by, as W3C Trace Context has it; None where nobody traces."""

    def child(self, name: str, **facts: str) -> Span:
        """Begin a span within this one."""

    def note(self, **facts: str) -> None:
        """Add facts."""

    def link(self, traceparents: Iterable[str | None]) -> None:
        """Link to other spans, to each once and to so many at most; None links to nothing."""

    def fail(self, error: Exception) -> None:
        """Name an error by its type: its words may be a tenant's."""

    def __enter__(self) -> Self:
        """Make it the span of whatever libraries trace within its block."""

    def __exit__(
        self, kind: object, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End it."""
