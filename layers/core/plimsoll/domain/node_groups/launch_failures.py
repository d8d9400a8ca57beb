"""Why a node group did not get the nodes that it was asked for: a closed union, each with its cure.

Refusals are told apart by what would be refused too. Want of capacity is of an instance type in a zone, in
whatever group; a quota is of the account; the others are of the group itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

from plimsoll.domain.errors import Refused

LONGEST_WHY_CHARACTERS: Final = 300
"""Characters that are kept of AWS's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """What refusals have in common."""

    at: datetime
    """When it was told, or read where AWS does not say when."""
    why: str
    """In AWS's words."""
    zone: str | None = None
    """Where, as far as AWS says."""
    instance_type: str | None = None
    """Which type was refused, as far as AWS says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InsufficientCapacity(_Refusal):
    """EC2 has no such instances in the zone now, or not for this price."""

    kind: ClassVar[str] = "insufficient-capacity"
    cure: ClassVar[str] = (
        "give the cluster a group of another instance family, or the group more types and zones"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VcpuQuota(_Refusal):
    """The account may run no more vCPUs of this family and capacity type in the region."""

    kind: ClassVar[str] = "vcpu-quota"
    cure: ClassVar[str] = (
        "ask Service Quotas for more vCPUs of this family, on-demand and spot each have their own quota"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMaximum(_Refusal):
    """The group has as many nodes as its owner allows."""

    kind: ClassVar[str] = "group-maximum"
    cure: ClassVar[str] = (
        "raise the maximum of the group, or let another group grow (tag plimsoll.dev/grow)"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFreeAddresses(_Refusal):
    """A subnet of the group has no address left for an instance."""

    kind: ClassVar[str] = "no-free-addresses"
    cure: ClassVar[str] = "give the group a larger or another subnet in the zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTemplateBroken(_Refusal):
    """What the group launches from names something that does not exist, or is not allowed."""

    kind: ClassVar[str] = "launch-template-broken"
    cure: ClassVar[str] = (
        "correct the launch template: its image, security groups, profile and key must exist"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchesThrottled(_Refusal):
    """EC2 takes so many requests of the account no faster: the group tries again by itself."""

    kind: ClassVar[str] = "launches-throttled"
    cure: ClassVar[str] = (
        "ask AWS for a higher rate of RunInstances, or find who else launches in this account"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRefusal(_Refusal):
    """A reason that is none of the others."""

    kind: ClassVar[str] = "other"
    cure: ClassVar[str] = "see what AWS says of it, here and in the scaling activities of the group"


type Refusal = (
    InsufficientCapacity
    | VcpuQuota
    | GroupMaximum
    | NoFreeAddresses
    | LaunchTemplateBroken
    | LaunchesThrottled
    | OtherRefusal
)


class NotGrown(Refused):
    """A group got none of the nodes that it was asked for; `refusals` say why, and what to do."""

    def __init__(self, what: str, *refusals: Refusal) -> None:
        super().__init__(f"{what}: {'; '.join(dict.fromkeys(r.why for r in refusals))}")
        self.refusals = refusals


def refusal_advice(group: str, refusal: Refusal) -> str:
    """Return in words who refused, why, and what cures it."""
    where = f" in {refusal.zone}" if refusal.zone else ""
    why = refusal.why.rstrip(".")
    return f"{group} was refused{where} ({refusal.kind}): {why}. Cure: {refusal.cure}"
