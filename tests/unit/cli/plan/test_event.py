"""`plimsoll event`: what an event would lead to, and what it says of one that leads to nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.observation import Sample, Samples
from plimsoll.domain.registry import Mode
from tests.support.builders import a_group
from tests.support.cli_environment import (
    EVENTS,
    SPOT,
    MemoryEnvironment,
    an_environment,
    an_event,
    entry,
    interrupt,
    run,
)


def test_shows_the_actions_and_their_reasons(tmp_path: Path):
    environment, _ = an_environment()
    result = run(environment, "event", an_event(tmp_path))
    assert result.exit_code == 0
    assert "spot reclaims it (terminate)" in result.stdout
    assert "cordon" in result.stdout
    assert "Node spot-1" in result.stdout
    assert "Pod default/web-" in result.stdout
    assert "their replacements come first" in result.stdout
    assert "Plimsoll would wait" in result.stdout
    assert "2026-01-02T12:01:58Z  node spot-1 must be empty" in result.stdout


@pytest.mark.parametrize("mode", list(Mode))
def test_writes_nothing_whatever_the_mode(mode: Mode, tmp_path: Path):
    environment, counting = an_environment(mode=mode)
    run(environment, "event", an_event(tmp_path))
    assert counting.writes == []
    assert environment.reports.list("harbor") == []


def test_with_json_prints_nothing_but_the_plan(tmp_path: Path):
    environment, _ = an_environment()
    result = run(environment, "event", an_event(tmp_path), "--output", "json")
    said = json.loads(result.stdout)
    assert said["notices"][0] | {"because": ""} == {
        "kind": "spot-interruption",
        "instance": SPOT,
        "time": "2026-01-02T12:00:00Z",
        "effect": "drain",
        "because": "",
        "cluster": "harbor",
        "node": "spot-1",
    }
    (plan,) = said["plans"]
    assert [(s["wave"], s["action"]) for s in plan["steps"]] == [
        ("cordon", "cordon"),
        ("replace", "release"),
    ]
    assert plan["deadlines"] == {"spot-1": "2026-01-02T12:01:58Z"}
    assert "Ready elsewhere" in plan["waiting"]["spot-1"][0]
    assert [each["at"] for each in plan["next"]] == [
        None,
        "2026-01-02T12:01:28Z",
        "2026-01-02T12:01:58Z",
    ]


def test_finds_the_node_by_its_provider_id_where_the_index_knows_nothing(tmp_path: Path):
    environment, _ = an_environment()
    environment.index.__init__()  # type: ignore[misc]  # the quickest way to forget
    result = run(environment, "event", an_event(tmp_path), "--cluster", "harbor")
    assert "Node spot-1" in result.stdout


def test_takes_the_node_groups_of_the_stack_into_the_plan(tmp_path: Path):
    environment, _ = an_environment(cpu="5")
    environment.groups = [a_group("base")]
    result = run(environment, "event", an_event(tmp_path))
    assert "asg base by 1" in result.stdout
    without = run(environment, "event", an_event(tmp_path), "--context", "harbor")
    assert "asg base" not in without.stdout


def test_a_notice_that_is_on_the_node_already_is_not_cordoned_again(tmp_path: Path):
    environment, _ = an_environment()
    interrupt(environment)
    event = an_event(tmp_path, id="event")
    said = json.loads(run(environment, "event", event, "--output", "json").stdout)
    assert "cordon" not in [s["action"] for s in said["plans"][0]["steps"]]


def test_says_why_an_instance_is_not_ours(tmp_path: Path):
    environment, _ = an_environment()
    environment.index.__init__()  # type: ignore[misc]  # the quickest way to forget
    result = run(environment, "event", an_event(tmp_path))
    assert result.exit_code == 0
    assert f"{SPOT} is not ours: EC2 does not know it" in result.stdout
    assert "Plimsoll would do nothing" in result.stdout


def test_says_when_the_cluster_of_an_instance_is_registered_no_longer(tmp_path: Path):
    environment, _ = an_environment(registered=False)
    environment.index.put([entry()])
    result = run(environment, "event", an_event(tmp_path))
    assert result.exit_code == 0
    assert "harbor is not a registered cluster" in result.stdout


def test_says_when_the_node_is_gone(tmp_path: Path):
    environment, _ = an_environment()
    event = json.loads(Path(an_event(tmp_path)).read_text())
    event["detail"]["instance-id"] = "i-00000000000000099"
    (tmp_path / "gone.json").write_text(json.dumps(event))
    result = run(environment, "event", str(tmp_path / "gone.json"), "--cluster", "harbor")
    assert result.exit_code == 0
    assert "i-00000000000000099 has no node in harbor (any more)" in result.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("state-change-running.json", "it is running"),
        ("lifecycle-test-notification.json", "Auto Scaling tests the queue of a hook"),
        ("zonal-autoshift.json", "traffic leaves the zone"),
    ],
)
def test_says_why_a_notice_leads_to_nothing(name: str, said: str):
    environment, _ = an_environment()
    result = run(environment, "event", str(EVENTS / name))
    assert result.exit_code == 0
    assert said in result.stdout
    assert "Plimsoll would do nothing" in result.stdout


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"hello": 1}', "neither an EventBridge event"),
        ('{"source": "aws.ec2", "detail-type": "EC2 Instance Poked"}', "no kind of event that we"),
        ("x" * 300_000, "more than an event can have"),
        ('{"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}', "id"),
    ],
)
def test_refuses_what_is_no_event_and_says_why(body: str, said: str, tmp_path: Path):
    file = tmp_path / "bad.json"
    file.write_text(body)
    result = run(MemoryEnvironment(), "event", str(file))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert str(file) in result.stderr
    assert said in result.stderr


def test_refuses_a_file_that_is_not_there(tmp_path: Path):
    for file, said in (
        (tmp_path / "none.json", "No such file"),
        (tmp_path, "Is a directory"),
    ):
        result = run(MemoryEnvironment(), "event", str(file))
        assert result.exit_code == 2
        assert said in result.stderr


def test_reads_standard_input(tmp_path: Path):
    environment, _ = an_environment()
    body = Path(an_event(tmp_path)).read_text()
    assert "Node spot-1" in run(environment, "event", "-", input=body).stdout


def test_an_example_is_taken_to_be_about_an_instance_of_ones_own_and_now():
    environment, _ = an_environment(registered=False)
    example = str(EVENTS / "spot-interruption.json")
    result = run(
        environment,
        "event",
        example,
        "--context",
        "harbor",
        "--now",
        "--instance",
        SPOT,
        "--output",
        "json",
    )
    (plan,) = json.loads(result.stdout)["plans"]
    assert plan["deadlines"] == {"spot-1": "2026-01-02T12:01:58Z"}


def test_refuses_an_instance_that_cannot_be_one(tmp_path: Path):
    result = run(MemoryEnvironment(), "event", an_event(tmp_path), "--instance", "spot-1")
    assert result.exit_code == 2
    assert "give an instance id" in result.stderr


def test_refuses_two_ways_to_one_cluster(tmp_path: Path):
    environment, _ = an_environment()
    event = an_event(tmp_path)
    result = run(environment, "event", event, "--cluster", "harbor", "--context", "harbor")
    assert result.exit_code == 2
    assert "give either --cluster" in result.stderr


def test_a_cluster_that_does_not_answer_is_an_error(tmp_path: Path):
    environment, _ = an_environment()
    del environment.transports["harbor"]
    result = run(environment, "event", an_event(tmp_path))
    assert result.exit_code == 2
    assert "does not answer" in result.stderr


def test_says_how_it_is_known_how_long_pods_need_to_stop(tmp_path: Path):
    environment, _ = an_environment()
    result = run(environment, "event", an_event(tmp_path))
    assert "Deployment default/web: 30 s, assumed" in result.stdout

    sample = [Sample(uid=f"{n}", at=environment.clock.now(), seconds=8) for n in range(3)]
    told = Samples(stop=tuple(sample))
    environment.times.merge("harbor", Ref("Deployment", "default", "web"), told)
    result = run(environment, "event", an_event(tmp_path))
    assert "Deployment default/web: 8 s, observed (3 pods, p95 8 s)" in result.stdout

    result = run(environment, "event", an_event(tmp_path), "--output", "json")
    (plan,) = json.loads(result.stdout)["plans"]
    assert plan["stop_times"] == {"Deployment default/web": "8 s, observed (3 pods, p95 8 s)"}
