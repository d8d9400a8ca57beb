"""`plimsoll rehearse`: a live cluster is read, and what its interruption would do is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, override

import pytest
import yaml

from plimsoll.adapters.kubernetes.transport import Response as ApiResponse
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.errors import BadInput
from plimsoll.domain.interruptions import Policy, Response
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.observation import Sample, Samples
from plimsoll_simulation.measure.report import Report
from plimsoll_simulation.rigs.simulated.rig import Simulation
from plimsoll_simulation.scenario.capabilities import unsupported
from plimsoll_simulation.scenario.drill import read_drill
from tests.support.cli_environment import Counting, MemoryEnvironment, a_cluster, run
from tests.support.rehearsed import OBJECTS, a_mixed_cluster, a_workload, an_object

NOBODY = ("--responder", "none")
"""Who responds is not what the test is about, and this is the shortest play."""
PAGE = Path(__file__).parents[4] / "docs" / "guides" / "rehearsal.md"


@pytest.fixture
def environment() -> MemoryEnvironment:
    return a_mixed_cluster()


def predicted(environment: MemoryEnvironment, *args: str, status: int = 0) -> Report:
    result = run(environment, "rehearse", "--cluster", "harbor", "--output", "json", *args)
    assert result.exit_code == status, result.output
    answer: Report = json.loads(result.stdout)
    return answer


def outcome(found: Report, workload: str) -> Report:
    (answer,) = [row for row in found["outcomes"] if row["workload"] == workload]
    return dict(answer)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which a rehearsal kept its drill; `outcome.json` and `page.html` are beside it."""
    folder = tmp_path_factory.mktemp("kept")
    where = ("--keep", str(folder), "--html", str(folder / "page.html"))
    found = predicted(a_mixed_cluster(), *where, status=1)
    (folder / "outcome.json").write_text(json.dumps(found))
    return folder


def test_the_page_shows_exactly_what_the_command_prints_and_nothing_is_written(environment):
    result = run(environment, "rehearse", "--cluster", "harbor")
    shown = "\n".join(line.rstrip() for line in result.stdout.splitlines())
    assert f"$ plimsoll rehearse --cluster harbor\n{shown}\n```" in PAGE.read_text()
    assert environment.transports["harbor"].writes == []


def test_what_would_be_at_zero_is_a_no_and_what_is_in_the_way_is_named(kept):
    found = json.loads((kept / "outcome.json").read_text())
    assert found["at_zero"] == ["StatefulSet shop/db", "Deployment shop/ledger"]
    assert outcome(found, "Deployment shop/web")["min_ready"] >= 5
    assert {(o["workload"], o["kind"]) for o in found["obstacles"]} == {
        ("Deployment shop/ledger", "single replica"),
        ("Deployment shop/ledger", "budget"),
        ("Pod shop/report", "single replica"),
        ("StatefulSet shop/db", "single replica"),
        ("StatefulSet shop/db", "volume"),
    }
    assert found["asked"][0]["group"] == "Base_OnDemand"
    assert found["asked"][0]["first_asked"] < 5


def test_where_no_group_may_grow_less_is_saved_and_that_is_said():
    found = predicted(a_mixed_cluster(growing=False), status=1)
    assert found["asked"] == []
    assert outcome(found, "Deployment shop/web")["seconds_below_floor"] > 0
    assert "no node group may grow" in " ".join(found["notes"])


def marked(found: Report, workload: str) -> Report:
    (answer,) = [row for row in found["marks"] if row["workload"] == workload]
    return dict(answer)


def test_what_stays_by_the_rule_stands_beside_what_was_played(kept):
    web = marked(json.loads((kept / "outcome.json").read_text()), "Deployment shop/web")
    assert [(mark["kind"], mark["stays"]) for mark in web["marks"]] == [
        ("node", 4),
        ("family", 2),
        ("zone", 2),
        ("all spot", 0),
    ]
    assert (web["ready"], web["left"], web["played"]) == (6, 0, 6)


def test_a_mark_below_the_promise_of_the_policy_is_told(environment):
    environment.registry.update(replace(a_cluster(), policy=Policy(keep_ready="3")))
    result = run(environment, "rehearse", "--cluster", "harbor", "--zone", "us-east-1a", *NOBODY)
    *_, web = [row.split() for row in result.stdout.splitlines() if "Deployment shop/web" in row]
    assert web[2:] == ["6", "3", "4", "2", "(broken)", "2", "(broken)", "0", "(broken)", "4", "4"]


def test_the_promise_of_a_namespace_is_read(environment):
    promising = {"metadata": {"annotations": {"plimsoll.dev/keep-ready": "50%"}}}
    environment.transports["harbor"].call(
        "PATCH",
        "/api/v1/namespaces/shop",
        body=promising,
        content_type="application/merge-patch+json",
    )
    found = predicted(environment, *NOBODY, status=1)
    assert marked(found, "Deployment shop/web")["promised"] == 3
    assert marked(found, "StatefulSet shop/db")["promised"] is None


@pytest.mark.parametrize(
    ("scope", "nodes"),
    [
        (("--all-spot",), ["spot-0", "spot-1", "spot-2"]),
        (("--zone", "us-east-1b"), ["spot-1", "spot-2"]),
        (("--family", "m5"), ["spot-0", "spot-1"]),
        (("--pool", "m5.xlarge/us-east-1b"), ["spot-1"]),
    ],
)
def test_only_the_nodes_in_scope_go(environment, scope, nodes):
    found = predicted(environment, *scope, *NOBODY, status=1)
    assert [node["name"] for node in found["nodes"]] == nodes


def test_the_model_begins_as_the_cluster_stands(kept):
    drill = read_drill(kept / "rehearsal.yaml")
    promised = drill.scenario.clusters[0].bindings
    with Simulation(drill, responder="plimsoll", seed=3) as simulation:
        simulation.prepare()
        pods = list(simulation.rig_clusters["cluster"].all("pods"))
    web = [p["spec"]["nodeName"] for p in pods if p["metadata"]["name"].startswith("web-")]
    assert sorted(web) == sorted(promised["Deployment/shop/web"])
    (db,) = [p for p in pods if p["metadata"]["name"] == "db-0"]
    assert [db["spec"]["nodeName"]] == promised["Pod/shop/db-0"]


def test_a_kept_drill_holds_no_command_environment_or_secret(tmp_path):
    pod = {"volumes": [{"name": "key", "secret": {"secretName": "bank"}}]}
    secretive = a_workload("Deployment", "bank", 2, pod=pod)
    container = secretive["spec"]["template"]["spec"]["containers"][0]
    container |= {"command": ["pay"], "env": [{"name": "TOKEN", "value": "hunter2"}]}
    environment = a_mixed_cluster(objects=[*OBJECTS, secretive])
    predicted(environment, "--keep", str(tmp_path), *NOBODY, status=1)
    kept = "".join(file.read_text() for file in tmp_path.iterdir())
    assert "shop" in kept
    assert not any(word in kept for word in ("hunter2", "TOKEN", "pay", "secretName"))


def test_an_object_that_no_drill_can_hold_costs_only_itself():
    selector = {"matchLabels": {"app": "web"}}
    odd = an_object("PodDisruptionBudget", "odd", {"selector": selector})
    found = predicted(a_mixed_cluster(objects=[*OBJECTS, odd]), *NOBODY, status=1)
    assert "leaves out: PodDisruptionBudget shop/odd" in " ".join(found["notes"])
    assert outcome(found, "Deployment shop/web")["replicas"] == 6


def test_a_workload_is_played_with_the_pods_that_are_ready():
    stuck = a_workload("Deployment", "stuck", 3, pod={"cpu": "3500m"})
    found = predicted(a_mixed_cluster(objects=[*OBJECTS, stuck]), *NOBODY, status=1)
    assert any("Deployment shop/stuck" in note for note in found["notes"])


class Forbidding(Counting):
    """Lets nobody list one kind."""

    def __init__(self, transport: Transport, path: str) -> None:
        super().__init__(transport)
        self._path = path

    @override
    def call(self, method: str, path: str, **request: Any) -> ApiResponse:
        if path == self._path:
            body = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}
            return ApiResponse(status=403, body=body)
        return super().call(method, path, **request)


def test_where_jobs_may_not_be_listed_everything_else_is_predicted(environment):
    transport = environment.transports["harbor"]
    environment.transports["harbor"] = Forbidding(transport, "/apis/batch/v1/jobs")
    found = predicted(environment, status=1)
    assert found["at_zero"] == ["StatefulSet shop/db", "Deployment shop/ledger"]
    assert "Jobs were not read" in " ".join(found["notes"])


def test_a_policy_that_would_not_move_is_said(environment):
    ignoring = Policy(on=(("spot-interruption", Response.IGNORE),))
    environment.registry.update(replace(a_cluster(), policy=ignoring))
    found = predicted(environment, status=1)
    assert "responds to spot interruptions with ignore" in found["notes"][0]


def test_the_page_escapes_names_and_needs_no_network(kept):
    drawn = (kept / "page.html").read_text()
    assert "2 of 4 workloads would be at zero" in drawn
    assert "Deployment shop/ledger" in drawn
    assert "What stays Ready if spot instances go" in drawn
    assert "http" not in drawn.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "name the cluster"),
        (
            ("--cluster", "harbor", "--zone", "mars-1a"),
            "there is nothing like every spot instance in mars-1a",
        ),
        (("--cluster", "harbor", "--pool", "m5.large"), "write type and zone"),
        (("--cluster", "harbor", "--all-spot", "--zone", "us-east-1a"), "give one of"),
        (("--cluster", "quay"), "no cluster quay"),
    ],
)
def test_what_cannot_be_rehearsed_says_what_to_do(environment, args, said):
    result = run(environment, "rehearse", *args)
    assert result.exit_code == 2
    assert said in result.output


def test_a_rig_whose_scheduler_chooses_refuses_bindings(kept):
    scenario = read_drill(kept / "rehearsal.yaml").scenario
    assert unsupported(scenario, "simulated") == []
    (problem,) = unsupported(scenario, "cluster")
    assert "its scheduler chooses the nodes" in str(problem)


def test_a_binding_to_a_node_that_is_not_there_is_refused(kept):
    drill, file = yaml.safe_load((kept / "rehearsal.yaml").read_text()), kept / "wrong.yaml"
    drill["spec"]["clusters"][0]["bindings"]["Deployment/shop/web"][0] = "nodes-1-9"
    file.write_text(yaml.safe_dump(drill))
    with pytest.raises(BadInput, match="unknown node nodes-1-9"):
        read_drill(file)


def test_a_stack_tells_how_long_pods_were_seen_to_take_and_the_model_plans_with_it(
    environment, tmp_path
):
    db = Ref("StatefulSet", "shop", "db")
    sample = [Sample(uid=f"{n}", at=environment.clock.now(), seconds=8) for n in range(4)]
    environment.times.merge("harbor", db, Samples(stop=tuple(sample)))
    found = predicted(environment, "--keep", str(tmp_path), status=1)
    assert outcome(found, str(db))["stop"] == "30 s, observed (4 pods, p95 8 s)"
    assert "stop times of workloads: 1 observed, 3 assumed" in found["notes"]
    kept = read_drill(tmp_path / "rehearsal.yaml").scenario.clusters[0]
    assert str(kept.observed["StatefulSet/shop/db"].stop).startswith("pods=4")
    assert "drill.plimsoll.dev/stop: 8s" in "".join(
        file.read_text() for file in tmp_path.glob("objects*")
    )


def test_without_a_stack_it_says_that_no_group_was_read_and_stop_times_are_assumed(environment):
    result = run(environment, "rehearse", "--context", "harbor", "--output", "json", *NOBODY)
    notes = json.loads(result.stdout)["notes"]
    assert "no node group is known: give each group that may grow with --group" in " ".join(notes)
    assert "stop times of workloads: 4 assumed" in notes
    assert "without a stack nothing is remembered of pods that stopped" in " ".join(notes)


def test_a_long_grace_period_of_which_nobody_knows_how_much_is_needed_is_named():
    pod = {"terminationGracePeriodSeconds": 600}
    stated = a_workload("Deployment", "stated", 2, pod=pod)
    template = stated["spec"]["template"]["metadata"]
    template["annotations"] = {"plimsoll.dev/stop-seconds": "5"}
    slow = a_workload("Deployment", "slow", 2, pod=pod)
    found = predicted(a_mixed_cluster(objects=[*OBJECTS, slow, stated]), *NOBODY, status=1)
    named = [each for each in found["obstacles"] if each["kind"] == "stop time"]
    assert [each["workload"] for each in named] == ["Deployment shop/slow"]
    assert "600 s" in named[0]["why"]
    assert "plimsoll.dev/stop-seconds" in named[0]["change"]
    assert outcome(found, "Deployment shop/stated")["stop"] == "5 s, stated"
