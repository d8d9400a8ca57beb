"""Draws situations of real clusters: databases, shared files, checkpoints, slow starts, headroom that balloons hold.

Fields that are drawn one by one seldom agree to one of these. The shares are about what clusters on spot have.
All is drawn after the rest of a storm, so a seed that draws nothing here is the storm that it was before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, Final

from plimsoll.domain.kubernetes import HOSTNAME, ZONE
from plimsoll_simulation.scenario.timeline import NoticeEntry, ScaleEntry
from plimsoll_simulation.storms.chance import chance
from plimsoll_simulation.storms.model import Rollout, Storm
from plimsoll_simulation.storms.placement import HALF, FreeCapacity
from plimsoll_simulation.storms.workload import CUSTOM, SCALED, Workload

BALLOONS: Final = 0.1
"""The share of storms in which pods of negative priority hold the headroom on demand."""
BOUND: Final = 0.5
"""The share of storms with a situation in which all pods of its workload stand on nodes that go."""
LONG_STOPS: Final = 0.15
"""The share of databases and file servers that take long to stop."""
LONG_SECONDS: Final = 30
"""What a pod has to stop by default: who takes longer has an owner who chose its grace period."""
UNTOLD: Final = 0.02
"""The share of workloads with long stop times of which neither an annotation nor a preStop hook tells. Who waits for
connections to end has a hook for it, and the stop times of a database are observed when it is next restarted."""
HOOKED: Final = 0.4
"""Of the others without a claim, the share with a hook that sleeps."""
OPERATED: Final = 0.25
"""The share of databases that a custom resource makes."""
BALLOON_PRIORITY: Final = -10
"""Of overprovisioning pods, as the FAQ of Cluster Autoscaler has it."""
_DATABASE_GRACES: Final = (120, 180, 600, 600, 1800, 604_800)
"""Redis and Kafka, Elasticsearch, Prometheus, CloudNativePG, RabbitMQ."""
_QUORUMS: Final = (3, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Situation:
    """Something that workloads of some kinds may be in."""

    share: float
    """Of all storms."""
    kinds: AbstractSet[str]
    replicas: int = 1
    """At least so many."""
    draw: Callable[[random.Random, Workload], Workload]
    other_controllers: tuple[str, ...] = ()
    """Who acts in it."""


def with_situations(rnd: random.Random, storm: Storm) -> Storm:
    """Return a storm in which workloads may be in situations, each in one at most."""
    concerned: list[str] = []
    for situation in _SITUATIONS:
        if not chance(rnd, situation.share):
            continue
        taken = {*_owners_act_on(storm), *concerned}
        may = [
            w
            for w in storm.workloads
            if w.kind in situation.kinds
            and w.replicas >= situation.replicas
            and w.name not in taken
        ]
        if may:
            old = rnd.choice(may)
            new = situation.draw(rnd, old)
            storm = replace(
                storm,
                workloads=tuple(new if w is old else w for w in storm.workloads),
                other_controllers=tuple(
                    dict.fromkeys((*storm.other_controllers, *situation.other_controllers))
                ),
            )
            concerned.append(new.name)
    storm = replace(storm, workloads=tuple(_telling(rnd, w) for w in storm.workloads))
    balloons = chance(rnd, BALLOONS)
    bound = concerned if concerned and chance(rnd, BOUND) else []
    return _placed(rnd, storm, bound, balloons=balloons) if bound or balloons else storm


def _owners_act_on(storm: Storm) -> Iterator[str]:
    """Yield the workloads that the timeline names: it names their kind, too."""
    for event in storm.events:
        match event:
            case ScaleEntry():
                yield event.scale.name
            case Rollout():
                yield event.workload
            case _:
                pass


def _database(rnd: random.Random, workload: Workload) -> Workload:
    """Return a database of three or five members with a volume each, of which a majority has to serve."""
    members = max(n for n in _QUORUMS if n <= workload.replicas)
    slow = chance(rnd, LONG_STOPS)
    return _anew(
        workload,
        kind=CUSTOM if chance(rnd, OPERATED) else "StatefulSet",
        replicas=members,
        volumes=True,
        parallel=chance(rnd, 0.5),
        grace_seconds=rnd.choice(_DATABASE_GRACES),
        stop_seconds=rnd.choice((45, 60, 90) if slow else (3, 5, 10, 10, 20)),
        startup_seconds=rnd.choice((5, 15, 25, 40)),
        budget=rnd.choice(
            (*[("maxUnavailable", 1)] * 2, ("minAvailable", members // 2 + 1), None),
        ),
        spread=rnd.choice((None, ZONE, HOSTNAME)),
        soft=True,
    )


def _file_server(rnd: random.Random, workload: Workload) -> Workload:
    """Return a Deployment whose replicas share a file system."""
    slow = chance(rnd, LONG_STOPS)
    return replace(
        workload,
        shared=True,
        grace_seconds=rnd.choice((60, 120, 120, 300)),
        stop_seconds=rnd.choice((40, 55) if slow else (3, 5, 10)),
        stated=False,
        budget=rnd.choice((("maxUnavailable", 1), ("minAvailable", 1), None)),
    )


def _checkpoint(rnd: random.Random, workload: Workload) -> Workload:
    """Return a Job that writes a checkpoint when it is asked to stop; its grace period allows for that."""
    grace = rnd.choice((60, 90, 115))
    stop = grace - rnd.choice((2, 10, 30))
    return _anew(workload, kind="Job", grace_seconds=grace, stop_seconds=stop)


def _slow_start(rnd: random.Random, workload: Workload) -> Workload:
    """Return a server that takes long to be Ready, under an autoscaler."""
    return replace(
        workload,
        startup_seconds=rnd.choice((40, 50, 60)),
        autoscaled=(workload.replicas, 2 * workload.replicas),
        operated=False,
    )


_SITUATIONS: Final = (
    _Situation(share=0.25, kinds={*SCALED, CUSTOM}, replicas=min(_QUORUMS), draw=_database),
    _Situation(share=0.1, kinds={"Deployment"}, draw=_file_server),
    _Situation(share=0.1, kinds={*SCALED, "Job"}, draw=_checkpoint),
    _Situation(
        share=0.1, kinds={"Deployment"}, replicas=2, draw=_slow_start, other_controllers=("hpa",)
    ),
)


def _anew(workload: Workload, **changes: Any) -> Workload:
    """Return another workload of this name and size."""
    kept = ("name", "replicas", "cpu", "startup_seconds", "priority")
    return Workload(**{name: getattr(workload, name) for name in kept} | changes)


def _telling(rnd: random.Random, workload: Workload) -> Workload:
    """Return a workload of which something tells that it takes long to stop, if it does."""
    real = workload.real_stop_seconds
    may_finish = workload.kind in {"Job", "Pod"}  # these have their whole grace period
    if real <= LONG_SECONDS or may_finish or workload.stated:
        return workload
    claim = workload.volumes or workload.shared
    if chance(rnd, UNTOLD):
        return workload
    if not claim and chance(rnd, HOOKED):
        return replace(workload, hook_seconds=real - rnd.choice((5, 10, 20)))
    return replace(workload, stated=True)


def _placed(rnd: random.Random, storm: Storm, bound: Sequence[str], *, balloons: bool) -> Storm:
    """Return a storm whose pods stand on named nodes: those of some workloads on nodes that all go.

    As it was where they do not fit.
    """
    room = FreeCapacity(storm.groups)
    base = [n for g in storm.groups if g.capacity == "on-demand" for n in _nodes(storm, g.name)]
    events, on = storm.events, {}
    ends = [(n, e) for n, e in enumerate(events) if isinstance(e, NoticeEntry) and e.nodes.group]
    if bound and ends:
        number, event = rnd.choice(ends)
        goes = _nodes(storm, str(event.nodes.group))
        every = event.nodes.model_copy(update={"count": len(goes)})
        events = (
            *events[:number],
            event.model_copy(update={"nodes": every}),
            *events[number + 1 :],
        )
        on = dict.fromkeys(bound, goes)
    pods = [w for w in storm.workloads if w.kind != "DaemonSet"]
    pods.sort(key=lambda w: (w.name not in on, -w.cpu))
    nodes = room.place(pods, on, last=base if balloons else ())
    if nodes is None:
        return storm
    workloads = [replace(w, nodes=nodes.get(w.name, ()), soft=True) for w in storm.workloads]
    size = rnd.choice((2, 1, 3, 4))
    if balloons and (held := room.fill(base, size)):
        workloads.append(_balloon(held, size))
    return replace(storm, events=events, workloads=tuple(workloads))


def _nodes(storm: Storm, group: str) -> Sequence[str]:
    size = next(g.size for g in storm.groups if g.name == group)
    return [f"{group}-{number + 1}" for number in range(size)]


def _balloon(nodes: tuple[str, ...], size: int) -> Workload:
    """Return pods that do nothing but hold room on these nodes."""
    return Workload(
        kind="Deployment",
        name="balloon",
        replicas=len(nodes),
        cpu=size * HALF - 50,
        grace_seconds=0,
        stop_seconds=0,
        startup_seconds=2,
        priority=BALLOON_PRIORITY,
        on_demand=True,
        nodes=nodes,
    )
