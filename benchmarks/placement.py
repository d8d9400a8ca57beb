"""How long a placement plan takes, from memory: up to 10,000 nodes and 1,000,000 pods.

Each size runs in a process of its own, for its peak of memory. Run it from the repository:

    .venv/bin/python -m benchmarks.placement [--runs 3] [--shares 0.01 0.1 1]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import statistics
import time
from itertools import product

from rich.console import Console

from benchmarks.output import machine, spread, table
from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    DELETION_COST,
    HOSTNAME,
    INSTANCE_TYPE,
    MIN_ON_DEMAND,
    POD_TEMPLATE_HASH,
    Node,
    Pod,
    Ref,
    ReplicaSet,
    Resources,
    Scheduling,
    Selector,
    SpreadConstraint,
    Workload,
)
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import MOST_MOVES, Layout, label_key, plan_placement
from plimsoll.services.collector import collector_paused
from tests.support.builders import NOON

NODES, WORKLOADS, REPLICAS = 10_000, 20_000, 50
FAMILIES = 12
LAYOUT = Layout(1, 2)
FLOOR = "30%"


STATES = ("first", "steady", "storm")
"""No pod has its deletion cost yet; nothing is to be changed; what stood on spot-1 stands on on-demand."""
STEPS = {"first": None, "steady": 0, "storm": MOST_MOVES}
"""How many steps a plan has, so that what is measured is what is meant."""


def cluster(share: float, state: str) -> Observation:
    """Return a cluster of this share of the full size, its workloads spread as the state says."""
    nodes = [node(number) for number in range(int(NODES * share))]
    workloads, pods, replica_sets = [], [], {}
    for number in range(int(WORKLOADS * share)):
        workload, replica_set = workload_of(number)
        workloads.append(workload)
        replica_sets[replica_set.ref] = replica_set
        pods += [pod(workload, replica_set, replica, nodes, state) for replica in range(REPLICAS)]
    return Observation(
        cluster="harbor", nodes=nodes, pods=pods, workloads=workloads, replica_sets=replica_sets
    )


def pod(
    workload: Workload, replica_set: ReplicaSet, replica: int, nodes: list[Node], state: str
) -> Pod:
    where = (int(workload.uid.partition("-")[2]) * REPLICAS + replica) % len(nodes)
    if state == "storm" and nodes[where].labels[label_key(LAYOUT)] == "spot-1":
        where -= where % 3  # the on-demand node beside it
    costs = state != "first" and nodes[where].capacity == "on-demand"
    return Pod(
        namespace=workload.ref.namespace,
        name=f"{replica_set.ref.name}-{replica}",
        generate_name=f"{replica_set.ref.name}-",
        uid=f"{workload.uid}-{replica}",
        resource_version="1",
        labels={**workload.selector.labels, POD_TEMPLATE_HASH: replica_set.hash},
        annotations={DELETION_COST: "1000"} if costs else {},
        owner=Ref(*replica_set.ref),
        node=nodes[where].name,
        phase="Running",
        ready=True,
        created=NOON,
        scheduling=workload.scheduling,
    )


def node(number: int) -> Node:
    on_demand = number % 3 == 0
    return Node(
        name=f"node-{number}",
        uid=f"node-{number}",
        resource_version="1",
        labels={
            HOSTNAME: f"node-{number}",
            CAPACITY_LABELS[0]: "on-demand" if on_demand else "spot",
            INSTANCE_TYPE: f"f{number % FAMILIES}.large",
            label_key(LAYOUT): "on-demand"
            if on_demand
            else f"spot-{number % LAYOUT.spot_groups + 1}",
        },
        allocatable=Resources(cpu=64_000, memory=256 << 30, pods=250),
        capacity="on-demand" if on_demand else "spot",
        created=NOON,
    )


def workload_of(number: int) -> tuple[Workload, ReplicaSet]:
    namespace, name = f"team-{number % 200}", f"app-{number}"
    spread = SpreadConstraint(
        max_skew=1,
        topology_key=label_key(LAYOUT),
        hard=True,
        selector=Selector(labels={"app": name}),
        match_label_keys=(POD_TEMPLATE_HASH,),
        node_taints_policy="Honor",
    )
    requests = Resources(cpu=100 + number % 50, memory=128 << 20, pods=1)
    workload = Workload(
        ref=Ref("Deployment", namespace, name),
        uid=name,
        resource_version="1",
        selector=Selector(labels={"app": name}),
        replicas=REPLICAS,
        scheduling=Scheduling(requests=requests, spread=(spread,)),
        annotations={MIN_ON_DEMAND: FLOOR},
    )
    replica_set = ReplicaSet(
        ref=Ref("ReplicaSet", namespace, f"{name}-abc"),
        uid=f"{name}-abc",
        hash="abc",
        controller=workload.ref,
        controller_uid=workload.uid,
    )
    return workload, replica_set


def measure(share: float, state: str, runs: int) -> tuple[list[float], ...]:
    """Return seconds of plans, of processor in them, and the peak of memory in GB."""
    plans, processor = [], []
    for _ in range(runs):
        seen = cluster(share, state)
        began, used = time.perf_counter(), time.process_time()
        with collector_paused():  # as the service does
            found = plan_placement(seen, NOON)
        plans.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
        if STEPS[state] not in {None, len(found.steps)}:
            raise SystemExit(f"{state}: {len(found.steps)} steps, {found.held}")
        del seen, found  # beside the next run's they would double the peak of memory
    return plans, processor, [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1, 1.0])
    chosen = parser.parse_args()
    console = Console(width=110)
    console.print(
        f"{machine('plimsoll')}; {chosen.runs} runs each; target 10 s and 2 GB for the largest"
    )
    headings = "state nodes pods median fastest slowest processor memory"
    shown = table(f"placement plan, a floor of {FLOOR} for every workload", *headings.split())
    for state, share in product(STATES, chosen.shares):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            plans, *others = pool.apply(measure, (share, state, chosen.runs))
        processor, gigabytes = map(statistics.median, others)
        shown.add_row(
            state,
            f"{NODES * share:,.0f}",
            f"{WORKLOADS * REPLICAS * share:,.0f}",
            *spread(plans),
            f"{processor:.2f} s",
            f"{gigabytes:.2f} GB",
        )
    console.print(shown)


if __name__ == "__main__":
    main()
