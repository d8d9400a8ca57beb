"""Take the pictures of the console that the pages show: screenshots.py FOLDER.

A drill is played to its end and rehearsed, and the Chromium that `make browser` finds looks at it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from plimsoll_cli.console.drill_source import DrillSource
from plimsoll_cli.console.web import Access, served
from plimsoll_simulation.scenario.drill import read_drill

ROOT: Final = Path(__file__).parents[2]
DRILL: Final = ROOT / "examples" / "all-spot-at-once.yaml"
PICTURES: Final = {
    "console-storm": "c/harbor/storm?at=84",
    "console-workload": "c/harbor/w/Deployment/shop/web",
    "console-rehearsal": "c/harbor/rehearsals/1",
}
WIDTH, HEIGHT = 1200, 700


@contextmanager
def rehearsed() -> Iterator[Access]:
    """Serve a drill that was played to its end and rehearsed."""
    with closing(DrillSource(read_drill(DRILL), speed=1000)) as source:
        source.start()
        source.wait()
        source.rehearse("harbor", "spot")
        while source.rehearsals("harbor")[0].stage not in {"done", "failed"}:
            time.sleep(0.2)
        with served(source) as access:
            yield access


def main(folder: Path) -> None:
    """Write the pictures into a folder."""
    path = subprocess.run(  # noqa: S603 - a script of ours
        [ROOT / "infra" / "local" / "browser.sh", "--path"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    with rehearsed() as access, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(access.url())
        for name, place in PICTURES.items():
            page.goto(f"http://127.0.0.1:{access.port}/{place}")
            page.screenshot(path=folder / f"{name}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
