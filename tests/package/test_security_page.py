"""`docs/operate/security.md` maps rights to tests; each test or claim that it names is there, and is not left out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operate" / "security.md").read_text(encoding="utf-8")
TABLES = re.findall(r"^\|.+\| test \|\n\|[-|]+\n((?:\|.+\n)+)", PAGE, re.MULTILINE)
TRIED = yaml.safe_load((ROOT / "tests" / "rights" / "attempts.yaml").read_text(encoding="utf-8"))
CLAIMS = {claim for claims in TRIED.values() for claim in claims}
ROWS = re.findall(r"^\| (.+) \|$", "".join(TABLES), re.MULTILINE)


@cache
def functions(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def test_every_row_names_tests_that_exist():
    assert len(ROWS) > 15
    for row in ROWS:
        cells = row.split(" | ")
        assert len(cells) == 4, row
        for cell in cells[3].split(", "):
            if claim := re.fullmatch(r"`tests/rights/attempts\.yaml::(\w+)`", cell):
                assert claim[1] in CLAIMS, claim[1]
                continue
            named = re.fullmatch(r"`(tests/.+\.py)::(test_\w+)`", cell)
            assert named is not None, row
            found = functions(named[1])
            assert named[2] in found, f"{named[1]} has no {named[2]}"
            marks = " ".join(map(ast.unparse, found[named[2]].decorator_list))
            assert not re.search("skip|xfail", marks), f"{named[2]} is not held: {marks}"


def test_every_right_to_write_has_a_row():
    rights = {verb for row in ROWS for verb in re.findall(r"^`(\w+)`", row)}
    assert {"patch", "create", "delete", "update"} <= rights
