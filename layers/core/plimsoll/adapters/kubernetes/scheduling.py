"""The part of a pod's spec that decides where it may run, read once for all pods of a template.

Pods of one template say the same, and a cluster has thousands of them. What decides is written as
text, and read through a cache keyed by that text: two pods share a `Scheduling` only if they really
say the same, also where a webhook or an in-place resize made one pod differ from its template.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, reduce
from operator import add
from typing import Final

import msgspec

from plimsoll.adapters.kubernetes import schema
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import (
    MATCHES_NOTHING,
    NodeTerm,
    PodTerm,
    Requirement,
    Resources,
    Scheduling,
    Selector,
    SpreadConstraint,
)

_LONGEST: Final = 16 * 1024
"""Characters of all that decides together: what it costs to evaluate it for a node or a pod grows with
them. Four times the largest that charts write."""
_EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - a word of the API
_VALUES: Final = 1000
"""The most values in one selector."""


class _Decisive(msgspec.Struct, omit_defaults=True):
    spec: schema.Placing
    claims: tuple[str, ...] = ()
    ephemeral: tuple[str, ...] = ()
    held: tuple[tuple[str, schema.Amounts], ...] = ()
    """(container, what it holds), where that is not what it asks for: while it is resized."""
    infeasible: bool = False
    """Whether its node is too small for what it asks for: then what it holds counts alone."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Affinity between pods alone looks at them."""


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(_Decisive)


def read_scheduling(
    spec: schema.PodSpec,
    labels: Mapping[str, str],
    pod: str = "",
    status: schema.PodStatus | None = None,
) -> Scheduling:
    """Read a pod spec.

    Args:
        spec: of a pod or a template.
        labels: of the same.
        pod: its name, of which ephemeral volumes make their claims; empty where a replacement gets new ones.
        status: of a pod, which holds what it was given until a resize is done.

    Raises:
        BadInput: a field is wrong; the message names it.
    """
    near = spec.affinity is not None and (
        spec.affinity.pod_affinity.required or spec.affinity.pod_anti_affinity.required
    )
    decisive = _Decisive(
        spec=msgspec.convert(spec, schema.Placing, from_attributes=True),
        claims=tuple(_claims(spec.volumes, pod)),
        ephemeral=() if pod else tuple(v.name for v in spec.volumes if v.ephemeral is not None),
        held=() if status is None else tuple(_held(spec, status)),
        infeasible=status is not None and _infeasible(status),
        # Labels are kept only if affinity looks at them: they differ from
        # Job to Job, and other pods of one template share a reading.
        labels=dict(labels) if near else {},
    )
    text = _ENCODER.encode(decisive)
    if len(text) > _LONGEST:
        raise BadInput(f"spec: its scheduling takes {len(text)} characters, more than {_LONGEST}")
    return _read(text)


def read_selector(selector: schema.LabelSelector | None, where: str = "selector") -> Selector:
    """Read a label selector; an absent one selects nothing, an empty one everything.

    Raises:
        BadInput: it names more values than anybody means.
    """
    if selector is None:
        return MATCHES_NOTHING
    if sum(len(line.values) for line in selector.match_expressions) > _VALUES:
        raise BadInput(f"{where}: names more than {_VALUES} values")
    return Selector(labels=selector.match_labels, requirements=selector.match_expressions)


def read_resources(amounts: Mapping[str, str | float], where: str, *, pods: int = 0) -> Resources:
    """Read a resource list; `pods` is used where it names none.

    Raises:
        BadInput: an amount is no quantity; the message begins with `where`.
    """
    try:
        return Resources.parse(amounts, pods=pods)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from error


@lru_cache(maxsize=16_384)
def _read(text: bytes) -> Scheduling:
    decisive = _DECODER.decode(text)
    spec, labels = decisive.spec, decisive.labels
    affinity = spec.affinity or schema.Affinity()
    required = affinity.node_affinity.required
    return Scheduling(
        requests=_requests(decisive),
        node_selector=spec.node_selector,
        node_terms=None if required is None else read_node_terms(required),
        tolerations=spec.tolerations,
        affinity=tuple(_pod_terms(affinity.pod_affinity, labels)),
        anti_affinity=tuple(_pod_terms(affinity.pod_anti_affinity, labels)),
        spread=tuple(_spread(spec)),
        claims=decisive.claims,
        ephemeral=decisive.ephemeral,
        host_ports=tuple(sorted(set(_host_ports(spec)))),
        devices=bool(spec.resource_claims),
    )


def _claims(volumes: tuple[schema.PodVolume, ...], pod: str) -> Iterator[str]:
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None and pod:
            yield f"{pod}-{volume.name}"


def _held(spec: schema.Placing, status: schema.PodStatus) -> Iterator[tuple[str, schema.Amounts]]:
    """Yield what containers hold that differs from what they ask for.

    kube-scheduler looks at neither where a status has no `resources`.
    https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/
    """
    asked = {c.name: c.resources.requests for c in (*spec.init_containers, *spec.containers)}
    for one in (*status.init_container_statuses, *status.container_statuses):
        if one.resources is None:
            continue
        for held in (one.allocated_resources, one.resources.requests):
            if held and (held != asked.get(one.name) or _infeasible(status)):
                yield one.name, held


def _infeasible(status: schema.PodStatus) -> bool:
    pending = (c for c in status.conditions if c.type == "PodResizePending")
    return any(condition.reason == "Infeasible" for condition in pending)


def _requests(decisive: _Decisive) -> Resources:
    """Return what a pod asks for: its containers together, or its greediest moment of starting.

    Init containers with restartPolicy Always stay, so they count beside the containers and beside
    every init container after them. A limit without a request is a request. A container that is
    resized counts with the larger of what it asks for and what it holds, with the latter alone
    where its node is too small for what it asks for.
    https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
    https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
    """
    spec, staying, starting = decisive.spec, Resources(), Resources()
    # The order matters: a sidecar counts beside the init containers after it, not beside those before it.
    for number, item in enumerate(spec.init_containers):
        asks = _asks(item, f"spec.initContainers[{number}]")
        if stays(item):
            asks = _with_held(asks, item, decisive)
            staying += asks
            starting = starting.larger(staying)
        else:
            starting = starting.larger(staying + asks)
    asked = (
        _with_held(_asks(item, f"spec.containers[{n}]"), item, decisive)
        for n, item in enumerate(spec.containers)
    )
    total = reduce(add, asked, staying).larger(starting)
    whole = spec.resources.requests
    if whole:
        # Requests of the pod as a whole stand in place of the sum, resource by resource.
        said = read_resources(whole, "spec.resources.requests")
        total = Resources(
            cpu=said.cpu if "cpu" in whole else total.cpu,
            memory=said.memory if "memory" in whole else total.memory,
            extended=tuple(sorted({**dict(total.extended), **dict(said.extended)}.items())),
        )
    total += read_resources(spec.overhead, "spec.overhead")
    return Resources(cpu=total.cpu, memory=total.memory, pods=1, extended=total.extended)


def _asks(container: schema.Container, where: str) -> Resources:
    said = container.resources
    return read_resources(said.limits | said.requests, f"{where}.resources.requests")


def stays(container: schema.Container) -> bool:
    """Whether an init container is a sidecar: it runs beside the containers."""
    return container.restart_policy == "Always"


def _with_held(asks: Resources, container: schema.Container, decisive: _Decisive) -> Resources:
    held = [
        read_resources(amounts, "status.containerStatuses")
        for name, amounts in decisive.held
        if name == container.name
    ]
    return reduce(Resources.larger, held if held and decisive.infeasible else [asks, *held])


def read_node_terms(selector: schema.NodeSelector) -> tuple[NodeTerm, ...]:
    """Read the terms of a node selector, of which any may hold."""
    return tuple(
        NodeTerm(expressions=term.match_expressions, fields=term.match_fields)
        for term in selector.node_selector_terms
    )


def _pod_terms(affinity: schema.PodAffinity, labels: Mapping[str, str]) -> Iterator[PodTerm]:
    for term in affinity.required:
        selector = read_selector(term.label_selector)
        # The API server adds these keys to the stored selector; a template has not been through it.
        extra = [
            Requirement(key=key, operator=operator, values=(labels[key],))
            for keys, operator in (
                (term.match_label_keys, "In"),
                (term.mismatch_label_keys, "NotIn"),
            )
            for key in keys
            if key in labels
        ]
        wide = term.namespace_selector
        yield PodTerm(
            topology_key=term.topology_key,
            selector=Selector(
                labels=selector.labels,
                requirements=(
                    *selector.requirements,
                    *(r for r in extra if r not in selector.requirements),
                ),
            ),
            namespaces=term.namespaces,
            namespace_selector=None if wide is None else read_selector(wide),
        )


def _spread(spec: schema.Placing) -> Iterator[SpreadConstraint]:
    for item in spec.topology_spread_constraints:
        yield SpreadConstraint(
            max_skew=item.max_skew,
            topology_key=item.topology_key,
            hard=item.when_unsatisfiable == "DoNotSchedule",
            selector=read_selector(item.label_selector),
            min_domains=item.min_domains,
            match_label_keys=item.match_label_keys,
            node_affinity_policy=item.node_affinity_policy,
            node_taints_policy=item.node_taints_policy,
        )


def _host_ports(spec: schema.Placing) -> Iterator[tuple[str, int, str]]:
    """Yield the ports taken on the host; on the host's network every named port is one."""
    for item in (*filter(stays, spec.init_containers), *spec.containers):
        for port in item.ports:
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number:
                yield port.protocol, number, "" if port.host_ip == _EVERY_ADDRESS else port.host_ip
