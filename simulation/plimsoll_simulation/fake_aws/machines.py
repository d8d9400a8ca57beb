"""One instance of a drill's fleet, and the Node object that it becomes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from plimsoll.domain.kubernetes import CAPACITY_LABELS, HOSTNAME, INSTANCE_TYPE, NODE_POOL, ZONE
from plimsoll_simulation.fake_aws.nodegroups import KARPENTER, NodeGroupSpec

EKS_NODE_GROUP = "eks.amazonaws.com/nodegroup"
"""The label by which EKS says which managed node group a node belongs to."""
OUR_HOOK: Final = "plimsoll-terminate"
OTHERS_HOOK: Final = "archive-logs"
"""How the names of lifecycle hooks begin: of the one that the stack installs, and of somebody else's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A lifecycle hook of a group, by its timeout: so a group may have several of one owner."""

    timeout: timedelta
    ours: bool = True

    @property
    def name(self) -> str:
        """Its name, from which Plimsoll tells whose it is."""
        owner = OUR_HOOK if self.ours else OTHERS_HOOK
        return f"{owner}-{self.timeout.total_seconds():.0f}s"


@dataclass(slots=True, kw_only=True, eq=False)
class Machine:
    """One instance, from the ask for it to its end."""

    id: str
    cluster: str
    group: NodeGroupSpec
    number: int
    """Counts within the group, from 1, and never used again."""
    added: bool = False
    """Whether it was launched only since Plimsoll asked its group for more than the owner wants."""
    zone: str
    launched: datetime
    ready: datetime
    """When its node is (or was) Ready for the first time."""
    joined: bool = False
    terminates: datetime | None = None
    """When it is terminated, as far as that is decided."""
    maintenance: datetime | None = None
    """When its scheduled change begins, which takes it away too; a later event may postpone that."""
    gone: datetime | None = None
    returns: timedelta | None = None
    """How long after its end it is launched again under its id, as after a stop."""
    launches: int = 1
    ending: str | None = None
    """The EC2 state in which it ends, once a state change told of it."""
    disclaimed: bool = False
    """Whether its NodeClaim is deleted: Karpenter drains it, and counts it against no limit."""
    ended_by_owner: bool = False
    """Whether EC2's state reason names somebody with rights in the account."""
    held: dict[Hook, datetime] = field(default_factory=dict)
    """The lifecycle hooks that it waits for, and when each gives up."""
    notices: list[tuple[str, datetime]] = field(default_factory=list)
    """What was told about it, in order: AWS answers questions accordingly."""

    @property
    def node(self) -> str:
        """The name of its Node: told apart at a glance, and the same in every run."""
        return f"{self.group.name}-{self.number}"

    @property
    def of_start(self) -> bool:
        """Whether its group had it from the start."""
        return self.number <= self.group.size

    @property
    def ends(self) -> datetime | None:
        """When it will vanish, as far as that is decided."""
        return min((at for at in (self.terminates, self.maintenance) if at), default=None)

    @property
    def waits(self) -> bool:
        """Whether it is in service no more, and waits for a lifecycle hook."""
        return bool(self.held) and self.gone is None

    def hook(self, name: str) -> Hook | None:
        """Return the lifecycle hook of a name, if it waits for that."""
        return next((hook for hook in self.held if hook.name == name and self.gone is None), None)

    def launch_again(self, now: datetime, ready: datetime) -> None:
        """Begin another life under the same id: nothing that was said of the last one holds."""
        self.launched, self.ready, self.joined = now, ready, False
        self.launches += 1
        self.gone = self.terminates = self.maintenance = self.returns = self.ending = None
        self.ended_by_owner = False
        self.held.clear()
        self.notices.clear()

    @property
    def spot(self) -> bool:
        """Whether it is a spot instance."""
        return self.group.capacity == "spot"

    @property
    def state(self) -> str:
        """What EC2 calls its state."""
        if self.gone is not None:
            return "terminated" if self.returns is None else "stopped"
        return self.ending or ("running" if self.joined else "pending")


def instance_id(seed: int, cluster: str, group: str, number: int) -> str:
    """Return the id of an instance: drawn by the seed, and by nothing that a responder does."""
    return f"i-0{_draw(seed, cluster, group, number, 'id').getrandbits(64):016x}"


def startup_share(seed: int, cluster: str, group: str, number: int) -> float:
    """Return where in the range of start-up times an instance lies, 0 to 1."""
    return _draw(seed, cluster, group, number, "startup").random()


def node_labels(group: NodeGroupSpec, zone: str) -> dict[str, str]:
    """Return the labels of a group's nodes, but for the name.

    Managed node groups label their nodes by capacity type themselves; on others the label is what
    a launch template would set.
    Source: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
    """
    own, of_karpenter, managed = CAPACITY_LABELS
    labels = {
        "kubernetes.io/os": "linux",
        ZONE: zone,
        "topology.kubernetes.io/region": region_of(zone),
        INSTANCE_TYPE: group.instance_type,
        own: group.capacity,
    }
    if group.kind == "eks-nodegroup":
        labels[managed] = "SPOT" if group.capacity == "spot" else "ON_DEMAND"
        labels[EKS_NODE_GROUP] = group.name
    if group.kind == KARPENTER:
        labels[of_karpenter] = group.capacity
        labels[NODE_POOL] = group.name
    return labels | dict(group.labels)


def node_object(machine: Machine) -> dict[str, Any]:
    """Return the Node that a machine registers."""
    group = machine.group
    allocatable = {name: str(amount) for name, amount in group.allocatable.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": machine.node,
            "labels": node_labels(group, machine.zone) | {HOSTNAME: machine.node},
        },
        "spec": {
            "providerID": f"aws:///{machine.zone}/{machine.id}",
            **({"taints": [dict(taint) for taint in group.taints]} if group.taints else {}),
        },
        "status": {"capacity": dict(allocatable), "allocatable": allocatable},
    }


def region_of(zone: str) -> str:
    """Return the region of a zone: us-east-1a lies in us-east-1."""
    return zone.rstrip("abcdefghijklmnopqrstuvwxyz")


def zone_id_of(zone: str) -> str:
    """Return the id of a zone in an account that names its zones in their order: use1-az1 for us-east-1a."""
    region = region_of(zone)
    parts = region.split("-")
    short = "".join(("", *parts[:1], *(word[0] for word in parts[1:-1]), parts[-1]))
    return f"{short}-az{'abcdefghijklmnopqrstuvwxyz'.index(zone[len(region)]) + 1}"


def _draw(seed: int, *what: object) -> random.Random:
    return random.Random("/".join(map(str, (seed, *what))))  # noqa: S311 - a drill, no secret
