"""The pages under docs/reference are those that the code makes."""

from __future__ import annotations

import re

import pytest

from plimsoll.domain.kubernetes.names import RELEASED
from plimsoll_cli.references.__main__ import PAGES
from tests.package.template import ROOT, statements


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str):
    page = ROOT / "docs" / "reference" / f"{name}.md"
    assert PAGES[name](ROOT) == page.read_text(encoding="utf-8"), "run: make references"


def test_there_is_no_page_that_nothing_makes():
    assert {page.stem for page in (ROOT / "docs" / "reference").glob("*.md")} == set(PAGES)


def test_every_right_of_the_template_and_every_name_has_a_row():
    page = PAGES["iam"](ROOT).partition("## service.yaml")[0]
    assert len(re.findall(r"^\| `", page, re.MULTILINE)) == len(list(statements()))
    assert f"| `{RELEASED}` |" in PAGES["annotations"](ROOT)
