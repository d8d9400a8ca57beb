"""Each fault of a change of GPUs once on a real control plane: a node for each, all at the same time.

A script is a generator: it plays until it yields a condition, and goes on once that holds after a round of the
executor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import pytest

from plimsoll.domain.errors import Temporary
from plimsoll.domain.kubernetes import GPU
from plimsoll_agent.gpu_change import Limits
from plimsoll_simulation.fake_cluster.conditions import is_ready
from plimsoll_simulation.rigs.mig_manager import MIG
from tests.cluster.gpu_fleet import CONFIG, ENDED, FILE, OPERATOR, Fleet, Json, a_fleet, config_map
from tests.cluster.ground import Ground
from tests.support.fake_clusters import MERGE, a_budget
from tests.support.gpu_nodes import SLICES, WHOLE, KilledError, gpu_pod, noticed

pytestmark = [pytest.mark.cluster, pytest.mark.long]

LIMITS: Final = Limits(
    empties=timedelta(seconds=60),
    begins=timedelta(seconds=20),
    changes=timedelta(seconds=30),
    reboots=timedelta(seconds=60),
    settles=timedelta(seconds=30),  # controllers come back that long after the API server
    steady=timedelta(seconds=4),
)
AWAY_SECONDS: Final = 6.0
"""The API server's minute."""
STEPS: Final = ("emptying", "labelled", "changing", "checking")
PAST: Final = ENDED | {"labelled", "changing", "checking", "retries", "gone"}
"""Steps at which a configuration that is renamed changes nothing."""
SPOT: Final = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

type Script = Iterator[Callable[[], bool]]


@dataclass
class Play:
    """The fleet and its scripts."""

    fleet: Fleet
    held: set[str] = field(default_factory=set)
    """Nodes that wait for the API server to go."""
    away: bool = False
    """Whether it was away."""
    fewest: dict[str, int] = field(default_factory=dict)
    """The fewest pods of an app that served."""
    _scripts: dict[str, Script] = field(default_factory=dict)
    _waits: dict[str, Callable[[], bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ways = (self.fleet.own, self.fleet.drain)
        for way in ways:
            way.before = [name for name in ROWS if name.endswith("-before")]
            way.after = [name for name in ROWS if name.endswith("-after")]
        self.fleet.plan({name: row.target for name, row in ROWS.items()}, paused=True)

    @property
    def ground(self) -> Ground:
        return self.fleet.ground

    def at(self, name: str, step: str) -> Callable[[], bool]:
        return lambda: self.fleet.step(name) == step

    def reach(self, name: str, step: str) -> Script:
        """Begin the change of a node, and bring it to a step."""
        self.fleet.begin(name)
        if step != "emptying":  # there it is at once
            yield self.at(name, step)

    def later(self, seconds: float) -> Script:
        end = time.monotonic() + seconds
        yield lambda: time.monotonic() >= end

    def guest(self, name: str, *, scheduled: bool = False) -> Callable[[], object]:
        """Let a pod with a GPU run on a cordoned node; return how it goes."""
        node, pod = f"{self.ground.name}-{name}", f"guest-{name}"
        manifest = gpu_pod(pod, {GPU: 1}, node=node, tolerations=[{"operator": "Exists"}])
        resources = manifest["spec"]["containers"][0]["resources"]
        resources["limits"] = {GPU: "1"}
        if scheduled:
            del manifest["spec"]["nodeName"]
            manifest["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
        self.ground.apply(manifest)
        self.ground.until(lambda: (self.ground.pod(pod) or {})["spec"].get("nodeName") == node)
        return partial(self.ground.delete, pod)

    def writes(self, name: str) -> int:
        return sum(path == self.fleet.path(name) for _, path in self.fleet.own.writes)

    def start(self, *names: str) -> None:
        for name in names:
            self._scripts[name] = ROWS[name].script(self, name)
            self._go_on(name)

    def advance(self) -> None:
        """Let each script go on whose condition holds."""
        for name in [name for name, holds in self._waits.items() if holds()]:
            self._go_on(name)
        for app in self.fewest:
            self.fewest[app] = min(self.fewest[app], len(self.ground.serving(app)))

    def _go_on(self, name: str) -> None:
        waits = next(self._scripts[name], None)
        if waits is None:
            self._waits.pop(name, None)
        else:
            self._waits[name] = waits

    def past(self, *but: str) -> bool:
        """Whether all scripts but some have ended, and no Node of theirs stands before its label."""
        steps = {self.fleet.step(name) for name in ROWS if name not in but}
        return self._waits.keys() <= {*but} and steps <= PAST

    def ended(self) -> bool:
        return not self._waits and all(self.fleet.step(name) in ENDED | {"gone"} for name in ROWS)

    def take_api_away(self) -> None:
        """Take the API server away; the executor reaches nobody, and nothing is lost."""
        plane, end = self.fleet.site.plane, time.monotonic() + AWAY_SECONDS
        plane.stop_api()
        while time.monotonic() < end:
            with pytest.raises(Temporary):
                self.fleet.executor().round()
            time.sleep(0.5)
        plane.start_api()
        self.away = True
        self.advance()


# What the manager does


def another_label(play: Play, name: str) -> Script:
    play.fleet.managers[name].failing.add("slices")
    play.fleet.begin(name)
    yield play.at(name, "stopped")
    play.fleet.plan({**play.fleet.planned, name: "mixed"}, paused=True)
    play.fleet.begin(name)


def first_change_fails(play: Play, name: str) -> Script:
    """Of a process that has had no success: it began anew while it worked."""
    play.fleet.managers[name].failing.add("slices")
    yield from restarts(play, name)


def restarts(play: Play, name: str) -> Script:
    yield from play.reach(name, "changing")
    play.fleet.managers[name].restart()


def plugin_cannot_leave(
    play: Play, name: str, *, gives_up: bool = True, restarts: bool = False
) -> Script:
    """Until the manager has given up, or its time is over; then that pod goes."""
    manager, plugin = play.fleet.managers[name], play.fleet.plugin(name)
    if gives_up:
        manager.gives_up = timedelta(seconds=5)
    yield from play.reach(name, "checking")
    assert play.ground.call("DELETE", plugin, {"gracePeriodSeconds": 0}).status == 200
    if restarts:
        manager.restart()


def does_not_begin(play: Play, name: str) -> Script:
    play.fleet.managers[name].up = False
    yield from play.reach(name, "labelled")


def reboots(play: Play, name: str) -> Script:
    """Nobody renews its lease meanwhile, or KWOK would say at once that it is Ready."""
    manager, lease = play.fleet.managers[name], f"{LEASES}/{play.ground.name}-{name}"
    manager.reboots = timedelta(seconds=5)
    holder = {"spec": {"holderIdentity": "rebooting", "leaseDurationSeconds": 2**31 - 1}}
    assert play.ground.call("PATCH", lease, holder, MERGE).status == 200
    yield from play.later(10)  # by then KWOK has seen it
    play.fleet.begin(name)
    yield lambda: not is_ready(play.fleet.seen[name])
    yield lambda: is_ready(play.fleet.seen[name])
    assert play.ground.call("DELETE", lease).status == 200


def one_short_both_ways(play: Play, name: str) -> Script:
    play.fleet.managers[name].lacking |= {"slices", "all-disabled"}
    return play.reach(name, "emptying")


# What others do


def api_away(play: Play, name: str, *, step: str) -> Script:
    manager = play.fleet.managers[name]
    manager.up = step != "labelled"
    if step == "checking":
        manager.lacking.add("slices")
    yield from play.reach(name, step)
    goes = play.guest(name) if step == "emptying" else None
    manager.up = step not in {"labelled", "changing"}
    play.held.add(name)
    yield lambda: play.away
    manager.up = True
    if step == "checking":
        manager.gpus = SLICES
    if goes is not None:
        goes()


def person_labels(play: Play, name: str, *, step: str) -> Script:
    yield from play.reach(name, step)
    play.fleet.label(name, **{MIG: "mixed"})


def tolerates_the_cordon(play: Play, name: str) -> Script:
    yield from play.reach(name, "emptying")
    play.guest(name, scheduled=True)


def tolerates_the_cordon_late(play: Play, name: str) -> Script:
    """It comes while a failed change is undone, and goes after the alert."""
    play.fleet.managers[name].failing.add("slices")
    yield from play.reach(name, "checking")
    yield lambda: play.fleet.gpus(name) == WHOLE
    goes = play.guest(name, scheduled=True)
    yield play.at(name, "retries")
    goes()


def spot_notice(play: Play, name: str, *, step: str) -> Script:
    yield from play.reach(name, step)
    known = play.fleet.node(name)["spec"].get("taints", [])
    play.fleet.patch(name, {"spec": {"taints": [*known, SPOT]}})
    writes = play.writes(name)
    yield from play.later(2)
    assert play.fleet.cordoned(name)
    assert play.writes(name) == writes
    play.fleet.site.plane.vanish(f"{play.ground.name}-{name}")
    assert play.ground.call("DELETE", play.fleet.path(name)).status == 200


def notice_withdrawn(play: Play, name: str) -> Script:
    yield from play.reach(name, "changing")
    record = noticed(play.fleet.node(name), datetime.now(UTC))
    play.fleet.patch(name, {"metadata": {"annotations": record}})
    yield from play.later(3)
    play.fleet.patch(name, {"metadata": {"annotations": dict.fromkeys(record)}})


def renamed(play: Play, name: str) -> Script:
    """Once all others are past the label: one node waits for a pod, and one is changing when the file changes."""
    yield lambda: play.past(name, "renamed-later")
    play.fleet.begin(name)
    play.guest(name)
    yield from play.reach("renamed-later", "changing")
    data = {"config.yaml": FILE.replace("slices", "renamed")}
    config_map(play.ground, OPERATOR, CONFIG, data)


def played_by_another(_: Play, name: str) -> Script:
    return iter(())


def executor_dies(play: Play, name: str, *, fails: bool = False) -> Script:
    """Before or after each write to the node, and to the pod that serves there."""
    if fails:
        play.fleet.managers[name].failing.add("slices")
    else:
        app = f"web-{name}"
        play.fleet.serve(app, GPU, name)
        play.ground.apply(a_budget(app, app, minAvailable=1))
        play.fewest[app] = 1
    yield lambda: play.away  # while few others are under way
    with suppress(KilledError):
        play.fleet.begin(name)
    if not play.fleet.node(name)["spec"].get("unschedulable"):
        play.fleet.begin(name)


@dataclass(frozen=True, kw_only=True)
class Row:
    script: Callable[[Play, str], Script]
    ends: tuple[str, ...] = ("done",)
    target: str = "slices"


ROWS: Final = {
    "another-label-after-a-failure": Row(script=another_label),
    "first-change-fails": Row(script=first_change_fails, ends=("stopped",)),
    "manager-restarts": Row(script=restarts),
    "plugin-cannot-leave": Row(script=plugin_cannot_leave, ends=("stopped",)),
    "plugin-cannot-leave-manager-restarts": Row(
        script=partial(plugin_cannot_leave, restarts=True), ends=("done", "stopped")
    ),
    "plugin-cannot-leave-manager-goes-on": Row(
        script=partial(plugin_cannot_leave, gives_up=False), ends=("done", "stopped", "alert")
    ),
    "manager-does-not-begin": Row(script=does_not_begin, ends=("stopped",)),
    "reboots": Row(script=reboots),
    "one-short-both-ways": Row(script=one_short_both_ways, ends=("alert",)),
    **{f"api-away-at-{step}": Row(script=partial(api_away, step=step)) for step in STEPS},
    **{
        f"person-labels-at-{step}": Row(script=partial(person_labels, step=step), ends=("alert",))
        for step in STEPS
    },
    "pod-tolerates-the-cordon": Row(script=tolerates_the_cordon, ends=("undone",)),
    "pod-tolerates-the-cordon-later": Row(script=tolerates_the_cordon_late, ends=("stopped",)),
    **{
        f"spot-notice-at-{step}": Row(script=partial(spot_notice, step=step), ends=("gone",))
        for step in STEPS
    },
    "notice-withdrawn": Row(script=notice_withdrawn),
    "renamed": Row(script=renamed, ends=("undone",)),
    "renamed-later": Row(script=played_by_another),
    # The last of the list: rounds that end early do not keep others waiting.
    "write-before": Row(script=executor_dies, target="one-whole"),
    "write-after": Row(script=executor_dies, target="one-whole"),
    "write-fails-before": Row(script=partial(executor_dies, fails=True), ends=("stopped",)),
    "write-fails-after": Row(script=partial(executor_dies, fails=True), ends=("stopped",)),
}
AWAY: Final = tuple(name for name in ROWS if name.startswith("api-away"))
STUCK: Final = tuple(name for name in ROWS if name.startswith("plugin-cannot-leave"))
DYING: Final = tuple(name for name in ROWS if name.startswith("write-"))
LONG: Final = "pod-tolerates-the-cordon"
"""It takes as long as a node may take until it is empty."""


@pytest.fixture(scope="module")
def play() -> Iterator[Play]:
    with a_fleet(*ROWS, limits=LIMITS, stuck=STUCK) as fleet:
        play = Play(fleet)
        play.start(*DYING, LONG, *AWAY)
        fleet.run(lambda: play.held == set(AWAY), then=play.advance)
        play.take_api_away()
        early = {*DYING, *AWAY}
        fleet.run(lambda: all(fleet.step(name) in ENDED for name in early), then=play.advance)
        play.start(*(name for name in ROWS if name not in {*early, LONG}))
        fleet.run(play.ended, then=play.advance)
        fleet.executor().round()
        fleet.look()
        yield play


@pytest.mark.parametrize("name", ROWS)
def test_a_node_is_in_service_again_or_cordoned_with_an_alert_or_gone(play: Play, name: str):
    fleet, step = play.fleet, play.fleet.step(name)
    assert step in ROWS[name].ends, fleet.seen.get(name) and fleet.change(name)
    if step == "alert":
        assert fleet.cordoned(name)
        assert fleet.heard.alerts > 0
    elif step != "gone":
        assert fleet.in_service(name)
        label = fleet.seen[name]["metadata"]["labels"][MIG]
        assert label == (fleet.planned[name] if step == "done" else "all-disabled")


def test_every_node_that_waits_for_a_person_is_counted(play: Play):
    assert play.fleet.heard.alerts == sum(play.fleet.step(name) == "alert" for name in ROWS)


def test_the_label_of_a_person_stays(play: Play):
    for step in STEPS:
        node: Json = play.fleet.seen[f"person-labels-at-{step}"]
        assert node["metadata"]["labels"][MIG] == "mixed"


def test_no_pod_leaves_past_its_budget_or_is_taken_by_the_manager(play: Play):
    assert play.fewest == {"web-write-before": 1, "web-write-after": 1}
    ways = (play.fleet.own, play.fleet.drain)
    writes = [write for way in ways for write in way.writes]
    assert all(method != "DELETE" for method, _ in writes)
    for app in play.fewest:
        assert any(app in path and path.endswith("/eviction") for _, path in writes)
        (pod,) = play.ground.serving(app)
        assert pod["spec"]["nodeName"] == f"{play.ground.name}-spare"
    for name, manager in play.fleet.managers.items():
        assert manager.killed == [], name


def test_the_executor_died_before_and_after_each_write(play: Play):
    died = {name: play.writes(name) for name in ROWS if name.startswith("write-")}
    assert min(died.values()) >= 5
    assert play.fleet.kills >= sum(died.values()) - len(died)
