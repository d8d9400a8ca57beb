"""What the pages promise: each decision is in the index, and no link leads nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll_cli import COMMANDS

ROOT = Path(__file__).parents[2]
DECISIONS = ROOT / "docs" / "decisions"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "infra").rglob("*.md")]
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_ROW_WITH_A_TEST = re.compile(r"^\|.*`(test_\w+)` \|$", re.MULTILINE)
_NAMED = re.compile(r"\bplimsoll ([a-z]+)\b(?= |$)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: Path) -> str:
    return "\n".join(_FENCE.findall(page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page, made as GitHub makes them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        for heading in _HEADING.findall(prose(page))
    }


def relative_links() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for link in dict.fromkeys(_LINK.findall(prose(page))):
            if "://" not in link and not link.startswith("mailto:"):
                yield page, link


def decisions() -> list[Path]:
    return sorted(DECISIONS.glob("[0-9]*.md"))


def test_there_are_pages_and_links_to_look_at():
    assert len(PAGES) > 10
    assert len(list(relative_links())) > 20


@pytest.mark.parametrize(
    ("page", "link"),
    [pytest.param(p, link, id=f"{name_of(p)}-{link}") for p, link in relative_links()],
)
def test_every_relative_link_leads_somewhere(page: Path, link: str):
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    assert target.exists()
    assert target.is_relative_to(ROOT)
    if anchor:
        assert anchor in anchors(target)


def test_every_decision_is_in_the_index_in_order_and_the_index_names_no_other():
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\* \[\d{4} .+?\]\((.+?)\)$", index, re.MULTILINE)
    assert listed == [page.name for page in decisions()]


@pytest.mark.parametrize("page", ["README.md", "docs/quickstart.md"])
def test_every_command_that_a_first_page_types_exists(page: str):
    typed = set(_NAMED.findall(blocks(ROOT / page)))
    assert typed
    assert typed <= set(COMMANDS)


def test_every_make_target_that_the_readme_types_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^ *make ([a-z-]+)", blocks(ROOT / "README.md"), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_license_is_the_whole_apache_license():
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_every_line_of_the_table_beside_volcano_and_kueue_names_a_test_that_exists():
    section = prose(ROOT / "docs" / "guides" / "batch.md").partition("## Beside Volcano and Kueue")[
        2
    ]
    table = section.partition("\n## ")[0]
    named = _ROW_WITH_A_TEST.findall(table)
    tests = "\n".join(file.read_text(encoding="utf-8") for file in ROOT.glob("tests/**/test_*.py"))
    assert len(named) == len(re.findall(r"^\|", table, re.MULTILINE)) - 2 > 5
    assert [name for name in named if f"def {name}(" not in tests] == []
