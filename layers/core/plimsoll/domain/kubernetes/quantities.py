"""Kubernetes quantities, and bundles of them.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Final, Self

from plimsoll.domain.errors import BadInput

GPU: Final = "nvidia.com/gpu"
"""The resource that is a whole GPU."""
MIG_SLICES: Final = "nvidia.com/mig-"
"""How the names of resources begin that are slices of one."""
_SHAPE = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)"
)
_LONGEST = 64
_MOST = 2**63 - 1
"""Kubernetes caps a larger quantity at this."""
_SCALE: Mapping[str, Decimal] = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{s: Decimal(1000) ** i for i, s in enumerate("kMGTPE", 1)},
    **{f"{s}i": Decimal(1024) ** i for i, s in enumerate("KMGTPE", 1)},
}


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Decimal:
    """Return a quantity as a number of base units: cores, bytes, pieces.

    Raises:
        BadInput: it is not a quantity.
    """
    shape = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if shape is None:
        raise BadInput(
            f"{text[:_LONGEST]!r} is not a quantity; write for example 500m, 2, 1.5Gi or 128974848"
        )
    number, exponent, suffix = shape.groups()
    if exponent:
        return Decimal(number + exponent)
    return Decimal(number) * _SCALE[suffix or ""]


def _up(number: Decimal) -> int:
    if abs(number) >= _MOST:
        return _MOST if number > 0 else -_MOST
    return int(number.to_integral_value(rounding=ROUND_CEILING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Amounts of what a node has and a pod asks for. Each pod counts one in `pods`."""

    cpu: int = 0
    """Millicores."""
    memory: int = 0
    """Bytes."""
    pods: int = 0
    extended: tuple[tuple[str, int], ...] = ()
    """Everything else, by name and in order: ephemeral storage, GPUs, and so on."""

    @classmethod
    def parse(cls, amounts: Mapping[str, str | float], *, pods: int = 0) -> Self:
        """Read a Kubernetes resource list; `pods` is used where the list names none."""
        cpu, memory, extended = 0, 0, []
        for name, amount in amounts.items():
            quantity = parse_quantity(str(amount))
            if name == "cpu":
                cpu = _up(quantity * 1000)
            elif name == "memory":
                memory = _up(quantity)
            elif name == "pods":
                pods = _up(quantity)
            else:
                extended.append((name, _up(quantity)))
        return cls(cpu=cpu, memory=memory, pods=pods, extended=tuple(sorted(extended)))

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            cpu=self.cpu + other.cpu,
            memory=self.memory + other.memory,
            pods=self.pods + other.pods,
            extended=_merge(self.extended, other.extended, 1),
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            cpu=self.cpu - other.cpu,
            memory=self.memory - other.memory,
            pods=self.pods - other.pods,
            extended=_merge(self.extended, other.extended, -1),
        )

    def larger(self, other: Resources) -> Resources:
        """Return the larger amount of everything."""
        if other.within(self):
            return self
        extended = dict(self.extended)
        for name, amount in other.extended:
            extended[name] = max(amount, extended.get(name, 0))
        return Resources(
            cpu=max(self.cpu, other.cpu),
            memory=max(self.memory, other.memory),
            pods=max(self.pods, other.pods),
            extended=tuple(sorted(extended.items())),
        )

    def within(self, headroom: Resources) -> bool:
        """Whether this much fits into `headroom`; what is not asked for is not compared."""
        if self.cpu > headroom.cpu or self.memory > headroom.memory or self.pods > headroom.pods:
            return False
        if not self.extended:
            return True
        have = dict(headroom.extended)
        return all(amount <= have.get(name, 0) for name, amount in self.extended if amount)


def total_resources(amounts: Sequence[Resources]) -> Resources:
    """Return the sum of many amounts, faster than by adding one to the other."""
    cpu = memory = pods = 0
    extended: tuple[tuple[str, int], ...] = ()
    for each in amounts:
        cpu += each.cpu
        memory += each.memory
        pods += each.pods
        if each.extended:
            extended = _merge(extended, each.extended, 1)
    return Resources(cpu=cpu, memory=memory, pods=pods, extended=extended)


def _merge(
    mine: tuple[tuple[str, int], ...], other: tuple[tuple[str, int], ...], sign: int
) -> tuple[tuple[str, int], ...]:
    if not other:
        return mine
    total = dict(mine)
    for name, amount in other:
        total[name] = total.get(name, 0) + sign * amount
    return tuple(sorted(total.items()))
