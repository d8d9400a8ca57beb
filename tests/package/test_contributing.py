"""The map of CONTRIBUTING leads to files that exist and hold what it names."""

from __future__ import annotations

import re

import pytest

from tests.package.template import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CORE = ROOT / "layers" / "core" / "plimsoll"
CHANGES = PAGE.partition("## Where to change what")[2].partition("\n## ")[0]
ANSWERS = re.findall(r"^\| ([^`|]+\?) \| `(.+?)` \| `(.+?)` \|$", PAGE, re.MULTILINE)


def file_at(path: str):
    return next(root / path for root in (CORE, ROOT) if (root / path).exists())


def test_every_path_of_the_map_exists():
    paths = re.findall(r"`([\w./-]+/[\w./-]*|[\w-]+\.(?:py|yaml|md))`", CHANGES)
    beside = {"fault_injector.py", "timeline.py"}
    assert len(paths) > 20
    for path in set(paths) - beside:
        assert file_at(path), path


def test_every_name_of_the_map_is_in_the_file_beside_it():
    named = re.findall(
        r"`([A-Z]\w+)`(?: and `([A-Z]\w+)`)?(?: or `([A-Z]\w+)`)? in `(.+?)`", CHANGES
    )
    assert len(named) > 8
    for *names, path in named:
        text = file_at(path).read_text(encoding="utf-8")
        assert all(name in text for name in names), path


@pytest.mark.parametrize(("question", "path", "words"), ANSWERS, ids=[a[0] for a in ANSWERS])
def test_an_answer_is_where_the_table_says(question: str, path: str, words: str):
    assert words in file_at(path).read_text(encoding="utf-8"), question


def test_the_table_of_answers_is_read():
    assert len(ANSWERS) >= 20
