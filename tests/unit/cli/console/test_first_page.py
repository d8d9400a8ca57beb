from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
FIRST_PAGE = """
import json, sys
from pathlib import Path
from plimsoll_cli.console import console
from plimsoll_cli.console.web import Access, application
from plimsoll_console.answers import answer
from plimsoll_console.pages import Request
from plimsoll_console.rendering import Place
from plimsoll_console.views.fleet import fleet
source = console._of_drill(Path("examples/all-spot-at-once.yaml"), 10)
application(source, Access(port=1))
page = answer(fleet(Request(), source), Place(path="/"), source)
print(json.dumps([page.status, sorted(sys.modules)]))
"""
SLOW = (
    "plimsoll.domain.drain",
    "plimsoll.domain.placement",
    "plimsoll_batch.adapters",
    "plimsoll_cli.console.drill_player",
    "plimsoll_cli.environment",
    "plimsoll_simulation.fake_cluster.cluster",
    "plimsoll_simulation.rigs.simulated.rig",
    "rich.console",
)


@pytest.mark.long  # a process of its own imports for a second
def test_the_first_page_of_a_drill_waits_for_no_planner_and_no_simulation():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_PAGE], capture_output=True, text=True, check=True, cwd=ROOT
    )
    status, loaded = json.loads(done.stdout)
    assert status == 200
    assert "plimsoll_simulation.scenario.drill" in loaded
    assert [name for name in SLOW if name in loaded] == []
