"""The page of `plimsoll plan --html` in a real browser, used as its readers use it.

Where there is no Chromium, `make browser` says how to get it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browsers import (
    AA_TEXT,
    NARROW,
    NARROWEST,
    WIDE,
    Scheme,
    launched,
    looked,
    opened,
    text_contrasts,
)
from tests.support.cli_environment import run
from tests.support.shop import a_shop

pytestmark = pytest.mark.skipif(looked.returncode != 0, reason=looked.stderr.strip())


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page about a cluster that lost its nodes of c5, and so half of its spot."""
    environment = a_shop()
    for name in ("c5-0", "c5-1"):
        environment.transports["harbor"].call(
            "PATCH",
            f"/api/v1/nodes/{name}",
            body={"spec": {"unschedulable": True}},
            content_type="application/merge-patch+json",
        )
    html = tmp_path_factory.mktemp("plan") / "plan.html"
    run(environment, "plan", "--cluster", "harbor", "--keep-ready", "50%", "--html", str(html))
    return html


@pytest.fixture(scope="module")
def browser(plan: Path) -> Iterator[Browser]:
    """A browser. The page comes first, because Playwright leaves an asyncio loop running."""
    with launched() as chromium:
        yield chromium


def test_nodes_stand_in_their_spread_groups_with_their_pods(browser: Browser, plan: Path):
    with opened(browser, plan) as page:
        groups = page.locator("details[open] .group")
        names = [re.split(r"\s", text)[0] for text in groups.locator("h3").all_inner_texts()]
        on_demand = groups.nth(0).locator(".group-node")
        pods = on_demand.get_by_text(re.compile(r"^shop/web( .\d+)? ◆$")).all_inner_texts()
        assert names == ["on-demand", "spot-1", "spot-2"]
        assert on_demand.locator("b").all_inner_texts() == ["od-0", "od-1"]
        assert sum(int((re.findall(r" .(\d+) ", pod) or ["1"])[0]) for pod in pods) == 3


def test_a_closed_group_is_told_by_words_and_border_not_by_colour(browser: Browser, plan: Path):
    style = "(groups) => groups.map((e) => getComputedStyle(e).borderTopStyle)"
    with opened(browser, plan, forced_colors="active") as page:
        groups = page.locator("details[open] .group")
        words = ["closed:" in text for text in groups.locator("h3").all_inner_texts()]
        assert words == [False, True, False]
        assert groups.evaluate_all(style) == ["solid", "dashed", "solid"]
        assert groups.get_by_text("us-east-1a, cordoned").count() == 2


def test_floors_savings_and_reserve_are_tables_with_names(browser: Browser, plan: Path):
    with opened(browser, plan) as page:
        floors = page.get_by_role("table", name="Workloads with a floor")
        reserve = page.get_by_role("table", name="Free on on-demand")
        web = floors.get_by_role("row", name="Deployment shop/web")
        assert "3 of 9" in web.inner_text()
        assert "$" in web.inner_text()
        assert reserve.get_by_role("row").count() == 5


def test_a_promise_opens_to_what_it_follows_from(browser: Browser, plan: Path):
    with opened(browser, plan) as page:
        why = page.get_by_text("with all spot gone at once")
        assert not why.first.is_visible()
        page.get_by_text("shop/web keeps 5 of 9 Ready for").click()
        assert [each.is_visible() for each in why.all()].count(True) == 1


def test_headings_skip_no_level_and_no_link_leads_out_of_the_file(browser: Browser, plan: Path):
    with opened(browser, plan) as page:
        levels = page.get_by_role("heading").evaluate_all("(all) => all.map((e) => +e.tagName[1])")
        links = page.get_by_role("link").count()
    assert all(deeper - level <= 1 for level, deeper in pairwise(levels))
    assert links == 0


def test_every_workload_has_its_load_line(browser: Browser, plan: Path):
    with opened(browser, plan) as page:
        lines = page.get_by_role("table", name="Workloads and what stays of them")
        assert "shop/web" in lines.inner_text()
        assert lines.get_by_role("img").count() == lines.get_by_role("row").count() - 1


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", WIDE), ("dark", WIDE), ("light", NARROWEST)]
)
def test_text_stands_out_from_what_is_behind_it(
    browser: Browser, plan: Path, scheme: Scheme, width: int
):
    with opened(browser, plan, width=width, color_scheme=scheme) as page:
        found = text_contrasts(page, "body")
    assert len(found) > 10
    assert {text: ratio for text, ratio in found.items() if ratio < AA_TEXT} == {}


@pytest.mark.parametrize("width", [WIDE, NARROW, NARROWEST])
def test_nothing_sticks_out_to_the_side_and_no_script_is_needed(
    browser: Browser, plan: Path, width: int
):
    with opened(browser, plan, width=width, java_script_enabled=False) as page:
        root = page.evaluate("document.scrollingElement.scrollWidth")
        assert root == width
        assert page.locator("details[open] .group-node").first.is_visible()
