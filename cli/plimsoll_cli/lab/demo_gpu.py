"""`plimsoll demo gpu`: a week of 24 whole GPUs is audited, sized and planned, and one node is split on a real control plane.

The commands that are typed print to standard output, as the table at the end does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final

import click
import msgspec
import yaml
from rich.table import Table

from plimsoll.adapters.clock import SystemClock
from plimsoll_cli import main
from plimsoll_cli.lab.said import Said
from plimsoll_cli.options import console, table
from plimsoll_cli.plan.rows import DOLLARS
from plimsoll_cli.terminal import say
from plimsoll_service.adapters.price_table import price_table
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.controlplane.plane import ControlPlane
from plimsoll_testbed.rigs.gpus.apply import Parts, install, supplies
from plimsoll_testbed.rigs.gpus.play import Fleet
from plimsoll_testbed.rigs.gpus.week import class_days
from plimsoll_testbed.rigs.gpus.workloads import (
    CONTAINER,
    INSTANCE,
    PER_NODE,
    Json,
)

TIMES: Final = Settings(pod_startup=timedelta(seconds=1), pod_stop=timedelta(seconds=1))
LEARNT: Final = 0.5
"""The split whose overflows the table shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of the fleet."""

    before: int
    """GPUs."""
    after: int
    planned: int
    over: int
    """Pods over their slice in held-out time."""
    judged: int
    bound: float
    """At most such a share of pods overflows, at 95 % confidence."""
    within: float
    """Such a share was allowed."""
    bursts: str
    """The workloads that are not split for it."""
    stranded: Mapping[str, str]
    """Node -> what is wrong with it."""
    missing: Mapping[str, int]
    """Serving workload -> pods that were not Ready at the worst moment."""
    training_kept: bool

    def broken(self) -> Iterator[str]:
        """Yield the promises that were not kept."""
        if self.after != self.planned:
            yield f"{self.after} GPUs are left, and {self.planned} were planned"
        if self.over > self.within * self.judged:
            yield f"{self.over} of {self.judged} pods overflow, and {self.within:.0%} were allowed"
        for name, why in self.stranded.items():
            yield f"node {name} is stranded: {why}"
        for name, pods in self.missing.items():
            yield f"{pods} pods of {name} were missing at once"
        if not self.training_kept:
            yield "the training was restarted"


def play() -> None:
    """Play the week and the change, and print what became of the fleet; end with 1 if a promise was not kept."""
    with TemporaryDirectory(prefix="plimsoll-demo-") as folder, chdir(folder):
        _say("a week of three nodes: the agent reads what dcgm-exporter prints, hour by hour")
        days = b"\n".join(map(msgspec.json.encode, class_days()))
        Path("days.jsonl").write_bytes(days)
        _type("gpu audit --from days.jsonl --files schedules")
        _type(f"gpu fit --from days.jsonl --container {CONTAINER} --files patches")
        audit = _answer("gpu audit --from days.jsonl")
        fit = _answer(f"gpu fit --from days.jsonl --container {CONTAINER}")
        Path("demand.json").write_text(json.dumps(fit), encoding="utf-8")
        _say("starting a control plane; the fleet settles in")
        with ControlPlane(settings=TIMES) as plane:
            outcome = _change(plane, audit, fit)
    out = console()
    out.print(summary(outcome))
    broken = [*outcome.broken()]
    for line in broken:
        out.print(f"broken: {line}")
    if broken:
        raise click.exceptions.Exit(1)


def _change(plane: ControlPlane, audit: Json, fit: Json) -> Outcome:
    """Plan the geometry of the fleet and apply it, while its owners follow the advice."""
    fleet = Fleet.on(plane)
    fleet.settle_in()
    before, training = fleet.gpus(), fleet.pods("training")
    Path("fleet.json").write_text(json.dumps(fleet.objects()), encoding="utf-8")
    Path("kubeconfig").symlink_to(plane.kubeconfig())
    geometry = "gpu geometry --demand demand.json --fleet fleet.json"
    _type(f"{geometry} --files plan")
    (planned,) = _answer(geometry)["plans"].values()
    config, grants = (
        Path("plan", f"{each}.yaml").read_text("utf-8") for each in ("mig-config", "grants")
    )
    layouts = yaml.safe_load(config)["data"]["config.yaml"]
    _say("installing plimsoll-gpu with its policy, the grants and the layouts of the plan")
    install(plane, grants, config)
    with Parts.of(plane, fleet, layouts, Said(SystemClock(), _say)):
        off = _follow_advice(fleet, audit, fit)
        if _applied(fleet):
            _bring_back(fleet, fit, planned, off)
        half = next(each for each in fit["cards"][0]["splits"] if each["learnt"] == LEARNT)
        return Outcome(
            before=before,
            after=fleet.gpus(),
            planned=planned["gpus_after"],
            over=half["over"],
            judged=half["pods"],
            bound=half["atMost"],
            within=fit["within"],
            bursts=", ".join(e["workload"] for e in fit["classes"] if e["cause"] == "bursts"),
            stranded=fleet.stranded(supplies(layouts)),
            missing=fleet.missing,
            training_kept=fleet.pods("training") == training,
        )


def _applied(fleet: Fleet) -> bool:
    """Have the plan applied, and return whether every node has its layout."""
    _type("gpu apply plan --kubeconfig kubeconfig")
    ended: list[int] = []
    command = "gpu apply plan --kubeconfig kubeconfig --go"
    thread = Thread(target=lambda: ended.append(_type(command)), daemon=True)
    thread.start()
    fleet.until(lambda: not thread.is_alive(), "the plan is not applied")
    return ended == [0]


def _bring_back(fleet: Fleet, fit: Json, planned: Json, off: Mapping[str, int]) -> None:
    """Let pods start on slices, and nodes go that are not needed."""
    _say("the Deployments roll out to the slices")
    sliced = {_named(each["workload"]) for each in fit["classes"] if each["patch"]}
    fleet.roll_out(sliced - off.keys())
    for node in planned["nodes"]:
        if node["after"] is None:
            _say(f"{node['name']} is not needed: what is left moves, and the node goes")
            fleet.remove(node["name"])
    _say("morning: the schedule scales up")
    for name, replicas in off.items():
        fleet.scale(name, replicas)
    fleet.roll_out(off)


def _follow_advice(fleet: Fleet, audit: Json, fit: Json) -> Mapping[str, int]:
    """Scale to zero whatever nobody uses, or uses by day only, and let templates ask for slices.

    Returns:
        The workloads that come back in the morning, with their replicas.
    """
    unused = [_named(each["owner"]) for each in audit["owners"] if each["neverTouchedPods"]]
    off = {}
    for each in audit["schedules"]:
        manifest = yaml.safe_load(each["manifest"])["spec"]
        off[manifest["scaleTargetRef"]["name"]] = manifest["maxReplicaCount"]
    _say(f"night: {', '.join(off)} is at zero by its schedule, and {', '.join(unused)} is given up")
    for name in (*off, *unused):
        fleet.scale(name, 0)
    fleet.until(lambda: not any(fleet.pods(name) for name in (*off, *unused)), "pods do not end")
    _say("owners apply the patches: their pods ask for slices")
    for each in fit["classes"]:
        if each["patch"]:
            fleet.change_template(_named(each["workload"]), yaml.safe_load(each["patch"]))
    return off


def summary(outcome: Outcome) -> Table:
    """Return the table of what became of the fleet."""
    monthly = price_table().prices[INSTANCE].monthly("on-demand") / PER_NODE
    shown = table("", "BEFORE", "AFTER")
    shown.add_row("GPUs", str(outcome.before), str(outcome.after))
    costs = [each * monthly for each in (outcome.before, outcome.after)]
    shown.add_row("a month", *map(DOLLARS.format, costs))
    shown.add_row("saves a month", "", DOLLARS.format(costs[0] - costs[1]))
    over = f"{outcome.over} of {outcome.judged}, at most {outcome.bound:.1%} (95 %)"
    shown.add_row("pods over their slice in the held-out half", "", over)
    shown.add_row("not split for it", "", outcome.bursts or "-")
    shown.add_row("nodes stranded", "", str(len(outcome.stranded)))
    shown.add_row("serving pods missing, at worst", "", str(sum(outcome.missing.values())))
    shown.add_row("training restarted", "", "no" if outcome.training_kept else "yes")
    return shown


def _named(owner: str) -> str:
    """Return the name of `Deployment lab/chat`."""
    return owner.rpartition("/")[2]


def _say(line: str) -> None:
    say(line, err=True)


def _type(words: str) -> Any:
    """Run a command as a person would, and return its exit status; None is none."""
    _say(f"$ plimsoll {words}")
    return main.main(args=words.split(), prog_name="plimsoll", standalone_mode=False)


def _answer(words: str) -> Any:
    """Return what a command answers as data."""
    with redirect_stdout(StringIO()) as text:
        main.main(
            args=[*words.split(), "--output", "json"], prog_name="plimsoll", standalone_mode=False
        )
    return json.loads(text.getvalue())
