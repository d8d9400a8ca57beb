"""The part of a pod's spec that decides where it may run, read once for all pods of a template.

Pods of one template say the same, and a cluster has thousands of them. What decides is cut out,
written as text, and read through a cache keyed by that text: two pods share a `Scheduling` only if
they really say the same, also where a webhook or an in-place resize made one pod differ from its
template.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache, reduce
from operator import add
from typing import Any

from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field
from plimsoll.domain.pods import (
    NodeTerm,
    PodTerm,
    Requirement,
    Scheduling,
    Selector,
    SpreadConstraint,
    Toleration,
)
from plimsoll.domain.quantities import Resources
from plimsoll.domain.selectors import NOTHING

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_WHOLE = (
    "affinity",
    "hostNetwork",
    "nodeSelector",
    "overhead",
    "resources",
    "tolerations",
    "topologySpreadConstraints",
)
_OF_CONTAINER = ("ports", "resources", "restartPolicy")
_LONGEST = 16 * 1024
"""Characters of all that decides together: what it costs to evaluate it for a node or a pod grows with
them. Four times the largest that charts write."""
_TERMS = 20
_TOLERATIONS = 100
_EXPRESSIONS = 100
_VALUES = 1000
"""The most of each in one list, and of values in one selector."""


def read_scheduling(spec: Field, labels: Mapping[str, str], pod: str = "") -> Scheduling:
    """Read a pod spec. `pod` is the pod's name, of which ephemeral volumes make their claims.

    Raises:
        BadInput: a field is wrong; the message names it.
    """
    decisive: dict[str, Any] = {key: spec.value[key] for key in _WHOLE if key in (spec.value or ())}
    for key in ("containers", "initContainers"):
        decisive[key] = [
            {part: item[part].value for part in _OF_CONTAINER} for item in spec[key].each()
        ]
    if decisive.get("affinity"):
        decisive["labels"] = dict(labels)
    if spec["volumes"]:
        decisive["claims"] = list(_claims(spec["volumes"], pod))
    text = json.dumps(decisive)
    if len(text) > _LONGEST:
        raise BadInput(f"spec: its scheduling takes {len(text)} characters, more than {_LONGEST}")
    return _read(text)


def read_selector(field: Field) -> Selector:
    """Read a label selector; an absent one selects nothing, an empty one everything."""
    if field.value is None:
        return NOTHING
    requirements = tuple(_requirements(field["matchExpressions"]))
    if sum(len(requirement.values) for requirement in requirements) > _VALUES:
        raise BadInput(f"{field.path}: names more than {_VALUES} values")
    return Selector(labels=field["matchLabels"].pairs(), requirements=requirements)


@lru_cache(maxsize=16_384)
def _read(text: str) -> Scheduling:
    spec = Field(json.loads(text), "spec")
    affinity = spec["affinity"]
    labels = spec["labels"].pairs()
    return Scheduling(
        requests=_requests(spec),
        node_selector=spec["nodeSelector"].pairs(),
        node_terms=_node_terms(affinity["nodeAffinity"][_REQUIRED]),
        tolerations=tuple(_tolerations(spec["tolerations"])),
        affinity=tuple(_pod_terms(affinity["podAffinity"][_REQUIRED], labels)),
        anti_affinity=tuple(_pod_terms(affinity["podAntiAffinity"][_REQUIRED], labels)),
        spread=tuple(_spread(spec["topologySpreadConstraints"])),
        claims=spec["claims"].texts(),
        host_ports=tuple(sorted(set(_host_ports(spec)))),
    )


def _claims(volumes: Field, pod: str) -> Iterator[str]:
    for volume in volumes.each():
        if volume["persistentVolumeClaim"]:
            yield volume["persistentVolumeClaim"]["claimName"].text()
        elif volume["ephemeral"] and pod:
            yield f"{pod}-{volume['name'].text()}"


def _requests(spec: Field) -> Resources:
    """Return what a pod asks for: its containers together, or its greediest moment of starting.

    Init containers with restartPolicy Always stay, so they count beside the containers and beside
    every init container after them. A limit without a request is a request.
    https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
    https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
    """
    staying, starting = Resources(), Resources()
    for item in spec["initContainers"].each():
        asks = _asks(item)
        if item["restartPolicy"].value == "Always":
            staying += asks
            starting = _larger(starting, staying)
        else:
            starting = _larger(starting, staying + asks)
    running = reduce(add, map(_asks, spec["containers"].each()), staying)
    total = _larger(running, starting)
    whole = spec["resources"]["requests"]
    if whole:
        # Requests of the pod as a whole stand in place of the sum, resource by resource.
        said = whole.resources()
        total = Resources(
            cpu=said.cpu if "cpu" in whole.value else total.cpu,
            memory=said.memory if "memory" in whole.value else total.memory,
            extended=tuple(sorted({**dict(total.extended), **dict(said.extended)}.items())),
        )
    total += spec["overhead"].resources()
    return Resources(cpu=total.cpu, memory=total.memory, pods=1, extended=total.extended)


def _asks(container: Field) -> Resources:
    resources = container["resources"]
    limits, requests = resources["limits"], resources["requests"]
    if not limits:
        return requests.resources()
    limits.resources()
    return Field({**limits.value, **(requests.value or {})}, resources.path).resources()


def _larger(one: Resources, other: Resources) -> Resources:
    mine, yours = dict(one.extended), dict(other.extended)
    return Resources(
        cpu=max(one.cpu, other.cpu),
        memory=max(one.memory, other.memory),
        extended=tuple(
            (name, max(mine.get(name, 0), yours.get(name, 0))) for name in sorted({*mine, *yours})
        ),
    )


def _requirements(field: Field) -> Iterator[Requirement]:
    for item in field.each(_EXPRESSIONS):
        yield Requirement(
            key=item["key"].text(),
            operator=item["operator"].text(),
            values=item["values"].texts(),
        )


def _node_terms(field: Field) -> tuple[NodeTerm, ...] | None:
    if field.value is None:
        return None
    return tuple(
        NodeTerm(
            expressions=tuple(_requirements(term["matchExpressions"])),
            fields=tuple(_requirements(term["matchFields"])),
        )
        for term in field["nodeSelectorTerms"].each()
    )


def _tolerations(field: Field) -> Iterator[Toleration]:
    for item in field.each(_TOLERATIONS):
        yield Toleration(
            key=item["key"].text(),
            operator=item["operator"].text() or "Equal",
            value=item["value"].text(),
            effect=item["effect"].text(),
        )


def _pod_terms(field: Field, labels: Mapping[str, str]) -> Iterator[PodTerm]:
    for term in field.each(_TERMS):
        selector = read_selector(term["labelSelector"])
        # The API server adds these keys to the stored selector; a template has not been through it.
        extra = [
            Requirement(key=key, operator=operator, values=(labels[key],))
            for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
            for key in term[name].texts()
            if key in labels
        ]
        wide = term["namespaceSelector"]
        yield PodTerm(
            topology_key=term["topologyKey"].text(),
            selector=Selector(
                labels=selector.labels,
                requirements=(
                    *selector.requirements,
                    *(r for r in extra if r not in selector.requirements),
                ),
            ),
            namespaces=term["namespaces"].texts(),
            namespace_selector=None if wide.value is None else read_selector(wide),
        )


def _spread(field: Field) -> Iterator[SpreadConstraint]:
    for item in field.each(_TERMS):
        least = item["minDomains"]
        yield SpreadConstraint(
            max_skew=item["maxSkew"].whole(1),
            topology_key=item["topologyKey"].text(),
            hard=item["whenUnsatisfiable"].text("DoNotSchedule") == "DoNotSchedule",
            selector=read_selector(item["labelSelector"]),
            min_domains=None if least.value is None else least.whole(),
            match_label_keys=item["matchLabelKeys"].texts(),
            node_affinity_policy=item["nodeAffinityPolicy"].text("Honor"),
            node_taints_policy=item["nodeTaintsPolicy"].text("Ignore"),
        )


def _host_ports(spec: Field) -> Iterator[tuple[str, int]]:
    """Yield the ports taken on the host; on the host's network every named port is one."""
    shared = spec["hostNetwork"].flag()
    for item in spec["containers"].each():
        for port in item["ports"].each():
            number = port["hostPort"].whole() or (port["containerPort"].whole() if shared else 0)
            if number:
                yield port["protocol"].text("TCP"), number
