"""`plimsoll demo gpu` on a real control plane: the week, the plan, and a node that is split under policies in force."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from plimsoll_cli import main

pytestmark = pytest.mark.cluster


def test_one_node_of_three_is_saved_and_none_is_stranded():
    done = CliRunner().invoke(main, ["demo", "gpu"])
    assert done.exit_code == 0, done.output
    assert "1 of 1 nodes have their layout" in done.stdout
    rows = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for row in ("GPUs 24 16", "nodes stranded 0", "serving pods missing, at worst 0"):
        assert row in rows
