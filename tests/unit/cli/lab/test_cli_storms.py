"""`plimsoll storms`: what it prints, keeps, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll_cli import main
from plimsoll_cli.lab import storms as command
from plimsoll_simulation.scenario.drill import read_drill
from plimsoll_simulation.storms import Storm, StormResult, Violation, Worse


def run(*args: str):
    return CliRunner().invoke(main, ["storms", *args])


def test_storms_that_keep_every_rule_end_well():
    result = run("--seed", "301", "--count", "2", "--twice-every", "0")
    assert result.exit_code == 0
    assert "2 storms from seed 301" in result.stdout
    assert "every rule was kept" in result.stdout
    assert "2 of 2 storms" in result.stderr


@pytest.mark.parametrize(
    ("other_controller", "kind"),
    [("karpenter", "karpenter"), ("nth", None), ("managed-node-group", "eks-nodegroup")],
)
def test_a_storm_is_played_beside_another_controller_that_has_nodes_of_its_own_kind(
    other_controller: str, kind: str | None, monkeypatch: pytest.MonkeyPatch
):
    played: list[Storm] = []

    def play(storm: Storm, **_: object) -> StormResult:
        played.append(storm)
        return StormResult(seed=storm.seed)

    monkeypatch.setattr(command, "play_storm", play)
    assert run("--count", "9", "--other-controller", other_controller, "--guarded").exit_code == 0
    assert all(other_controller in storm.other_controllers for storm in played)
    spot = [g for s in played for g in s.groups if g.capacity == "spot" and g.kind != "static"]
    assert {g.kind for g in spot} == ({kind} if kind else {"asg", "eks-nodegroup"})
    assert any(g.renew for g in spot) == (kind != "karpenter")  # a NodePool has no tags of ours
    workloads = [w for storm in played for w in storm.workloads]
    assert all(w.guarded == (w.kind == "Deployment") for w in workloads)
    delays = {storm.queue_delay_seconds for storm in played}
    assert delays == ({0} if other_controller == "managed-node-group" else {0, 15})


def test_a_guard_without_another_controller_is_refused():
    assert run("--guarded").exit_code == 2


def test_a_broken_rule_is_told_with_its_seed_and_kept_as_a_small_drill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def broken(storm: Storm, **_: object) -> StormResult:
        found = Violation(rule="left-healthy-node", seconds=1.0, what="a pod of a")
        return StormResult(seed=storm.seed, violations=(found,) if storm.seed == 8 else ())

    monkeypatch.setattr(command, "play_storm", broken)
    result = run("--seed", "7", "--count", "2", "--keep", str(tmp_path))
    assert result.exit_code == 1
    assert "seed 8 broke left-healthy-node at 1 s: a pod of a" in result.stdout
    assert "left-healthy-node: 1 storms" in result.stdout
    kept = read_drill(tmp_path / "storm-8-left-healthy-node" / "drill.yaml")
    assert len(kept.scenario.cluster("harbor").node_groups) == 1


def test_workloads_that_another_responder_serves_better_are_a_table(monkeypatch):
    def worse(storm: Storm, *, against: tuple[str, ...], **_: object) -> StormResult:
        found = [
            Worse(workload=name, figure=figure, than="drain", ours=60.5, theirs=2, excused=excused)
            for name, figure, excused in (
                ("Deployment default/web", "seconds at zero", None),
                ("StatefulSet default/db", "seconds below quorum", None),
                ("Deployment default/api", "seconds at zero", "they have opted out"),
            )
            if "drain" in against
        ]
        return StormResult(seed=storm.seed, worse=tuple(found))

    monkeypatch.setattr(command, "play_storm", worse)
    result = run("--seed", "7", "--count", "1", "--against", "drain")
    assert result.exit_code == 1
    told = [line for line in result.stdout.splitlines() if line.startswith("seed 7 broke")]
    assert told == [
        "seed 7 broke worse-than-drain: Deployment default/web, seconds at zero 60.5, not 2",
        "seed 7 broke worse-than-drain: StatefulSet default/db, seconds below quorum 60.5, not 2",
    ]
    assert result.stdout.count("│ 7 ") == 3
    assert run("--seed", "7", "--count", "1", "--against", "none").exit_code == 0


def test_a_count_that_is_none_is_refused():
    assert run("--count", "0").exit_code == 2
