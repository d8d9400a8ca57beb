"""The suite itself: that it can fail, that it is the same every time, and that the page names it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import override

import yaml

from tests.differential.actual import ActualSide
from tests.differential.behaviours import BEHAVIOURS
from tests.differential.bench import Bench
from tests.differential.drawn import pair
from tests.differential.fake_cluster import FakeSide
from tests.differential.known import KNOWN, LIMITS
from tests.differential.past import Past
from tests.differential.pictures import Painter
from tests.differential.placements import Placements
from tests.differential.scenario import Json, Request, Scenario
from tests.differential.sides import Response, Seen, send
from tests.differential.suite import everything
from tests.differential.test_scheduler import Verdict
from tests.differential.trial import differences, expected
from tests.differential.watched import ControlPlane
from tests.support.fake_clusters import DEPLOYMENTS, Play, a_deployment, a_template

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "develop" / "rigs.md").read_text()


def two_deployments(name: str) -> Scenario:
    bench = Bench(name, "test")
    for node in "ab":
        bench.node(node, cpu="1")
    bench.settle()
    bench.create(bench.deployment("web", 3, bench.template("web", cpu="500m")))
    bench.settle()
    bench.evict("{pod web 0}")
    bench.settle()
    return bench.done()


def test_the_page_names_each_scenario_of_a_behaviour_and_no_other():
    section = PAGE.partition("### Behaviours")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| [^|]+ \| (.*) \|$", section, re.MULTILINE)
    assert sorted(re.findall(r"`([^`]+)`", "".join(rows))) == sorted(BEHAVIOURS)


def test_each_known_difference_has_its_reason_on_the_page():
    left_out = PAGE.partition("### What is left out")[2]
    for name, known in KNOWN.items():
        assert known.why in left_out, name


def test_each_pod_that_is_taken_to_fit_nowhere_stands_on_the_page():
    limits = (DOCS / "guides" / "spot-drain.md").read_text().partition("## Limits")[2]
    assert re.findall(r"^\| (with .+?) \|", limits, re.MULTILINE) == list(LIMITS)


def test_each_known_difference_is_one_of_a_scenario_that_there_is():
    there = {scenario.name: scenario for scenario in everything()}
    for name, known in KNOWN.items():
        assert all(step < len(there[name].steps) for step, _ in known.differs), name


def test_a_pod_that_we_call_fit_and_the_scheduler_does_not_is_found():
    case = pair(1)
    fits = Verdict(
        case=case,
        fits=frozenset({"n"}),
        preempts=frozenset(),
        bound="",
        why="Insufficient cpu",
        minor="1.37",
    )
    assert not fits.agrees
    assert yaml.safe_dump(case.pod, sort_keys=False) in str(fits)
    assert replace(fits, bound="n").agrees
    assert not replace(fits, bound="m").agrees


def test_a_pod_whose_victims_are_gone_is_found_but_with_several_terms_of_anti_affinity_before_1_37():
    one, several = (
        Verdict(
            case=pair(seed),
            fits=frozenset(),
            preempts=frozenset({"n"}),
            bound="",
            nominated="n",
            why="",
            minor="1.36",
        )
        for seed in (1, 966)
    )
    assert not one.agrees
    assert several.agrees
    assert not replace(several, minor="1.37").agrees
    assert not replace(several, nominated="m").agrees


def test_what_hangs_on_a_free_choice_is_told_from_what_does_not():
    found = expected(two_deployments("choices"))
    assert found.steps[1]["pods of Deployment web"] == ["3 x Running, ready, image one"]
    assert "pods of Deployment web: nodes" in found.chance[1]


def test_the_fake_cluster_agrees_with_itself_whatever_its_seed():
    scenario = two_deployments("itself")
    wanted = expected(scenario)
    side = FakeSide(scenario.name, "any", 99)
    painter = Painter(scenario, side)
    for number, step in enumerate(scenario.steps):
        answers = send(side, step.requests)
        side.settle(step.seconds)
        snapshot = painter.paint(answers, side.changes())
        painter.keep()
        assert differences(number, wanted, snapshot) == []


def test_a_cluster_that_does_something_else_is_found_out():
    wanted = expected(two_deployments("other"))
    snapshot = {**wanted.steps[1], "pods of Deployment web": ["2 x Running, ready, image one"]}
    (found,) = differences(1, wanted, snapshot)
    assert (found.step, found.what) == (1, "pods of Deployment web")
    del snapshot["pods of Deployment web"]
    (found,) = differences(1, wanted, snapshot)
    assert str(found).endswith("real nothing")


def test_a_pod_that_stands_where_it_does_not_fit_is_found():
    play = Play()
    play.nodes("a", cpu="1")
    play.apply(a_deployment("web", 2, a_template("web", cpu="400m")))
    play.wait(20)
    nodes, pods = list(play.cluster.store.all("nodes")), list(play.pods())
    fine = Placements().look(nodes, pods, [], [])
    assert fine == {"pods that stand where they do not fit": [], "pods that wait and fit": 0}
    small = [{**nodes[0], "status": {**nodes[0]["status"], "allocatable": {"cpu": "500m"}}}]
    wrong = Placements().look(small, pods, [], [])["pods that stand where they do not fit"]
    assert wrong == ["a: Too many pods", "a: Too many pods"]


def test_a_pod_that_waits_though_it_fits_is_found():
    play = Play()
    play.apply(a_deployment("web", 1))
    play.wait(20)
    nowhere = Placements().look([], play.pods(), [], [])
    play.nodes("a")
    somewhere = Placements().look(list(play.cluster.store.all("nodes")), play.pods(), [], [])
    assert [look["pods that wait and fit"] for look in (nowhere, somewhere)] == [0, 1]


def test_a_rollout_that_has_too_few_that_serve_is_found():
    play = Play()
    play.nodes("a")
    play.apply(a_deployment("web", 2))
    play.wait(20)
    deployment, pods = play.get(f"{DEPLOYMENTS}/web"), play.pods()
    past = Past(frozenset())
    there = [
        Seen(at=0, version=n, type="ADDED", resource="pods", object=pod)
        for n, pod in enumerate(pods)
    ]
    past.look(there, {}, [deployment], 0)
    past.keep()
    gone = [
        Seen(at=float(n), version=n, type="DELETED", resource="pods", object=pod)
        for n, pod in enumerate(pods)
    ]
    told = past.look(gone, {}, [deployment], 0)
    assert told["Deployment web had enough that served"] is False
    assert told["Deployment web had no more than it may"] is True


def test_a_dip_lasts_however_much_else_happens_meanwhile():
    play = Play()
    play.nodes("a")
    play.apply(a_deployment("web", 2))
    play.wait(20)
    deployment, (one, other) = play.get(f"{DEPLOYMENTS}/web"), play.pods()
    past = Past(frozenset())
    past.look(
        [
            Seen(at=0, version=n, type="ADDED", resource="pods", object=pod)
            for n, pod in enumerate((one, other))
        ],
        {},
        [deployment],
        0,
    )
    past.keep()
    changes = [Seen(at=1, version=3, type="DELETED", resource="pods", object=one)]
    changes += [
        Seen(at=1 + n / 2, version=3 + n, type="MODIFIED", resource="pods", object=other)
        for n in range(1, 4)
    ]
    changes.append(Seen(at=3, version=9, type="ADDED", resource="pods", object=one))
    lasted = past.look(changes, {}, [deployment], 0.7)
    blinked = past.look([changes[0], replace(changes[-1], at=1.5)], {}, [deployment], 0.7)
    assert lasted["Deployment web had enough that served"] is False
    assert blinked["Deployment web had enough that served"] is True


class LeftBehind(ControlPlane):
    """A control plane that deletes the namespace of an earlier play, in which finalizers hold what was seen late."""

    def __init__(self) -> None:
        held = {"name": "held", "finalizers": ["example.com/held"]}
        self.left: dict[str, list[Json]] = {
            "services": [{"metadata": held}],
            "pods": [{"metadata": held}, {"metadata": {"name": "web"}}],
        }
        self.made = 0

    @override
    def send(self, request: Request) -> Response:
        *_, resource, name = ["", *request.path.rsplit("/", 2)[1:]]
        if request.method == "POST":
            self.made += 1
            there = any(self.left.values())
            return Response(status=409 if there else 201, body={"message": "it is being deleted"})
        if request.method == "GET":
            return Response(status=200, body={"items": [*self.left[name]]})
        (found,) = (each for each in self.left[resource] if each["metadata"]["name"] == name)
        if request.method == "PATCH":
            found["metadata"] = {"name": name}
        elif "finalizers" not in found["metadata"]:
            self.left[resource].remove(found)
        return Response(status=200, body={})

    @override
    def touch(self, scenario: str) -> None:
        pass

    @override
    def quiet_for(self, scenario: str) -> float:
        return 60

    @override
    def objects(self, scenario: str, resource: str) -> Sequence[Json]:
        return ()

    @override
    def changes(self, scenario: str) -> Sequence[Seen]:
        return ()


def test_a_scenario_is_played_again_once_nothing_holds_what_its_first_play_left_behind():
    plane = LeftBehind()
    ActualSide(plane, "behaviour-finalizers")
    assert plane.left == {"services": [], "pods": []}
    assert plane.made == 2
