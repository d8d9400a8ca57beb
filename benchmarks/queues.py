"""How fast the planner of the batch queues decides, from memory: no cluster is read or written.

Kueue's own shapes of workloads, under its quotas and policies, and a cluster of 10,000 nodes with a
million running pods. Run it from the repository:

    .venv/bin/python -m benchmarks.queues [--only NAME] [--scale N]

Seconds are of the process (CPU) and of the clock: on a machine that others use too only the first say
anything. Shapes: https://github.com/kubernetes-sigs/kueue/tree/main/test/performance/scheduler/configs
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, NamedTuple

from rich.console import Console

from benchmarks.output import machine, table
from plimsoll.domain.kubernetes import Node, Resources, Scheduling
from plimsoll_batch.domain.admission import QueuePlan, QueueState, plan_queues
from plimsoll_batch.domain.explanation import why
from plimsoll_batch.domain.jobs import Gang, Role, RunningGang, Shape
from plimsoll_batch.domain.quota import (
    Cohort,
    Flavor,
    Order,
    Preemption,
    Queue,
    QueueConfiguration,
    Quota,
    Reclaim,
    ResourceGroup,
    WithinQueue,
)
from tests.support.builders import NOON

CPU: Final = ("default", "cpu")
POLICY: Final = Preemption(within_queue=WithinQueue.LOWER_PRIORITY, reclaim=Reclaim.ANY)
EVERY: Final = timedelta(seconds=1)
"""Between two plans of a play, in its own time."""


class Kind(NamedTuple):
    """Workloads of one size in each queue: CPUs, seconds, priority, how many, seconds between them."""

    cpus: int
    runs: float
    priority: int
    number: int
    interval: float


BASELINE: Final = (
    Kind(1, 0.2, 50, 350, 0.1),
    Kind(5, 0.5, 100, 100, 0.5),
    Kind(20, 1.0, 200, 50, 1.2),
)
LARGE: Final = (
    Kind(1, 0.05, 50, 35, 0.02),
    Kind(5, 0.1, 100, 10, 0.05),
    Kind(20, 0.2, 200, 5, 0.2),
)


@dataclass
class Measured:
    """Seconds that were spent in the planner."""

    cpu: float = 0.0
    clock: float = 0.0
    plans: int = 0

    def call[T](self, act: Callable[[], T]) -> T:
        """Return what it returns."""
        cpu, clock = time.process_time(), time.perf_counter()
        found = act()
        self.cpu += time.process_time() - cpu
        self.clock += time.perf_counter() - clock
        self.plans += 1
        return found


def a_configuration(cohorts: int, queues: int, *, quota: int, order: Order) -> QueueConfiguration:
    nominal = Quota(nominal=quota * 1000, borrowing_limit=5 * quota * 1000)
    return QueueConfiguration(
        flavors=(Flavor(name="default"),),
        cohorts=tuple(Cohort(name=f"c{n}", order=order) for n in range(cohorts)),
        queues=tuple(
            Queue(
                name=f"c{c}-q{q}",
                cohort=f"c{c}",
                quotas={CPU: nominal},
                groups=(ResourceGroup(resources=("cpu",), flavors=("default",)),),
                preemption=POLICY,
            )
            for c in range(cohorts)
            for q in range(queues)
        ),
    )


def a_shape(cpu: int, *pods: int) -> Shape:
    scheduling = Scheduling(requests=Resources(cpu=cpu, pods=1))
    return Shape(
        roles=tuple(
            Role(name=f"r{n}", pods=each, scheduling=scheduling) for n, each in enumerate(pods)
        )
    )


def workloads(configuration: QueueConfiguration, kinds: Sequence[Kind]) -> list[Gang]:
    """Return all workloads, in the order in which they are created."""
    shapes = {kind: a_shape(kind.cpus * 1000, 1) for kind in kinds}
    made = [
        Gang(
            uid=f"{queue.name}/{kind.cpus}/{n}",
            namespace="bench",
            name=f"{queue.name}-{kind.cpus}-{n}",
            queue=queue.name,
            shape=shapes[kind],
            priority=kind.priority,
            since=NOON + timedelta(seconds=n * kind.interval),
            limit=timedelta(seconds=kind.runs),
        )
        for queue in configuration.queues
        for kind in kinds
        for n in range(kind.number)
    ]
    return sorted(made, key=lambda gang: gang.since)


def all_at_once(cohorts: int, queues: int, kinds: Sequence[Kind], order: Order) -> list[str]:
    """Let everything wait at once under quotas that hold it: each is admitted by a decision of its own."""
    configuration = a_configuration(cohorts, queues, quota=10_000, order=order)
    gangs = workloads(configuration, kinds)
    measured = Measured()
    plan = measured.call(
        lambda: plan_queues(QueueState(configuration=configuration, gangs=gangs), NOON)
    )
    assert len(plan.admitted) == len(gangs)
    return _row("all admitted in one plan", order, len(gangs), measured, len(gangs))


def played(cohorts: int, queues: int, kinds: Sequence[Kind], order: Order) -> list[str]:
    """Play Kueue's scenario in its own time, with a new plan each second: quotas of 20 CPUs."""
    configuration = a_configuration(cohorts, queues, quota=20, order=order)
    coming = workloads(configuration, kinds)[::-1]
    total, measured, now = len(coming), Measured(), NOON
    waiting: list[Gang] = []
    running: list[RunningGang] = []
    looked_at = stopped = 0
    while coming or waiting or running:
        while coming and coming[-1].since <= now:
            waiting.append(coming.pop())
        running = [each for each in running if (each.ends or now) > now]
        seen = QueueState(configuration=configuration, gangs=waiting, running=running)
        looked_at += len(waiting)
        plan = measured.call(lambda seen=seen, now=now: plan_queues(seen, now))  # type: ignore[misc]
        stopped += sum(len(each.victims) for each in plan.preempting)
        waiting, running = carried_out(plan, waiting, running)
        running += [
            RunningGang(gang=each.gang, admitted=now, usage=each.usage, on_nodes={})
            for each in plan.admitted
        ]
        now += EVERY
    took = (now - NOON).total_seconds()
    name = f"played: {measured.plans} plans, done after {took:.0f} s, {stopped} preempted"
    return _row(name, order, total, measured, looked_at)


def carried_out(
    plan: QueuePlan, waiting: Sequence[Gang], running: Sequence[RunningGang]
) -> tuple[list[Gang], list[RunningGang]]:
    """Return who waits and who runs once victims have stopped."""
    started = {each.gang.uid for each in plan.admitted}
    promised = {each.gang.uid for each in plan.preempting}
    for_whom = {v.holder.running.gang.uid: p.gang for p in plan.preempting for v in p.victims}
    left = [each for each in running if each.gang.uid not in for_whom]
    waits = [
        replace(gang, nominated=True) if gang.uid in promised else gang
        for gang in waiting
        if gang.uid not in started
    ]
    waits += [
        each.gang.stopped_for(for_whom[each.gang.uid])
        for each in running
        if each.gang.uid in for_whom
    ]
    return waits, left


def _row(name: str, order: Order, gangs: int, measured: Measured, decisions: int) -> list[str]:
    return [
        name,
        str(order),
        f"{gangs:,}",
        f"{measured.cpu:.2f}",
        f"{measured.clock:.2f}",
        f"{gangs / measured.cpu:,.0f}",
        f"{decisions / measured.cpu:,.0f}",
    ]


# --- A large cluster ------------------------------------------------------------------------------


def large_cluster(scale: int, seed: int = 1) -> QueueState:
    """Return a cluster of 10,000 nodes at a scale of 1: 700,000 pods of others, 50,000 gangs of 6 pods."""
    draw = random.Random(seed)
    count = 10_000 // scale
    nodes = [
        Node(
            name=f"n{n}",
            uid=f"n{n}",
            resource_version="",
            labels={"zone": "abc"[n % 3], "rack": f"r{n // 30}"},
            allocatable=Resources(cpu=96_000, memory=2**38, pods=150),
            zone="abc"[n % 3],
            created=NOON,
        )
        for n in range(count)
    ]
    sums = {node.name: Resources(cpu=70 * 400, pods=70) for node in nodes}
    configuration = a_configuration(
        10, 10, quota=7_000 // scale, order=Order.DOMINANT_RESOURCE_SHARE
    )
    names = [queue.name for queue in configuration.queues]
    held = a_shape(1000, 6)
    running = [
        RunningGang(
            gang=Gang(
                uid=f"run-{n}",
                namespace="bench",
                name=f"run-{n}",
                queue=draw.choice(names),
                shape=held,
                since=NOON,
                limit=timedelta(minutes=draw.randint(1, 600)),
            ),
            admitted=NOON,
            usage={CPU: 6000},
            on_nodes={f"n{(n * 3 + k) % count}": Resources(cpu=2000, pods=2) for k in range(3)},
        )
        for n in range(50_000 // scale)
    ]
    shapes = [
        a_shape(cpu, max(1, pods // 3), pods) if pods > 1 else a_shape(cpu, 1)
        for cpu in (500, 1000, 2000, 4000, 8000, 16_000)
        for pods in (1, 2, 4, 6, 8, 16)
    ]
    gangs = [
        Gang(
            uid=f"wait-{n}",
            namespace="bench",
            name=f"wait-{n}",
            queue=draw.choice(names),
            shape=draw.choice(shapes),
            priority=draw.choice((0, 0, 0, 10)),
            since=NOON + timedelta(milliseconds=n),
        )
        for n in range(150_000 // scale)
    ]
    return QueueState(
        configuration=configuration, gangs=gangs, running=running, nodes=nodes, sums=sums
    )


def large(scale: int, console: Console) -> None:
    seen = large_cluster(scale)
    before = _peak()
    measured = Measured()
    plan = measured.call(lambda: plan_queues(seen, NOON))
    pods = sum(len(each.place.pods) for each in plan.admitted if each.place is not None)
    reasons = Counter(each.reason.partition(":")[0] for each in plan.waiting).most_common(5)
    waits = next(each.gangs[0] for each in plan.waiting)
    asked = Measured()
    asked.call(lambda: why(seen, waits.uid, NOON))
    pods_running = sum(amount.pods for amount in seen.sums.values()) + 6 * len(seen.running)
    title = (
        f"{len(seen.nodes or ()):,} nodes, {pods_running:,} running pods, {len(seen.gangs):,} gangs"
    )
    shown = table(title, "", "CPU s", "clock s", "gangs admitted", "pods", "preempt", "reserve")
    shown.add_row(
        "one plan",
        f"{measured.cpu:.1f}",
        f"{measured.clock:.1f}",
        f"{len(plan.admitted):,}",
        f"{pods:,}",
        str(len(plan.preempting)),
        str(len(plan.reserved)),
    )
    shown.add_row(f"why {waits.name}", f"{asked.cpu:.2f}", f"{asked.clock:.2f}")
    console.print(shown)
    console.print(f"waiting, kinds by reason: {reasons}")
    console.print(f"peak memory {_peak()} MB, {before} MB of them before the plan")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--only", choices=("baseline", "large-scale", "cluster"))
    options.add_argument("--scale", type=int, default=1, help="Divide the large cluster by this.")
    chosen = options.parse_args()
    console = Console(width=150)
    console.print(machine())
    sizes = {"baseline": (5, 6, BASELINE), "large-scale": (10, 100, LARGE)}
    for name, (cohorts, queues, kinds) in sizes.items():
        if chosen.only in (None, name):
            title = f"{name}: {cohorts} cohorts of {queues} queues"
            columns = ("order", "workloads", "CPU s", "clock s", "workloads/s", "decisions/s")
            shown = table(title, "", *columns)
            for order in (Order.PRIORITY, Order.DOMINANT_RESOURCE_SHARE):
                for measure in (all_at_once, played):
                    shown.add_row(*measure(cohorts, queues, kinds, order))
            console.print(shown)
    if chosen.only in (None, "cluster"):
        large(chosen.scale, console)


if __name__ == "__main__":
    main()
