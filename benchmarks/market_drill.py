"""Two hours on a drawn spot market: what three rules cost, and how long they leave too few pods Ready.

A workload of ten pods that take 170 s to start stands on three spot families in three zones, and on on-demand. For an hour
nothing happens, so that placement tells the admission policy how to spread them; then two hours of the market are played,
beside an autoscaler that adds on-demand nodes for Pending pods. Run it from the repository:

    .venv/bin/python -m benchmarks.market_drill [--market storm] [--seeds 1 2]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import fmean
from typing import Any, Final, override

from rich.console import Console

from benchmarks.drills import ZONES, drill, group, workload
from benchmarks.output import machine, table
from plimsoll.domain.kubernetes import FLOORS, INJECT_FLOORS, KEEP_READY, MIN_ON_DEMAND, NAMESPACE
from plimsoll.domain.placement import INJECTION_CANARIES, injection_key
from plimsoll_cli.cluster.install_policy import manifests
from plimsoll_simulation.fake_aws.spot_market import MARKETS, Change
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.drill import Drill

FAMILIES: Final = ("c5", "m5", "r5")
HOUR: Final = 3600
CALM, PLAYED = HOUR, 2 * HOUR
REPLICAS: Final = 10
KEPT: Final = 6
RULES: Final[Mapping[str, Mapping[str, str]]] = {
    "no floor": {},
    "auto": {MIN_ON_DEMAND: "auto"},
    "keep-ready 60%": {KEEP_READY: "60%"},
}
"""Rule -> the annotations of the workload."""


class Injecting(Simulation):
    """A drill in whose cluster the admission policy is installed, for the namespace `default`."""

    @override
    def prepare(self) -> None:
        # Before the first run of placement, and after the rig has made the namespaces.
        self.clock.at(self.clock.now(), self._install)
        super().prepare()

    def _install(self) -> None:
        for rig_cluster in self.rig_clusters.values():
            rig_cluster.cluster.apply([*_policy()], now=self.clock.now())


def _policy() -> Iterator[Any]:
    for namespace in (NAMESPACE, "default"):
        labels = {INJECT_FLOORS: "true"}
        yield {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": labels},
        }
        metadata = {"name": FLOORS, "namespace": namespace}
        told = {injection_key(canary): entry for canary, entry in INJECTION_CANARIES.items()}
        data = told if namespace == NAMESPACE else {}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    yield from manifests()


def slow(annotations: Mapping[str, str]) -> Any:
    """Return the Deployment, with what its owner states."""
    made = workload(0, REPLICAS, cpu="1500m")
    made["metadata"]["annotations"] = dict(annotations)
    # So that the ready floor, below which drills count seconds, is what is promised.
    unavailable = {"maxUnavailable": REPLICAS - KEPT, "maxSurge": 1}
    made["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": unavailable}
    template = made["spec"]["template"]
    times = {"drill.plimsoll.dev/startup": "170s", "drill.plimsoll.dev/stop": "5s"}
    template["metadata"]["annotations"] = times
    return made


def timeline(market: str, seed: int) -> Iterator[Any]:
    """Yield the notices of two hours of a market, and for how long each pool refuses launches."""
    trace = MARKETS[market].draw(seed, 1, FAMILIES, ZONES)
    for pool, changes in trace.items():
        nodes = {"group": f"spot-{pool.family}", "zone": pool.zone}
        end = Change(PLAYED, up=True)
        for lost, back in pairwise([*changes, end]):
            if not lost.up and lost.second < PLAYED:
                at = f"{CALM + lost.second}s"
                lasts = f"{max(1, min(back.second, PLAYED) - lost.second)}s"
                yield {"at": at, "fault": "insufficient-capacity", "nodes": nodes, "for": lasts}
                yield {"at": at, "notice": "spot-interruption", "nodes": nodes}


def read(rule: str, market: str, seed: int) -> Drill:
    """Return the drill of one rule."""
    spot = [group(f"spot-{family}", "spot", family, 3, 6) for family in FAMILIES]
    return drill(
        horizon=f"{CALM + PLAYED}s",
        groups=[group("base", "on-demand", "m6i", 2, 12, renew=True), *spot],
        objects=[slow(RULES[rule])],
        timeline=sorted(timeline(market, seed), key=lambda each: int(each["at"][:-1])),
        of_cluster={"autoscaler": {}},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--market", choices=MARKETS, default="storm")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    chosen = parser.parse_args()
    console = Console(width=110)
    console.print(machine("plimsoll"))
    headings = ("cost", f"below {KEPT}", f"below {REPLICAS}", "fewest Ready", "killed")
    shown = table(f"two hours of {chosen.market}, mean of {len(chosen.seeds)}", "rule", *headings)
    for rule in RULES:
        cost, below, missing, fewest, killed = zip(
            *(played(rule, chosen.market, seed) for seed in chosen.seeds), strict=True
        )
        shown.add_row(
            rule,
            f"{fmean(cost):.2f}",
            f"{fmean(below):.0f} s",
            f"{fmean(missing):.0f} s",
            str(min(fewest)),
            str(sum(killed)),
        )
    console.print(shown)


def played(rule: str, market: str, seed: int) -> tuple[float, float, float, int, int]:
    """Return the cost of all on on-demand, seconds below the promise and below all replicas, and the fewest Ready."""
    with Injecting(read(rule, market, seed), responder="plimsoll", seed=seed) as simulation:
        report = simulation.run()
    (web,) = report["workloads"]
    return (
        report["totals"]["cost_vs_all_on_demand"],
        web["seconds_below_floor"],
        web["seconds_below_replicas"],
        web["min_ready"],
        web["pods_killed"],
    )


if __name__ == "__main__":
    main()
