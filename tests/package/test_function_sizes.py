"""The functions' memory and time, against what docs/develop/performance.md says that a large cluster takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

import pytest

from tests.package.template import ROOT, functions

PAGE = (ROOT / "docs" / "develop" / "performance.md").read_text()
SHARE = Fraction(3, 5)
"""Of a function's memory and of its time: the rest is for larger objects, and for what waits."""
STEP = 256
BOUGHT_FOR_PROCESSOR = {"notices", "drains"}


@dataclass(frozen=True, slots=True)
class Row:
    pods: int
    function: str
    setting: int
    memory: int
    at_its_share: float


def measured() -> list[Row]:
    """Return the rows of the table of large clusters."""
    section = PAGE.partition("## Large clusters")[2]
    rows, pods = list[Row](), 0
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not re.fullmatch(r"`\w+`", cells[2] if len(cells) > 6 else ""):
            continue
        pods = number(cells[0]) if cells[0] else pods
        rows.append(
            Row(pods, cells[2].strip("`"), number(cells[3]), number(cells[4]), seconds(cells[6]))
        )
    return rows


def number(cell: str) -> int:
    return int(cell.removesuffix(" MB").replace(",", ""))


def seconds(cell: str) -> float:
    return float(cell.removesuffix(" s"))


def properties(function: str) -> dict[str, int]:
    found: dict[str, int] = functions()[f"{function.capitalize()}Function"]["Properties"]
    return found


ROWS = measured()


def test_the_page_says_of_each_function_that_comes_to_clusters_what_each_size_takes():
    sizes = {row.pods for row in ROWS}
    assert max(sizes) == 150_000
    assert {(row.pods, row.function) for row in ROWS} == {
        (pods, function)
        for pods in sizes
        for function in ("notices", "drains", "sweep", "placement")
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.function}-{row.pods}")
def test_a_function_takes_at_most_three_fifths_of_its_memory_and_of_its_time(row: Row):
    has = properties(row.function)
    assert row.setting == has["MemorySize"]
    assert row.memory <= SHARE * has["MemorySize"]
    assert row.at_its_share <= SHARE * has["Timeout"]


def test_no_function_has_more_memory_than_the_largest_cluster_takes_but_for_a_processor():
    for function in {row.function for row in ROWS} - BOUGHT_FOR_PROCESSOR:
        peak = max(row.memory for row in ROWS if row.function == function)
        assert peak > SHARE * (properties(function)["MemorySize"] - STEP)
