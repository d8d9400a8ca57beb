"""No name of a class, function, module or metric uses a word that the glossary has retired."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from plimsoll.domain.reports import Metric

ROOT = Path(__file__).parents[2]
TREES = (
    "layers",
    "agent",
    "cli",
    "simulation",
    "testbed",
    "functions",
    "benchmarks",
    "tests/support",
)
RETIRED = frozenset(
    {
        "board",
        "room",
        "crowd",
        "deal",
        "dealing",
        "dealt",
        "opening",
        "hurdle",
        "doomed",
        "going",
        "demand",
        "hands",
        "discard",
        "tick",
        "sweep",
        "tally",
        "tallies",
        "ledger",
        "picture",
        "noting",
        "trouble",
        "errand",
        "standin",
        "looks",
        "stage",
        "script",
        "repertoire",
        "world",
        "mend",
        "mischief",
        "ears",
        "hearing",
        "checkup",
    }
)
RETIRED_NAMES = frozenset({"GiveBack", "Renew"})
"""Their words are Kubernetes' own in other names: a Lease is renewed."""
EXEMPT = frozenset(
    {
        "scales: ticks",  # the ticks of a page's axis
    }
)
"""Module and name: words of somebody else's contract."""
_ON_DEMAND = re.compile("on_?demand", re.IGNORECASE)
"""AWS's word for capacity that is not spot."""
_DEFINED = re.compile(r"^ *(?:async )?(?:def|class) (\w+)", re.MULTILINE)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words(name: str) -> set[str]:
    """Return the words of a name in either style, each also without a plural's `s`."""
    found = {word.lower() for word in _WORD.findall(_ON_DEMAND.sub("", name))}
    return found | {word.removesuffix("s") for word in found}


def names_of(path: Path) -> Iterator[str]:
    """Yield the module's name, and those of its classes and functions."""
    yield path.stem if path.stem != "__init__" else path.parent.name
    yield from _DEFINED.findall(path.read_text())


def test_the_words_of_a_name_are_told_apart() -> None:
    assert words("HTTPRooms") == {"http", "rooms", "room"}
    assert words("_room_of2") == {"room", "of"}
    assert words("on_demand_headroom") == {"headroom"}


def test_no_class_function_or_module_has_a_retired_name() -> None:
    modules = [path for tree in TREES for path in sorted((ROOT / tree).rglob("*.py"))]
    assert modules
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules
        for name in names_of(path)
        if (words(name) & RETIRED or name in RETIRED_NAMES) and f"{path.stem}: {name}" not in EXEMPT
    ]
    assert found == []


def test_no_metric_has_a_retired_name() -> None:
    assert [metric for metric in Metric if words(metric) & RETIRED] == []
