"""`docs/develop/rigs.md` is true of the rigs that there are: their names, who starts them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plimsoll_simulation.checkout import Checkout
from plimsoll_simulation.rigs.registry import RIGS, rig_of
from plimsoll_simulation.scenario.capabilities import RIGS as CAPABILITIES
from plimsoll_simulation.scenario.drill import read_drill

ROOT = Checkout.find().root
PAGE = (ROOT / "docs" / "develop" / "rigs.md").read_text(encoding="utf-8")
CODE = re.compile(r"`([^`]+)`")


def tables():
    """Return the rows of each table, without its line of dashes."""
    found, rows = [], []
    for line in [*PAGE.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            found.append([rows[0], *rows[2:]])
            rows = []
    return found


RIG_ROWS, *OTHERS = tables()
HOLES = [row for rows in OTHERS if rows[0][0] == "where" for row in rows[1:]]
ROWS = {row[0]: dict(zip(RIG_ROWS[0][1:], row[1:], strict=True)) for row in RIG_ROWS[1:]}


def test_every_rig_has_a_column_and_no_other_but_aws():
    assert RIG_ROWS[0][1:] == [*RIGS, "AWS"]
    assert set(CAPABILITIES) == set(RIGS)


@pytest.mark.parametrize("rig", RIGS)
def test_what_holds_a_rig_is_a_test_that_plays_a_drill_on_it(rig):
    [file] = CODE.findall(ROWS["held by"][rig])
    text = (ROOT / file).read_text(encoding="utf-8")
    if "from tests.support import drills" in text:
        text += (ROOT / "tests" / "support" / "drills.py").read_text(encoding="utf-8")
    package, _, module = RIGS[rig].partition(":")[0].rpartition(".")
    assert f"from {package}.{module} import" in text or f"from {package} import {module}" in text


def test_the_rig_that_needs_nothing_needs_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    drill = read_drill(ROOT / "tests" / "e2e" / "emulated" / "drill.yaml")
    assert rig_of("simulated")(drill, responder="plimsoll", seed=0)["expect"]["held"]


def test_every_hole_names_a_test_that_exists_or_says_who_else_holds_it():
    tests = "\n".join(
        file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py")
    )
    assert len(HOLES) > 12
    for where, _, held in HOLES:
        named = [word for word in CODE.findall(held) if "test_" in word]
        for name in named:
            if name.endswith(".py"):
                assert (ROOT / name).is_file(), f"{where}: {name}"
            else:
                assert f"def {name}(" in tests, f"{where}: {name}"
        assert named or "nobody" in held or held.startswith("the stack"), where


def test_make_has_the_targets_that_the_page_types():
    makefile = Path(ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    typed = re.findall(r"\bmake ([a-z-]+(?: [a-z-]+)*)(?=`|\s{2,}|$)", PAGE, re.MULTILINE)
    assert {target for words in typed for target in words.split()} <= targets
