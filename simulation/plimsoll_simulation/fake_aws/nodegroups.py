"""A node group of a drill's fleet, as it is declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Final, Literal, override

from pydantic import AfterValidator, Field, GetPydanticSchema
from pydantic_core.core_schema import (
    no_info_after_validator_function,
    plain_serializer_function_ser_schema,
)

from plimsoll.domain.kubernetes import names
from plimsoll_simulation.declared import Contradiction, Declared, Label, Quantity, Word
from plimsoll_simulation.durations import Duration, DurationOrRange, Span

type Capacity = Literal["on-demand", "spot"]
type GroupKind = Literal["asg", "eks-nodegroup", "karpenter", "static"]
KARPENTER: Final = "karpenter"


def each_once[T](given: tuple[T, ...]) -> tuple[T, ...]:
    """Return a list in which nothing stands twice.

    Raises:
        ValueError: something does.
    """
    if len(set(given)) < len(given):
        raise ValueError("something stands twice")
    return given


type Zones = Annotated[
    tuple[Word, ...],
    Field(min_length=1, json_schema_extra={"uniqueItems": True}),
    AfterValidator(each_once),
]

SET_BY_RIG: Final = frozenset(
    {names.ZONE, names.HOSTNAME, names.INSTANCE_TYPE, *names.CAPACITY_LABELS}
)
"""Node labels that a scenario cannot set."""


class Allocatable(Declared, extra="allow"):
    """The resources of a node that pods can use. Extended resources may be added by name."""

    __pydantic_extra__: dict[
        str,
        Annotated[Quantity, Field(description="An extended resource, or ephemeral-storage.")],
    ]
    cpu: Quantity
    """Cores."""
    memory: Quantity
    """Bytes."""
    pods: Quantity = "110"
    """How many pods; default 110."""


class Taint(Declared):
    """A taint on the nodes."""

    key: Word
    """Its key."""
    value: Annotated[str, Field(max_length=63)] = ""
    """Its value; default empty."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    """What it does to pods that do not tolerate it."""


def _checked(model: type[Declared]) -> GetPydanticSchema:
    """Check a mapping as this model does, and keep it a mapping: a rig hands it on as JSON."""
    return GetPydanticSchema(
        lambda _, handler: no_info_after_validator_function(
            dict, handler(model), serialization=plain_serializer_function_ser_schema(dict)
        )
    )


class NodeGroupSpec(Declared):
    """Nodes of one kind that grow together."""

    name: Label
    """Its name, once in a cluster."""
    kind: GroupKind
    """What it is in AWS: an Auto Scaling group (asg), an EKS managed node group (eks-nodegroup), nodes of a Karpenter NodePool, which the controller karpenter makes and takes away (karpenter), or nodes that cannot grow (static)."""
    capacity: Capacity
    """How its instances are bought."""
    instance_type: Word
    """The EC2 instance type."""
    zones: Zones
    """Availability zones; nodes are placed in them in turn."""
    size: Annotated[int, Field(ge=0, le=5000)]
    """How many nodes it has at the start."""
    max: Annotated[int, Field(ge=0, le=5000)] = Field(
        default_factory=lambda data: data.get("size", 0)
    )
    """How many it may grow to; default size."""
    startup: DurationOrRange = Span(least=timedelta(seconds=70), most=timedelta(seconds=70))
    """From the request for capacity to the node's Ready; default 70s. A range such as 50s..90s is drawn from by the seed."""
    allocatable: Annotated[Mapping[str, str], _checked(Allocatable)]
    """The resources of a node that pods can use. Extended resources may be added by name."""
    devices_after: Duration = timedelta()
    """How long after its Ready the device plugins of a node that joins after time 0 report: so long it has no extended resources; default 0s."""
    labels: dict[str, Annotated[str, Field(max_length=63)]] = Field(default_factory=dict)
    """Extra node labels. Capacity, zone, instance type and host name are set by the rig."""
    taints: tuple[Annotated[Mapping[str, str], _checked(Taint)], ...] = ()
    """Taints of its nodes; default none."""
    renew: bool = False
    """Whether it has the tag plimsoll.dev/renew, which lets Plimsoll terminate empty nodes; default false."""
    price: Annotated[float, Field(gt=0, le=10_000)] = 1.0
    """USD per hour of one on-demand instance of this type, also where the group is spot; default 1.0. Used for the cost figure only."""

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        if self.size > self.max:
            yield Contradiction(
                path=("size",),
                found=f"size {self.size} over max {self.max}",
                allowed=f"at most {self.max}",
                cure="Raise max or lower size",
            )
        if self.kind == "static" and self.max > self.size:
            yield Contradiction(
                path=("max",),
                found=f"max {self.max} over size {self.size} in a static group",
                allowed=f"{self.size}, since a static group cannot grow",
                cure="Remove max, or write kind: asg",
            )
        if self.kind == KARPENTER and self.renew:
            yield Contradiction(
                path=("renew",),
                found="renew in a group of the kind karpenter",
                allowed="false: a NodePool has no such tag",
                cure="Remove renew; what Karpenter made, Karpenter takes away",
            )
        for key in self.labels.keys() & SET_BY_RIG:
            yield Contradiction(
                path=("labels", key),
                found=f"the label {key}",
                allowed="labels that the rig does not set itself",
                cure="Remove it; capacity, zones and instanceType of the group decide it",
            )
