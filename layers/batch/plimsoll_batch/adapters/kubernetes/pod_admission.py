"""The pods of a template as admission will make them: a suspended Job has none that show it.

Admission adds the defaults of LimitRanges to containers, and the overhead, node selector and tolerations of a
RuntimeClass to pods. It refuses pods outside the bounds of a LimitRange.
https://kubernetes.io/docs/concepts/policy/limit-range/, https://kubernetes.io/docs/concepts/containers/runtime-class/,
https://github.com/kubernetes/kubernetes/blob/v1.34.0/plugin/pkg/admission/limitranger/admission.go
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from plimsoll.adapters.kubernetes import schema
from plimsoll.adapters.kubernetes.collection import Collection
from plimsoll.adapters.kubernetes.decoding import decoded, naming
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.scheduling import read_scheduling
from plimsoll.domain.errors import MissingRights
from plimsoll.domain.kubernetes import parse_quantity
from plimsoll_batch.adapters.kubernetes.calls import LIST_LIMIT_RANGES, LIST_RUNTIME_CLASSES

type _Amounts = Mapping[str, Decimal]


class _Overhead(Struct, rename="camel", omit_defaults=True):
    pod_fixed: schema.Amounts = msgspec.field(default_factory=dict)


class RuntimeClass(schema.Named, kw_only=True):
    """What a RuntimeClass adds to pods."""

    overhead: _Overhead = msgspec.field(default_factory=_Overhead)
    scheduling: schema.Placing = msgspec.field(default_factory=schema.Placing)
    """Its node selector and tolerations."""


@naming("RuntimeClass")
def read_runtime_class(obj: Raw) -> RuntimeClass:
    """Read a RuntimeClass."""
    return decoded(obj, RuntimeClass)


@naming("LimitRange")
def read_limit_range(obj: Raw) -> schema.LimitRange:
    """Read a LimitRange."""
    return decoded(obj, schema.LimitRange)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAdmission:
    """What admission does to the pods of a cluster."""

    limits: Mapping[str, Sequence[schema.LimitItem]] = field(default_factory=dict)
    """By namespace, of all its LimitRanges."""
    runtimes: Mapping[str, RuntimeClass] | None = None
    """By name; None: nobody could read them, and none counts."""

    @classmethod
    def read(cls, requests: Requests, warn: Callable[[str], None]) -> PodAdmission:
        """Read it from a cluster; without the rights, nothing counts, and that is told."""
        try:
            ranges = Collection(LIST_LIMIT_RANGES, read_limit_range).list(requests, warn)
            classes = Collection(LIST_RUNTIME_CLASSES, read_runtime_class).list(requests, warn)
        except MissingRights as error:
            warn(f"LimitRanges and RuntimeClasses do not count for suspended Jobs: {error}")
            return cls()
        limits = defaultdict[str, list[schema.LimitItem]](list)
        for each in ranges:
            limits[each.metadata.namespace] += each.spec.limits
        return cls(limits=limits, runtimes={each.metadata.name: each for each in classes})

    def admitted(
        self, namespace: str, spec: schema.PodSpec
    ) -> tuple[schema.PodSpec, Sequence[str]]:
        """Return the spec that a pod of a template will have, and why it would be refused, in words.

        Of several defaults for one resource admission takes any: here the larger request and the smaller limit.
        """
        items = self.limits.get(namespace, ())
        refused: list[str] = []
        if items:
            spec = _with_defaults(spec, items)
            refused += _against(spec, items)
        if spec.runtime_class_name and self.runtimes is not None:
            runtime = self.runtimes.get(spec.runtime_class_name)
            if runtime is None:
                refused.append(f"there is no RuntimeClass {spec.runtime_class_name}")
            else:
                spec = _on_runtime(spec, runtime)
        return spec, refused


def _on_runtime(spec: schema.PodSpec, runtime: RuntimeClass) -> schema.PodSpec:
    placing = runtime.scheduling
    return replace(
        spec,
        overhead=runtime.overhead.pod_fixed,
        node_selector=spec.node_selector | placing.node_selector,
        tolerations=(*spec.tolerations, *placing.tolerations),
    )


def _with_defaults(spec: schema.PodSpec, items: Sequence[schema.LimitItem]) -> schema.PodSpec:
    requests: schema.Amounts = {}
    limits: schema.Amounts = {}
    for item in items:
        if item.type == "Container":  # an API server fills in the same when it takes a LimitRange
            most = item.max | item.default
            limits = _merged(min, limits, most)
            requests = _merged(max, requests, item.min | most | item.default_request)

    def filled(container: schema.Container) -> schema.Container:
        said = container.resources
        resources = schema.ResourceRequirements(
            limits=limits | said.limits,
            requests=requests | said.limits | said.requests,  # a limit alone is a request
        )
        return replace(container, resources=resources)

    return replace(
        spec,
        containers=tuple(map(filled, spec.containers)),
        init_containers=tuple(map(filled, spec.init_containers)),
    )


def _merged(
    pick: Callable[..., str | float], one: schema.Amounts, other: schema.Amounts
) -> schema.Amounts:
    both = one.keys() & other.keys()
    return one | other | {name: pick(one[name], other[name], key=_number) for name in both}


def _against(spec: schema.PodSpec, items: Sequence[schema.LimitItem]) -> Iterator[str]:
    """Yield what is refused of a pod with its defaults."""
    for container in (*spec.init_containers, *spec.containers):
        limits = _read(container.resources.limits)
        for name, request in _read(container.resources.requests).items():
            if request > limits.get(name, request):
                yield f"container {container.name} requests more {name} than the default limit of a LimitRange"
    for item in items:
        if item.type == "Container":
            for container in (*spec.init_containers, *spec.containers):
                said = container.resources
                what = f"container {container.name}"
                yield from _beyond(item, what, _read(said.requests), _read(said.limits))
        elif item.type == "Pod":
            yield from _beyond(item, "the pod", _total(spec), _total(_by_limits(spec)))


def _beyond(
    item: schema.LimitItem, what: str, requests: _Amounts, limits: _Amounts
) -> Iterator[str]:
    for name, least in _read(item.min).items():
        if requests.get(name, -1) < least or limits.get(name, least) < least:
            yield f"a LimitRange refuses {what}: its {name} is below {item.min[name]}"
    for name, most in _read(item.max).items():
        if name not in limits or max(limits[name], requests.get(name, limits[name])) > most:
            yield f"a LimitRange refuses {what}: its limit of {name} is not at most {item.max[name]}"
    for name, ratio in _read(item.max_limit_request_ratio).items():
        if not 0 < limits.get(name, 0) <= ratio * requests.get(name, 0):
            yield f"a LimitRange refuses {what}: its limit of {name} is over {ratio} times its request"


def _by_limits(spec: schema.PodSpec) -> schema.PodSpec:
    """Return a spec whose requests are its limits."""

    def limited(said: schema.ResourceRequirements) -> schema.ResourceRequirements:
        return schema.ResourceRequirements(requests=said.limits)

    return replace(
        spec,
        resources=limited(spec.resources),
        containers=tuple(replace(c, resources=limited(c.resources)) for c in spec.containers),
        init_containers=tuple(
            replace(c, resources=limited(c.resources)) for c in spec.init_containers
        ),
    )


def _total(spec: schema.PodSpec) -> _Amounts:
    """Return what a pod requests; what is zero is left out."""
    asked = read_scheduling(replace(spec, overhead={}), {}).requests
    all_of = {"cpu": Decimal(asked.cpu) / 1000, "memory": Decimal(asked.memory)}
    all_of |= {name: Decimal(amount) for name, amount in asked.extended}
    return {name: amount for name, amount in all_of.items() if amount}


def _number(quantity: str | float) -> Decimal:
    return parse_quantity(str(quantity))


def _read(amounts: schema.Amounts) -> _Amounts:
    return {name: _number(quantity) for name, quantity in amounts.items()}
