"""A month of a cluster in virtual time: how its on-demand floors fare, and how much stands on spot.

Every function runs on its schedule over the hollow cluster. Two Deployments have a floor; their
autoscaler follows the hours of the day, each is rolled out three times a day, and spot comes and goes by
a synthetic market, drawn by the seed. In the market each instance family is calm or short: calm, each
instance is reclaimed once in twenty days, and another stands in for it three minutes later; once in
four days on average a family is short for two hours, loses all its instances, and gets none. Once in
ten days all families are short together, for an hour. Another autoscaler brings an on-demand node for
pods that are Pending, and takes one away when all pods would fit without it. Run it from the repository:

    .venv/bin/python -m benchmarks.month [--days 30] [--seed 1]
"""

from __future__ import annotations

import argparse
import math
import random
import time
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from benchmarks.output import table
from plimsoll.domain.kubernetes import MIN_ON_DEMAND
from plimsoll.domain.placement import ON_DEMAND, floor_of
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll_cli.plan.snippet import pod_spec
from tests.support.scheduled import DEPLOYMENTS, ScheduledCluster
from tests.support.workload_sets import WiredServices, deployment

FAMILIES: Final = ("m5", "c5", "r5", "m6i")
OF_EACH: Final = 2
BASE: Final = 3
"""On-demand nodes that always stand."""
DAY: Final = 24 * 60
CALM: Final = 1 / (20 * DAY)
"""Chance of a calm instance to be reclaimed, each minute."""
SHORT: Final = 1 / (4 * DAY)
SHORT_MINUTES: Final = 120
ALL_SHORT: Final = 1 / (10 * DAY)
ALL_SHORT_MINUTES: Final = 60
RETURNS: Final = 3
ROLLOUTS: Final = (9 * 60, 13 * 60, 17 * 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """A workload with a floor, scaled over the day."""

    name: str
    least: int
    most: int
    floor: str

    def replicas(self, minute: int) -> int:
        """Return what its autoscaler wants: least at four in the morning, most at four in the afternoon."""
        share = 0.5 - 0.5 * math.cos(2 * math.pi * (minute - 4 * 60) / DAY)
        return round(self.least + share * (self.most - self.least))


APPS: Final = (
    App(name="web", least=9, most=18, floor="3"),
    App(name="api", least=8, most=12, floor="25%"),
)


@dataclass(kw_only=True)
class Account:
    """What a month comes to, for one workload."""

    keep: int
    below: int = 0
    pods: int = 0
    """Pod-minutes, of all Ready pods; and those on spot."""
    spot: int = 0
    may: int = 0
    """Pod-minutes that could have stood on spot with the floor kept."""


class Month(ScheduledCluster):
    """The cluster, its market and its autoscaler."""

    def __init__(self, seed: int) -> None:
        super().__init__(WiredServices())
        self.draw = random.Random(seed)
        self.number = 0
        self.short: dict[str, int] = {}
        """Family -> until which minute it is short."""
        self.coming: list[tuple[int, str]] = []
        self.going: list[tuple[int, str]] = []
        self.reclaimed = 0
        for _ in range(BASE):
            self.join("od")
        for family in FAMILIES * OF_EACH:
            self.join(family)
        self.accounts: dict[str, Account] = {}
        for app in APPS:
            self.start(app)
        self.pass_minutes(10)

    def start(self, app: App) -> None:
        """Let a workload state its floor, take the constraint of the snippet, and be autoscaled."""
        manifest = deployment(app.name, replicas=app.least)
        manifest["metadata"]["annotations"] = {MIN_ON_DEMAND: app.floor}
        self.wired.apply(manifest, self.scaler(app))
        self.wired.placement.run()
        workload = next(w for w in self.seen.workloads if w.ref.name == app.name)
        found = floor_of(workload)
        self.accounts[app.name] = Account(keep=found.keep)
        manifest["spec"]["template"]["spec"] |= pod_spec(workload, found)
        self.patch(f"{DEPLOYMENTS}/{app.name}", {"spec": manifest["spec"]})

    def scaler(self, app: App) -> dict[str, object]:
        """Return the autoscaler of a workload; `minute` plays its metrics."""
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app.name}
        return {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": app.name, "namespace": "default"},
            "spec": {
                "minReplicas": app.least,
                "maxReplicas": app.most,
                "scaleTargetRef": target,
            },
        }

    def join(self, family: str) -> None:
        """Let a node join: of a spot family, or `od` for on-demand."""
        self.number += 1
        name = f"{family}-{self.number}"
        if family == "od":
            self.wired.join(name, cpu="4")
        else:
            self.join_spot(name, family, cpu="4")

    def minute(self) -> None:
        """Let one minute of the month pass."""
        now = self.minutes
        self.market(now)
        for app in APPS:
            if now % 15 == 0:
                self.scale(app.name, app.replicas(now))
            if now % DAY in ROLLOUTS:
                self.roll_out(app.name)
        self.autoscale()
        self.pass_minutes(1)
        self.measure()

    def market(self, now: int) -> None:
        """Let families become short, reclaim instances, and bring back what is not short."""
        if self.draw.random() < ALL_SHORT:
            self.short |= dict.fromkeys(FAMILIES, now + ALL_SHORT_MINUTES)
        for family in FAMILIES:
            if self.draw.random() < SHORT:
                self.short[family] = now + SHORT_MINUTES
        leaving = {name for _, name in self.going}
        told = [
            name
            for name in self.nodes(*FAMILIES)
            if name not in leaving
            and (self.is_short(name.partition("-")[0], now) or self.draw.random() < CALM)
        ]
        if told:
            instances = [self.wired.node(name).instance or "" for name in told]
            self.wired.notices.receive([self.wired.spot_event(i) for i in instances])
            self.reclaimed += len(told)
            self.going += [(now + 2, name) for name in told]
            self.coming += [(now + 2 + RETURNS, name.partition("-")[0]) for name in told]
        self.remove(name for when, name in self.going if when <= now)
        self.going = [(when, name) for when, name in self.going if when > now]
        for when, family in [*self.coming]:
            if when <= now and not self.is_short(family, now):
                self.coming.remove((when, family))
                self.join(family)

    def is_short(self, family: str, now: int) -> bool:
        """Whether there is no spot capacity of a family now."""
        return now < self.short.get(family, -1)

    def autoscale(self) -> None:
        """Bring a node for pods that are Pending; take one away that all pods fit without."""
        seen = self.seen
        if any(pod.pending for pod in seen.pods):
            self.join("od")
            return
        extra = self.nodes("od")[BASE:]
        if not extra or self.minutes % 10 or any(p.released for p in seen.pods):
            return
        snapshot = ClusterSnapshot(seen.nodes, seen.pods, seen.claims)
        for pod in seen.on_node.get(extra[-1], ()):
            node = snapshot.choose(pod, closed={extra[-1]})
            if node is None:
                return
            snapshot.place(pod, node.name)
        self.patch(f"/api/v1/nodes/{extra[-1]}", {"spec": {"unschedulable": True}})
        self.evict(node=extra[-1])
        self.wired.sleep(5)
        self.remove([extra[-1]])

    def measure(self) -> None:
        """Account for one minute."""
        seen = self.seen
        on_demand = {node.name for node in seen.nodes if node.capacity == ON_DEMAND}
        for name, account in self.accounts.items():
            where = [p.node for p in seen.pods if p.serving and p.labels.get("app") == name]
            safe = sum(node in on_demand for node in where)
            account.below += safe < account.keep
            account.pods += len(where)
            account.spot += len(where) - safe
            account.may += len(where) - account.keep


def main() -> None:
    """Play the month and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    month = Month(options.seed)
    for _ in range(options.days * DAY):
        month.minute()
    shown = table(
        f"{options.days} days, seed {options.seed}: {month.reclaimed} instances reclaimed, "
        f"{len(month.waited_in_vain)} pods waited in vain, played in {time.monotonic() - began:.0f} s",
        *("workload", "floor", "minutes below", "on spot", "the floor allows", "moves"),
    )
    for app in APPS:
        account = month.accounts[app.name]
        days = account.pods / DAY
        shown.add_row(
            app.name,
            f"{account.keep} of {app.least} to {app.most}",
            f"{account.below}",
            f"{account.spot / account.pods:.1%}",
            f"{account.may / account.pods:.1%}",
            f"{month.moves[app.name]} ({month.moves[app.name] / days:.2f} per pod and day)",
        )
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()
