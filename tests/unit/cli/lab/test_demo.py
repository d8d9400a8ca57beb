"""`plimsoll demo`: what it prints and how it ends, with rigs that say what the test wants."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from plimsoll_cli import main
from plimsoll_simulation.measure.findings import promises
from plimsoll_simulation.measure.listening import Listener
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import Drill, read_drill

EXAMPLE = Path(__file__).parents[4] / "examples" / "all-spot-and-back.yaml"

type Json = dict[str, Any]
type Rig = Callable[..., Json]


def demo(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["demo", *arguments])


@cache
def played(responder: str) -> Json:
    report = run(read_drill(EXAMPLE), responder=responder, seed=7)
    return json.loads(json.dumps(report))  # type: ignore[no-any-return] # it is an object


def replayed(_drill: Drill, *, responder: str, **_: Any) -> Json:
    return copy.deepcopy(played(responder))


@pytest.fixture
def on_the_emulated_rig(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rig], None]:
    """Let the demo find another emulated rig, and a simulated one that plays each drill once."""

    def use(rig: Rig) -> None:
        found = {"emulated": rig, "simulated": replayed}
        monkeypatch.setattr("plimsoll_cli.lab.demo.rig_of", found.__getitem__)

    return use


def as_emulated(drill: Drill, *, listener: Listener, **how: Any) -> Json:
    listener.say(1.5, "started the emulator (1.5 s)")
    return {**replayed(drill, **how), "rig": "emulated"}


def test_a_simulated_demo_ends_with_a_table_and_a_verdict():
    result = demo("--rig", "simulated")
    assert result.exit_code == 0, result.output
    assert "shop/legacy" in result.stdout
    assert "yes  0 pods killed" in result.stdout
    assert "yes  0 seconds at zero for each workload that can run twice" in result.stdout
    assert "ready-replica-seconds lost" in result.stdout
    assert "Plimsoll carried all-spot-and-back as promised" in result.stdout
    assert "the simulated rig" not in result.stdout
    assert "simulated drain (" in result.stderr
    assert "cordon Node spot-m5-1" in result.stderr


def test_the_emulated_rig_is_the_default_and_the_simulated_one_has_to_agree(
    on_the_emulated_rig: Callable[[Rig], None], tmp_path: Path
):
    on_the_emulated_rig(as_emulated)
    result = demo("--keep", str(tmp_path / "reports"))
    assert result.exit_code == 0, result.output
    assert "started the emulator" in result.stderr
    assert "yes  the simulated rig gives the same verdict" in result.stdout
    assert sorted(path.name for path in (tmp_path / "reports").iterdir()) == [
        "all-spot-and-back-emulated-plimsoll.json",
        "all-spot-and-back-simulated-drain.json",
        "all-spot-and-back-simulated-none.json",
        "all-spot-and-back-simulated-plimsoll.json",
    ]


def test_a_broken_promise_ends_with_1_and_names_it(
    on_the_emulated_rig: Callable[[Rig], None],
):
    def killing(drill: Drill, **options: Any) -> Json:
        report = as_emulated(drill, **options)
        report["totals"]["pods_killed"] = 2
        report["workloads"][0]["pods_killed"] = 2
        return report

    on_the_emulated_rig(killing)
    result = demo()
    assert result.exit_code == 1
    assert "NO   2 pods killed: shop/" in result.stdout
    assert "NO   the simulated rig gives another verdict: 0 killed" in result.stdout
    assert "2 of 5 did not hold" in result.stdout


def test_ctrl_c_ends_with_130_and_says_that_nothing_is_left(
    on_the_emulated_rig: Callable[[Rig], None],
):
    def interrupted(drill: Drill, **options: Any) -> Json:
        raise KeyboardInterrupt

    on_the_emulated_rig(interrupted)
    result = demo()
    assert result.exit_code == 130
    assert "interrupted: the demo stopped everything that it started" in result.stderr
    assert result.stdout == ""


def test_the_options_of_the_interruption_are_refused_with_another_demo():
    result = demo("batch", "--rig", "simulated")
    assert result.exit_code == 2
    assert "of the interruption, not of batch" in result.stderr


# The verdict by itself.


def test_a_drain_does_not_keep_them():
    killed, at_zero, lost = promises(played("drain"), played("drain"))
    assert not killed.held
    assert not at_zero.held
    assert "shop/legacy" in at_zero.text
    assert not lost.held
    assert "100.0% of drain's" in lost.text
