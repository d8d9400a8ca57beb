"""The pages under docs/reference are those that the code makes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from plimsoll.domain.kubernetes.names import RELEASED
from plimsoll_cli.references.__main__ import PAGES, main
from plimsoll_cli.references.templates import STACKS
from tests.package.template import ROOT, statements


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str):
    page = ROOT / "docs" / "reference" / f"{name}.md"
    assert PAGES[name](ROOT) == page.read_text(encoding="utf-8"), "run: make references"


def test_there_is_no_page_that_nothing_makes():
    assert {page.stem for page in (ROOT / "docs" / "reference").glob("*.md")} == set(PAGES)


def test_a_page_that_is_out_of_date_is_found_and_written(tmp_path: Path):
    for name in ("docs", *STACKS, "infra"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    page = tmp_path / "docs" / "reference" / "cli.md"
    page.write_text("old")
    assert main(tmp_path, check=True) == 1
    assert page.read_text() == "old"
    assert main(tmp_path, check=False) == 0
    assert main(tmp_path, check=True) == 0


def test_every_right_of_the_template_and_every_name_has_a_row():
    page = PAGES["iam"](ROOT).partition("## service.yaml")[0]
    assert len(re.findall(r"^\| `", page, re.MULTILINE)) == len(list(statements()))
    assert f"| `{RELEASED}` |" in PAGES["annotations"](ROOT)
