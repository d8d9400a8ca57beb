"""Histories of a change of GPUs, drawn by chance: what stands on the Node, what breaks, and who comes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Final

from plimsoll.domain.kubernetes import GPU
from plimsoll_simulation.fake_cluster.conditions import is_deleting, is_ready
from plimsoll_simulation.rigs.mig_manager import MIG
from tests.support import fake_clusters
from tests.support.gpu_nodes import FILE, LAYOUTS, GpuSite, gpu_pod

SPOT: Final = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
LONGEST: Final = timedelta(hours=5)
QUIET: Final = timedelta(minutes=10)
"""A history goes on for so long after the last of its faults."""
TOLERANT: Final = [{"operator": "Exists"}]


@dataclass
class History:
    """One history, and what was seen of it."""

    seed: int
    faults: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """What must not be, with the time at which it was."""

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        draw = self.chance
        self.wanted = draw.choice(["all-1g.10gb", "all-3g.40gb"])
        stops = "10h" if draw.random() < 0.08 else "3s"
        self.site = GpuSite(seed=self.seed, wanted=self.wanted, plugin_stops=stops)
        self.manager = self.site.manager
        self.human = self.vanished = False
        self.due: list[tuple[datetime, str, Callable[[], object]]] = []
        self.begun: datetime | None = None
        self.labelled: datetime | None = None
        self._manager()
        self._pods()
        self._draw_faults()

    @property
    def now(self) -> datetime:
        return self.site.clock.time

    def _manager(self) -> None:
        draw, manager = self.chance, self.site.manager
        manager.applying = timedelta(seconds=draw.choice([5, 5, 60, 400, 1500, 2400]))
        if draw.random() < 0.2:
            manager.reboots = timedelta(minutes=draw.choice([3, 10, 35, 50]))
        for name in LAYOUTS:
            if draw.random() < 0.15:
                manager.failing.add(name)
            if draw.random() < 0.08:
                manager.lacking.add(name)
        if draw.random() < 0.05:
            del manager.layouts[self.wanted]
        if draw.random() < 0.2:
            manager.restart()

    def _pods(self) -> None:
        draw, site = self.chance, self.site
        self.budget = 0
        match draw.choice(["none", "none", "web", "web", "train"]):
            case "web":
                site.serve_whole_and_ask_for_slices(self.wanted)
                if draw.random() < 0.5:
                    self.budget = 1
                    site.apply(fake_clusters.a_budget("web", "web", minAvailable=1))
                if draw.random() < 0.8:
                    site.cordon(on=False, name="spare")
            case "train":
                site.apply(gpu_pod("train", {GPU: 1}))
                self._later(draw.uniform(1, 20), "training ends", lambda: site.delete("train"))
            case _:
                pass
        site.settle()

    def _draw_faults(self) -> None:
        draw = self.chance
        kinds = [
            self._kill,
            self._kill,
            self._away,
            self._label,
            self._spot,
            self._notice,
            self._withdrawn,
            self._plan,
            self._config,
            self._tolerant,
            self._down,
            self._restart,
            self._reboot,
        ]
        for fault in draw.sample(kinds, draw.choice([0, 1, 1, 2, 3])):
            fault(draw.choice([draw.uniform(0, 2), draw.uniform(0, 10), draw.uniform(0, 60)]))

    def _later(self, minutes: float, name: str, act: Callable[[], object]) -> None:
        """Do something so long after the start."""
        self.faults.append(f"{name} at {minutes:.1f} min")
        self.due.append((self.now + timedelta(minutes=minutes), name, act))

    # What happens

    def _kill(self, _: float) -> None:
        number, after = self.chance.randrange(12), self.chance.random() < 0.5
        self.faults.append(f"killed {'after' if after else 'before'} write {number}")
        self.site.wire.kill = number, after

    def _away(self, at: float) -> None:
        cluster = self.site.cluster
        self._later(at, "API away", lambda: cluster.take_api_away(now=self.now))
        self._later(at + 1, "API back", lambda: cluster.bring_api_back(now=self.now))

    def _label(self, at: float) -> None:
        self._later(at, "a person labels", self._person_labels)

    def _person_labels(self) -> None:
        change = self.site.change() if self.site.exists() else None
        if change is not None and change.under_way:
            other = [n for n in LAYOUTS if n not in {change.saved, change.target}]
            self.site.label(mig=self.chance.choice([*other, change.saved, change.target]))
            self.human = True

    def _spot(self, at: float) -> None:
        self._later(at, "spot notice", partial(self._on_node, partial(self.site.taint, SPOT)))
        self._later(at + 2, "instance gone", self._vanish)

    def _notice(self, at: float) -> None:
        self._later(at, "recorded notice", partial(self._on_node, self.site.interrupt))
        self._later(at + 2, "instance gone", self._vanish)

    def _withdrawn(self, at: float) -> None:
        self._later(at, "recorded notice", partial(self._on_node, self.site.interrupt))
        off = partial(self.site.annotate, **{"plimsoll.dev/interruption": None})
        later = at + self.chance.uniform(1, 40)
        self._later(later, "withdrawn", partial(self._on_node, off))

    def _on_node(self, act: Callable[[], object]) -> None:
        if self.site.exists() and not self.vanished:
            act()

    def _vanish(self) -> None:
        if not self.vanished:
            self.site.cluster.vanish("gpu-1", now=self.now)
            self.site.managers.pop("gpu-1", None)
            self.vanished = True

    def _plan(self, at: float) -> None:
        site = self.site
        entry = site.entry("gpu-1", self.wanted)
        other = site.entry("spare", self.wanted)
        change = self.chance.choice(
            [
                partial(site.plan),
                partial(site.plan_text, "{"),
                partial(site.plan, entry, paused=True),
                partial(site.plan, entry | {"uid": "another"}),
                partial(site.plan, other),
            ]
        )
        self._later(at, "plan changed", change)
        if self.chance.random() < 0.5:
            self._later(at + self.chance.uniform(1, 30), "plan back", partial(site.plan, entry))

    def _config(self, at: float) -> None:
        renamed = FILE.replace(self.wanted, "renamed")
        self._later(at, "configuration renamed", lambda: self.site.config(renamed))

    def _tolerant(self, at: float) -> None:
        pod = gpu_pod("tolerant", {GPU: 1}, tolerations=TOLERANT)
        del pod["spec"]["nodeName"]
        pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "gpu-1"}
        self._later(at, "a pod tolerates the cordon", lambda: self.site.apply(pod))
        if self.chance.random() < 0.5:
            later = at + self.chance.uniform(5, 60)
            self._later(later, "it ends", lambda: self.site.delete("tolerant"))

    def _down(self, at: float) -> None:
        self._later(at, "manager down", partial(self._power, on=False))
        if self.chance.random() < 0.6:
            later = at + self.chance.uniform(1, 60)
            self._later(later, "manager up", partial(self._power, on=True))

    def _power(self, *, on: bool) -> None:
        self.manager.up = on

    def _restart(self, at: float) -> None:
        self._later(at, "manager restarts", self.manager.restart)

    def _reboot(self, at: float) -> None:
        def ready(*, on: bool) -> Callable[[], None]:
            return partial(self._on_node, partial(self.site.make_ready, on=on))

        self.budget = 0  # taints evict past it
        self._later(at, "not Ready", ready(on=False))
        self._later(at + self.chance.uniform(0.5, 50), "Ready again", ready(on=True))

    # How it is played and judged

    def play(self) -> None:
        """Let it happen, and note what must not be."""
        site, end = self.site, self.now + LONGEST
        self.due.sort(key=lambda each: each[0])
        last = self.due[-1][0] if self.due else self.now
        site.watch = self._look
        while self.now < end:
            for _, _, act in [each for each in self.due if each[0] <= self.now]:
                with suppress(ConnectionRefusedError):  # nobody else reaches the API server either
                    act()
            self.due = [each for each in self.due if each[0] > self.now]
            site.run(0.5)
            if self.now > last + QUIET and (self.vanished or self._at_rest()):
                break
        self._judge()

    def _at_rest(self) -> bool:
        change = self.site.change()
        if change is None or not change.under_way:
            return self.begun is None or self.now - self.begun > QUIET
        return change.step == "alert" and change.final and self.site.alerted()

    def _look(self) -> None:
        """What is asked of every moment."""
        site = self.site
        if not site.exists() or not site.cluster.api_up:
            return
        change = site.change()
        if change is not None and self.begun is None:
            self.begun = self.now
        if change is not None and change.labelled not in {None, self.labelled}:
            self.labelled = change.labelled
            self.broken += [f"{self.now}: labelled under {pod}" for pod in site.holders()]
        served = change is not None and not change.under_way and not site.cordoned()
        if served and change is not None and change.since == self.now and not site.gpus():
            self.broken.append(f"{self.now}: uncordoned without GPUs")
        if change is not None and change.under_way and not site.cordoned():
            self.broken.append(f"{self.now}: not cordoned at {change.step}")
        web = [p for p in site.cluster.store.all("pods") if _is(p, "web")]
        serving = sum(is_ready(p) and not is_deleting(p) for p in web)
        if self.budget and not self.vanished and serving < self.budget:
            self.broken.append(f"{self.now}: {serving} serve")

    def _judge(self) -> None:
        """What is asked of its end."""
        site = self.site
        if any(method == "DELETE" for method, _, _ in site.wire.writes):
            self.broken.append("a pod was deleted past its budget")
        if killed := {*self.manager.killed} - {"default/tolerant"}:
            self.broken += [] if self.human else [f"mig-manager killed {killed}"]
        if not site.exists():
            return
        change = site.change()
        if change is None:
            if site.cordoned():
                self.broken.append("cordoned without a journal")
            return
        expected = change.new if change.step == "done" else change.old
        served = not site.cordoned() and site.ready() and site.gpus() == expected
        if change.under_way:
            if not (site.cordoned() and site.alerted()):
                self.broken.append(f"at {change.step} without an alert: {change.reason}")
        elif not served:
            self.broken.append(f"{change.step}, and it shows {site.gpus()}, {site.labels()[MIG]}")


def _is(pod: fake_clusters.Json, app: str) -> bool:
    return bool(pod["metadata"].get("labels", {}).get("app") == app)
