"""LimitRanges: what each namespace allows its containers and pods to request, and what admission fills in.

A namespace may have several, and a pod has to pass all of them: here they become one. A LimitRange that cannot
be read leaves its namespace unknown, because advice without it might be refused.

https://kubernetes.io/docs/concepts/policy/limit-range/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from plimsoll.adapters.kubernetes import schema as core
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import Resources
from plimsoll_agent.wire_values import amounts
from plimsoll_service.wire import snapshot as wire

_POD: Final = "Pod"
_CONTAINER: Final = "Container"


class Limited(Struct, frozen=True, kw_only=True):
    """What the LimitRanges of a namespace say together."""

    told: wire.LimitRanges | None = wire.LimitRanges()
    """None: one of them cannot be read."""
    requests: wire.Amounts = wire.Amounts()
    """Of a container that states none."""
    limits: wire.Amounts = wire.Amounts()


@naming("LimitRange")
def read_limit_range(obj: Raw) -> tuple[str, Limited]:
    """Read what a LimitRange says of its namespace."""
    namespace = decoded(obj, core.Named).metadata.namespace
    try:
        items = decoded(obj, core.LimitRange).spec.limits
        return namespace, reduce(_both, map(_limited, items), Limited())
    except BadInput:
        return namespace, Limited(told=None)


def by_namespace(found: Iterable[tuple[str, Limited]]) -> Mapping[str, Limited]:
    """Return what holds in each namespace that has LimitRanges."""
    joined: dict[str, Limited] = {}
    for namespace, each in found:
        joined[namespace] = _both(joined.get(namespace, Limited()), each)
    return joined


def with_limit_ranges(workload: wire.Workload, limited: Limited) -> wire.Workload:
    """Return a workload as the LimitRanges of its namespace will have its pods."""
    return replace(
        workload,
        limit_ranges=limited.told,
        template=tuple(
            replace(
                container,
                requests=_each(_first, container.requests, limited.requests),
                limits=_each(_first, container.limits, limited.limits),
            )
            for container in workload.template
        ),
    )


def _limited(item: core.LimitItem) -> Limited:
    most = amounts(Resources.parse(item.max))
    bounds = wire.Bounds(
        least=amounts(Resources.parse(item.min)),
        most=wire.Amounts(  # 0 would be no bound
            cpu_m=max(most.cpu_m, int("cpu" in item.max)),
            memory=max(most.memory, int("memory" in item.max)),
        ),
        ratio=_thousandths(item.max_limit_request_ratio),
    )
    if item.type == _POD:
        return Limited(told=wire.LimitRanges(pod=bounds))
    if item.type != _CONTAINER:
        return Limited()
    return Limited(
        told=wire.LimitRanges(container=bounds),
        requests=amounts(Resources.parse(item.default_request)),
        limits=amounts(Resources.parse(item.default)),
    )


def _thousandths(ratio: core.Amounts) -> wire.Amounts:
    cpu, memory = (Resources.parse({"cpu": ratio.get(each, 0)}).cpu for each in ("cpu", "memory"))
    return amounts(Resources(cpu=cpu, memory=memory))


def _both(one: Limited, other: Limited) -> Limited:
    """Return what passes both.

    Of two defaults admission takes either. The larger request and the smaller limit are the safe ones:
    no request is lowered by mistake, and none is advised above its limit.
    """
    told = None
    if one.told is not None and other.told is not None:
        told = wire.LimitRanges(
            container=_stricter(one.told.container, other.told.container),
            pod=_stricter(one.told.pod, other.told.pod),
        )
    return Limited(
        told=told,
        requests=_each(max, one.requests, other.requests),
        limits=_each(_smaller, one.limits, other.limits),
    )


def _stricter(one: wire.Bounds, other: wire.Bounds) -> wire.Bounds:
    return wire.Bounds(
        least=_each(max, one.least, other.least),
        most=_each(_smaller, one.most, other.most),
        ratio=_each(_smaller, one.ratio, other.ratio),
    )


def _each(pick: Callable[[int, int], int], one: wire.Amounts, other: wire.Amounts) -> wire.Amounts:
    return wire.Amounts(cpu_m=pick(one.cpu_m, other.cpu_m), memory=pick(one.memory, other.memory))


def _first(one: int, other: int) -> int:
    return one or other


def _smaller(one: int, other: int) -> int:
    """Return the smaller of two bounds; 0 is none."""
    return min(filter(None, (one, other)), default=0)
