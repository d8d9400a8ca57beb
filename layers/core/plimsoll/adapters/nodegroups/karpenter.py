"""NodePools of Karpenter: read, and never asked, since Karpenter makes nodes for Pending pods by itself.

A NodePool that may buy both ways is two groups: which of them a node will be of, Karpenter decides. What
is on the way are its NodeClaims. One that EC2 has no capacity for is deleted at once, and another is made
out of other types and zones; any other failure stands in its condition `Launched`.

Sources: https://karpenter.sh/docs/concepts/nodepools/, https://karpenter.sh/docs/concepts/nodeclaims/;
kubernetes-sigs/karpenter, pkg/controllers/nodeclaim/lifecycle (launch.go, liveness.go)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Final

from msgspec import Meta, Raw, Struct, field

from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.decoding import Json, decoded, naming
from plimsoll.adapters.kubernetes.schema import (
    Amounts,
    Conditions,
    Metadata,
    Object,
    Pairs,
    Whole,
)
from plimsoll.adapters.nodegroups.kind import Access
from plimsoll.adapters.nodegroups.refusals import refusal_of
from plimsoll.domain.errors import BadInput, NotFound, PlimsollError, Refused
from plimsoll.domain.fields import INSTANCE, LIST_LIMIT_ITEMS, Field
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    GPU,
    INSTANCE_TYPE,
    NODE_POOL,
    ZONE,
    Node,
    Requirement,
    Resources,
    Taint,
    satisfied,
)
from plimsoll.domain.node_groups import (
    GPU_COUNT,
    NodeGroup,
    NodeTemplate,
    Refusal,
    is_instance_device,
)

NAME: Final = "karpenter"
GROUP: Final = "karpenter.sh"
LIST_NODE_POOLS: Final = Call(verb="list", group=GROUP, resource="nodepools")
LIST_NODE_CLAIMS: Final = Call(verb="list", group=GROUP, resource="nodeclaims")
CAPACITY_TYPE: Final = CAPACITY_LABELS[1]
UNLIMITED: Final = 1000
"""How many nodes more are counted on of a NodePool without limits."""
ABSENT: Final = timedelta(minutes=5)
"""How long a cluster without Karpenter is not asked again."""
_OS: Final = "kubernetes.io/os"
_NOT_TRIED: Final = ("AwaitingReconciliation", "ReconciliationInProgress", "")


class _TemplateSpec(Struct, rename="camel", gc=False):
    requirements: Annotated[tuple[Requirement, ...], Meta(max_length=LIST_LIMIT_ITEMS)] = ()
    taints: Annotated[tuple[Taint, ...], Meta(max_length=LIST_LIMIT_ITEMS)] = ()


class _TemplateMeta(Struct, gc=False):
    labels: Pairs = field(default_factory=dict)


class _Template(Struct, gc=False):
    metadata: _TemplateMeta = field(default_factory=_TemplateMeta)
    spec: _TemplateSpec = field(default_factory=_TemplateSpec)


class _PoolSpec(Struct, gc=False):
    template: _Template = field(default_factory=_Template)
    limits: Amounts = field(default_factory=dict)
    replicas: Whole | None = None


class _PoolStatus(Struct, gc=False):
    resources: Amounts = field(default_factory=dict)
    conditions: Conditions = ()


class _ClaimStatus(Struct, rename="camel", gc=False):
    provider_id: str = field(default="", name="providerID")
    allocatable: Amounts = field(default_factory=dict)
    conditions: Conditions = ()


class _ClaimSpec(Struct, gc=False):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """One NodeClaim that is not being deleted."""

    pool: str
    capacity: str
    instance: str | None
    allocatable: Resources
    created: datetime
    launched: datetime | None
    refusal: Refusal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """One NodePool."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    rules: tuple[Requirement, ...]
    requirements: Mapping[str, Sequence[str]]
    """Label -> the values that it may have, where they are named."""
    limited: frozenset[str]
    """The resources that its limits name."""
    limits: Resources
    used: Resources
    closed: str | None
    """Why Karpenter makes no node of it for Pending pods."""

    @property
    def left(self) -> Resources:
        """What its limits leave, of the resources that they name."""
        return self.limits - self.used

    def capacities(self) -> Sequence[str]:
        """Return how it may buy: on-demand alone where it does not say, as Karpenter's own default is."""
        said = [rule for rule in self.rules if rule.key == CAPACITY_TYPE]
        every = ("on-demand", "reserved", "spot") if said else ("on-demand",)
        return [c for c in every if all(satisfied(rule, {CAPACITY_TYPE: c}) for rule in said)]


class NodePools:
    """The kind `karpenter`."""

    calls: ClassVar[tuple[Call, ...]] = (LIST_NODE_POOLS, LIST_NODE_CLAIMS)

    def __init__(self, access: Access) -> None:
        self._account = access.account
        self._api = access.api
        self._warn = access.warn
        self._absent: datetime | None = None

    def list(self, nodes: Sequence[Node]) -> Sequence[NodeGroup]:
        """Return the groups. What cannot be read is none: others are asked instead.

        Without nodes nothing is asked: then the cluster does not answer.
        """
        now = self._account.now()
        if not nodes or (self._absent is not None and now < self._absent + ABSENT):
            return []
        try:
            pools = [*self._read(LIST_NODE_POOLS, _parse_pool)]
            claims = [*self._read(LIST_NODE_CLAIMS, _parse_claim)] if pools else []
        except NotFound:
            self._absent = now
            return []
        except PlimsollError as error:
            self._warn(f"{str(error).rstrip('.')}. Nothing is counted on of Karpenter.")
            self._absent = now if isinstance(error, Refused) else None
            return []
        return [
            _group(pool, capacity, [c for c in claims if c is not None], nodes)
            for pool in pools
            for capacity in pool.capacities()
        ]

    def grow(self, group: NodeGroup, add: int, zone: str | None, token: str) -> int:  # noqa: ARG002 - what it would be asked
        """Refuse: Karpenter is never asked."""
        raise Refused(
            f"grow {group.name} by {add}: Karpenter makes nodes for Pending pods by itself"
        )

    def _read[T](self, call: Call, parse: Callable[[Json], T]) -> Iterator[T]:
        for obj in self._api().list(call):
            try:
                yield parse(obj)
            except BadInput as error:  # it costs itself only
                self._warn(str(error))


@naming("NodePool")
def _parse_pool(obj: Raw) -> _Pool:
    pool = decoded(obj, Object[_PoolSpec, _PoolStatus])
    spec = pool.spec.template.spec
    return _Pool(
        name=pool.metadata.name,
        labels=pool.spec.template.metadata.labels,
        taints=spec.taints,
        rules=spec.requirements,
        requirements={r.key: r.values for r in spec.requirements if r.operator == "In"},
        limited=frozenset(pool.spec.limits),
        limits=Resources.parse(pool.spec.limits),
        used=Resources.parse(pool.status.resources),
        closed=_why_closed(pool),
    )


def _why_closed(pool: Object[_PoolSpec, _PoolStatus]) -> str | None:
    """Return why Karpenter leaves a NodePool out when it makes nodes for Pending pods.

    One whose EC2NodeClass is not Ready, is being deleted or does not exist is itself not Ready.
    kubernetes-sigs/karpenter, pkg/controllers/provisioning/provisioner.go and pkg/controllers/nodepool/readiness
    """
    if pool.metadata.deletion_timestamp:
        return "it is being deleted"
    if pool.spec.replicas is not None:
        return "it is static: spec.replicas says how many nodes it has"
    told = {c.type: c for c in pool.status.conditions if c.status != "True"}
    if "Ready" not in told:
        return None
    because = told.get("NodeClassReady") or told.get("ValidationSucceeded") or told["Ready"]
    return f"it is not Ready ({because.reason}: {because.message})"


@naming("NodeClaim")
def _parse_claim(obj: Raw) -> _Claim | None:
    claim = decoded(obj, Object[_ClaimSpec, _ClaimStatus])
    meta: Metadata = claim.metadata
    if meta.deletion_timestamp:
        return None
    last = claim.status.provider_id.rpartition("/")[2]
    launched = next((c for c in claim.status.conditions if c.type == "Launched"), None)
    created = Field(meta.creation_timestamp, "metadata.creationTimestamp").time_or_bound()
    if created is None:
        raise BadInput("metadata.creationTimestamp is missing")
    since = launched.last_transition_time if launched else ""
    told = Field(since, "status.conditions.lastTransitionTime").time_or_bound()
    zone, named = meta.labels.get(ZONE), meta.labels.get(INSTANCE_TYPE)
    failed = launched and launched.status != "True" and launched.reason not in _NOT_TRIED
    return _Claim(
        pool=meta.labels.get(NODE_POOL, ""),
        capacity=meta.labels.get(CAPACITY_TYPE, ""),
        instance=last if INSTANCE.fullmatch(last) else None,
        allocatable=Resources.parse(claim.status.allocatable),
        created=created,
        launched=told if launched and launched.status == "True" else None,
        refusal=refusal_of(
            "",
            f"{launched.reason}: {launched.message}",
            told or created,
            zone=zone,
            instance_type=named,
        )
        if launched and failed
        else None,
    )


def _group(
    pool: _Pool, capacity: str, claims: Iterable[_Claim], nodes: Sequence[Node]
) -> NodeGroup:
    """Return what a NodePool is when it buys in one way."""
    both = len(pool.capacities()) > 1
    mine = [c for c in claims if c.pool == pool.name and c.capacity in {capacity, ""}]
    known = [n for n in nodes if n.labels.get(NODE_POOL) == pool.name]
    allocatable = (
        _largest([c.allocatable for c in mine])
        or _largest([n.allocatable for n in known])
        or _of_other_nodes(pool, nodes)
    )
    left = _nodes_left(pool, allocatable)
    single = {key: values[0] for key, values in pool.requirements.items() if len(values) == 1}
    if all(rule.key != _OS for rule in pool.rules):
        single[_OS] = "linux"
    return NodeGroup(
        kind=NAME,
        name=f"{pool.name}/{capacity}" if both else pool.name,
        capacity="spot" if capacity == "spot" else "on-demand",
        zones=tuple(
            sorted(
                pool.requirements.get(ZONE)
                or {n.zone for n in known if n.zone}
                or {n.zone for n in nodes if n.zone}
            )
        ),
        desired=len(mine),
        min_size=0,
        max_size=len(mine) + left,
        instances=frozenset(c.instance for c in mine if c.instance),
        # Of more types than are named nothing is avoided: Karpenter chooses another one itself.
        instance_types=tuple(pool.requirements.get(INSTANCE_TYPE, ())),
        template=None
        if allocatable is None
        else NodeTemplate(
            labels={
                **{key: value for key, value in single.items() if key != ZONE},
                **pool.labels,
                NODE_POOL: pool.name,
                CAPACITY_TYPE: capacity,
            },
            taints=pool.taints,
            allocatable=allocatable,
            choices=(*pool.rules, *_gpu_limit(pool)),
        ),
        provisions=True,
        closed=pool.closed,
        asked=max((c.created for c in mine), default=None),
        launched={c.instance: c.launched for c in mine if c.instance and c.launched},
        refusals=tuple(
            sorted((c.refusal for c in mine if c.refusal), key=lambda r: r.at, reverse=True)
        ),
    )


def _largest(amounts: Sequence[Resources]) -> Resources | None:
    """Return the largest of the nodes that are known: Karpenter chooses a type that its pods fit on."""
    known = [a for a in amounts if a.cpu > 0 and a.memory > 0]
    return max(known, key=lambda a: (a.cpu, a.memory), default=None)


def _of_other_nodes(pool: _Pool, nodes: Sequence[Node]) -> Resources | None:
    """Return the size of the largest node of the cluster, for a NodePool that has none: no more than its limits leave.

    The devices of an instance type say nothing of another.
    """
    found = _largest([n.allocatable for n in nodes])
    if found is None:
        return None
    left = pool.left
    return replace(
        found,
        cpu=min(found.cpu, left.cpu) if "cpu" in pool.limited and left.cpu > 0 else found.cpu,
        memory=min(found.memory, left.memory)
        if "memory" in pool.limited and left.memory > 0
        else found.memory,
        extended=tuple(each for each in found.extended if not is_instance_device(each[0])),
    )


def _gpu_limit(pool: _Pool) -> Iterator[Requirement]:
    """Yield what a limit of GPUs demands of the next node."""
    if GPU in pool.limited:
        left = max(0, dict(pool.left.extended).get(GPU, 0))
        yield Requirement(key=GPU_COUNT, operator="Lte", values=(str(left),))


def _nodes_left(pool: _Pool, one: Resources | None) -> int:
    """Return how many nodes more the limits of a NodePool allow. Of other resources each node has its share."""
    left, found = pool.left, [UNLIMITED]
    if "cpu" in pool.limited and one:
        found.append(left.cpu // one.cpu)
    if "memory" in pool.limited and one:
        found.append(left.memory // one.memory)
    if "nodes" in pool.limited:
        found.append(dict(left.extended).get("nodes", 0))
    return max(0, min(found))
