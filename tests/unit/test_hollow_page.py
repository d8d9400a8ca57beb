"""The page about the hollow cluster names what is there, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import plimsoll_testbed.model.hollow
from plimsoll_testbed.model.hollow.controllers import kubelet
from plimsoll_testbed.model.hollow.controllers.table import CONTROLLERS

HERE = Path(__file__)
CODE = Path(plimsoll_testbed.model.hollow.__file__).parent
PAGE = (HERE.parents[2] / "docs" / "hollow.md").read_text()


def rows() -> list[list[str]]:
    """The table of behaviours: what, source, where and test, scenario."""
    table = PAGE.partition("| behaviour | source |")[2].partition("\n\n")[0]
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()[2:]]


def sentences() -> set[str]:
    files = HERE.parent.glob("test_hollow_*.py")
    return {
        name
        for file in files
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }


def test_each_behaviour_names_its_source_a_module_and_a_test_that_exist():
    known = sentences()
    assert len(rows()) > 20
    for behaviour, source, where, _ in rows():
        module, test = re.findall(r"`([^`]+)`", where)
        assert source.strip(), behaviour
        assert (CODE / f"{module}.py").is_file(), behaviour
        assert test in known, behaviour


def test_each_controller_stands_on_the_page():
    told = {re.findall(r"`([^`]+)`", where)[0] for _, _, where, _ in rows()}
    modules = {make.__module__.rpartition(".")[2] for make in CONTROLLERS}
    assert {f"controllers/{module}" for module in modules} <= told


def test_each_annotation_of_a_pod_stands_on_the_page():
    for annotation in (kubelet.STARTUP, kubelet.STOP, kubelet.NEVER_READY, kubelet.RUN):
        assert f"`{annotation}" in PAGE
