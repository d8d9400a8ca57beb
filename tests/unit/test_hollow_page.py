"""The page about the hollow cluster names what is there, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import plimsoll_testbed.model.hollow
from plimsoll_testbed.model.hollow.controllers import kubelet
from plimsoll_testbed.model.hollow.controllers.table import CONTROLLERS
from tests.differential.behaviours import BEHAVIOURS

CODE = Path(plimsoll_testbed.model.hollow.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "develop" / "rigs.md").read_text()


def rows() -> list[list[str]]:
    """The table of behaviours: what, source, where, scenario."""
    table = PAGE.partition("| behaviour | source |")[2].partition("\n\n")[0]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()[2:]]


def test_each_behaviour_names_its_source_a_module_and_a_scenario_that_exist():
    assert len(rows()) > 20
    for behaviour, source, where, scenario in rows():
        assert source.strip(), behaviour
        assert (CODE / f"{where.strip(' `')}.py").is_file(), behaviour
        assert scenario.strip(" `") in BEHAVIOURS, behaviour


def test_each_controller_stands_on_the_page():
    told = {re.findall(r"`([^`]+)`", where)[0] for _, _, where, _ in rows()}
    modules = {make.__module__.rpartition(".")[2] for make in CONTROLLERS}
    assert {f"controllers/{module}" for module in modules} <= told


def test_each_annotation_of_a_pod_stands_on_the_page():
    for annotation in (kubelet.STARTUP, kubelet.STOP, kubelet.NEVER_READY, kubelet.RUN):
        assert f"`{annotation}" in PAGE
