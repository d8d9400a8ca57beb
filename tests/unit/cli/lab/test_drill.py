from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from plimsoll_cli import main
from plimsoll_simulation.measure.report import Report
from tests.support.drills import WEB

DRILL = """
apiVersion: plimsoll.dev/v1
kind: Drill
metadata: {name: small}
spec:
  clusters:
    - name: harbor
      nodeGroups:
        - {name: spot, kind: static, capacity: spot, instanceType: m5.xlarge, zones: [us-east-1a],
           size: 1, allocatable: {cpu: "8", memory: 32Gi, pods: 10}}
      manifests: [web.yaml]
  timeline:
    - {at: 5s, notice: spot-interruption, reclaim: 10s, nodes: {capacity: spot}}
"""

EXPECT = """
  expect: {podsKilled: 0}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "web.yaml").write_text(WEB)
    (tmp_path / "drill.yaml").write_text(DRILL)
    return tmp_path


def drill(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["drill", *arguments])


def test_the_schema_of_a_drill_is_printed_and_nothing_else():
    printed = json.loads(drill("--schema").stdout)
    assert printed["properties"]["kind"]["const"] == "Drill"


def test_json_on_standard_output_stands_alone(folder: Path):
    result = drill("drill.yaml", "--responder", "none", "--json", "-")
    report = json.loads(result.stdout)
    assert (report["drill"], report["rig"], report["responder"]) == ("small", "simulated", "none")
    assert "default/web" in result.stderr


def test_verbose_tells_on_standard_error_what_happens(folder: Path):
    result = drill("drill.yaml", "--responder", "none", "--verbose", "--json", "-")
    assert "5.000  spot-interruption for spot-1 of harbor" in result.stderr
    json.loads(result.stdout)


def test_what_a_drill_does_not_play_is_named_in_one_line_for_each_kind(folder: Path):
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"
    (folder / "web.yaml").write_text(f"{WEB}\n---\n{account}---\n{account}")
    result = drill("drill.yaml", "--responder", "none", "--json", "-")
    assert result.exit_code == 0
    said = [line for line in result.stderr.splitlines() if "left out" in line]
    assert said == ["left out of the manifests, because no drill plays it: 2 ServiceAccount"]


def test_an_expectation_that_does_not_hold_ends_with_1_and_its_words(folder: Path):
    (folder / "drill.yaml").write_text(DRILL.replace("reclaim: 10s", "reclaim: 1s") + EXPECT)
    result = drill("drill.yaml")  # one node, one second, nowhere to go: no responder can win
    assert result.exit_code == 1
    assert "expectation failed" in result.stdout
    assert "podsKilled" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.yaml"], "missing.yaml"),
        ([], "Missing argument"),
        (["drill.yaml", "--rig", "moon"], "no rig moon"),
        (["drill.yaml", "--responder", "hope"], "hope"),
        (["drill.yaml", "--seed", "-1"], "-1"),
        (["drill.yaml", "--json", "no/such/place.json"], "no/such"),
        (["drill.yaml", "--json", "."], "directory"),
    ],
)
def test_what_is_wrong_is_named_and_ends_with_2(folder: Path, arguments: list[str], words: str):
    result = drill(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stdout == ""


def test_a_cluster_that_never_becomes_ready_ends_with_2_and_says_what_is_not(folder: Path):
    (folder / "web.yaml").write_text(WEB.replace("replicas: 1", "replicas: 99"))
    result = drill("drill.yaml", "--json", "report.json")
    assert result.exit_code == 2
    assert "web of harbor has 10 of 99 replicas Ready" in result.stderr
    assert not (folder / "report.json").exists()


def test_a_bug_ends_with_2_and_a_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def broken(*_arguments: object, **_options: object) -> Report:
        raise ZeroDivisionError

    monkeypatch.setattr("plimsoll_cli.lab.drill.rig_of", lambda _name: broken)
    result = drill("drill.yaml")
    assert result.exit_code == 2
    assert "ZeroDivisionError" in result.stderr
    assert "a bug of Plimsoll" in result.stderr


def test_ctrl_c_ends_as_shells_expect(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_arguments: object, **_options: object) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr("plimsoll_cli.lab.drill.rig_of", lambda _name: interrupted)
    result = drill("drill.yaml")
    assert result.exit_code == 130
