"""Workloads read into what a snapshot tells of them: counts, strategy, and where their pods may run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Raw, Struct

from plimsoll.adapters.kubernetes import schema as core
from plimsoll.adapters.kubernetes.decoding import Json, decoded, naming
from plimsoll.adapters.kubernetes.scheduling import read_scheduling
from plimsoll.domain.kubernetes import OwnerKind, Scheduling, matches
from plimsoll_agent import schema
from plimsoll_agent.wire_values import (
    Claimed,
    amounts_of_template,
    claimed,
    containers_of,
    counted,
    created_at,
    only,
    within_bounds,
)
from plimsoll_service.wire import snapshot as wire

JOB: Final = "Job"
CRON_JOB: Final = "CronJob"


class Owning(Struct, frozen=True):
    """A workload that owns itself, and the labels of its pods."""

    workload: wire.Workload
    labels: Mapping[str, str]


type Controller = Owning | Claimed


def reader_of(kind: str) -> Callable[[Json | Raw], Controller]:
    """Return what reads a workload of a kind whose pods a controller replaces."""

    @naming(kind)
    def read(obj: Raw) -> Controller:
        found = decoded(obj, core.Workload)
        owner = claimed(found.metadata)
        return owner or _replaced(kind, obj, found)

    return read


@naming(JOB)
def read_job(obj: Raw) -> Controller:
    """Read a Job."""
    read = decoded(obj, schema.Job)
    owner = claimed(read.metadata)
    return owner or _told(
        JOB,
        read.metadata,
        read.spec.template,
        replicas=counted(read.spec.parallelism),
        ready=counted(read.status.active),
    )


@naming(CRON_JOB)
def read_cron_job(obj: Raw) -> Controller:
    """Read a CronJob. Whether pods of it run now, its Jobs say."""
    read = decoded(obj, schema.CronJob)
    return _told(CRON_JOB, read.metadata, read.spec.job_template.spec.template)


def _replaced(kind: str, obj: Raw, read: core.Workload) -> Owning:
    spec, count = read.spec, decoded(obj, schema.Counted).status
    update = spec.strategy if kind == OwnerKind.DEPLOYMENT else spec.update_strategy
    rolling, default, surge, strategy = update.rolling_update, 1, 0, update.type
    if kind == OwnerKind.ROLLOUT:
        rolling = spec.strategy.canary
        strategy = "RollingUpdate" if spec.strategy.blue_green is None else "BlueGreen"
    if kind not in {OwnerKind.STATEFUL_SET, OwnerKind.DAEMON_SET}:
        default = surge = "25%"  # type: ignore[assignment] # a number of pods or a share of them
    daemons = kind == OwnerKind.DAEMON_SET
    return _told(
        kind,
        read.metadata,
        spec.template,
        template=containers_of(decoded(obj, core.Described[schema.Templated]).spec.template.spec),
        replicas=counted(count.desired_number_scheduled if daemons else spec.replicas),
        ready=counted(count.number_ready if daemons else count.ready_replicas),
        strategy=strategy,
        max_unavailable=default if rolling.max_unavailable is None else rolling.max_unavailable,
        max_surge=surge if rolling.max_surge is None else rolling.max_surge,
        claim_templates=bool(spec.volume_claim_templates),
    )


def _told(kind: str, meta: core.Metadata, pods: core.PodTemplate, **more: object) -> Owning:
    labels = pods.metadata.labels
    requests, limits = amounts_of_template(pods.spec)
    told = wire.Workload(
        uid=meta.uid,
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        requests=requests,
        limits=limits,
        placing=_placing(read_scheduling(pods.spec, labels), labels),
        annotations=only(wire.ANNOTATIONS, meta.annotations),
        created_at=created_at(meta),
        **more,  # type: ignore[arg-type] # held to it by `within_bounds`
    )
    return Owning(within_bounds(told), labels)


def _placing(found: Scheduling, labels: Mapping[str, str]) -> wire.Placing:
    """Return what pods demand of their place, and whether there is more than can be told."""
    terms = found.node_terms
    own = [
        term
        for term in found.anti_affinity
        if not term.namespaces
        and term.namespace_selector is None
        and matches(term.selector, labels)
    ]
    hard = [constraint for constraint in found.spread if constraint.hard]
    told = [c for c in hard if c.min_domains is None and matches(c.selector, labels)]
    return wire.Placing(
        node_selector=dict(found.node_selector),
        node_terms=tuple(
            tuple(
                wire.Requirement(key=r.key, operator=r.operator, values=r.values)  # type: ignore[arg-type] # held to it by `within_bounds`
                for r in term.expressions
            )
            for term in terms or ()
        ),
        tolerations=tuple(
            wire.Toleration(key=t.key, operator=t.operator, value=t.value, effect=t.effect)  # type: ignore[arg-type] # held to it by `within_bounds`
            for t in found.tolerations
        ),
        apart=tuple(dict.fromkeys(term.topology_key for term in own)),
        spread=tuple(
            wire.Spread(topology_key=c.topology_key, max_skew=max(1, c.max_skew)) for c in told
        ),
        unstated=bool(
            found.affinity
            or found.host_ports
            or any(amount for _, amount in found.requests.extended)
            or len(own) < len(found.anti_affinity)
            or len(told) < len(hard)
            or terms == ()
            or any(term.fields or not term.expressions for term in terms or ())
        ),
    )
