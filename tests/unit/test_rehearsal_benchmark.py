"""The benchmark of rehearsals: what it keeps of each drill, and what it plays again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner, Result

from benchmarks.rehearsal import Played, main


def run(results: Path) -> Result:
    words = ["--rig", "simulated", "--count", "1", "--first", "3", "--results", str(results)]
    return CliRunner().invoke(main, words)


def test_a_drill_that_was_played_is_kept_and_not_played_again(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    first = run(results)
    assert first.exit_code == 0, first.output
    assert "1 of 1 drills: seed 3" in first.stderr
    (kept,) = map(Played.read, results.read_text().splitlines())
    assert kept.pairs
    assert Played.read(kept.line()) == kept
    second = run(results)
    assert (second.exit_code, second.stderr) == (0, "")
    assert "1 drills on the rig simulated" in second.stdout


def test_one_that_failed_is_played_again(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    failed = Played(rig="simulated", seed=3, scope="all", seconds=0, failed="no time")
    elsewhere = replace(failed, rig="cluster", failed=None)
    results.write_text(f"{failed.line()}\n{elsewhere.line()}\n")
    assert "1 of 1 drills: seed 3" in run(results).stderr
    assert len(results.read_text().splitlines()) == 3
