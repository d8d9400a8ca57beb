"""What no build would say: which programs a control plane is made of, and that none of another version is taken."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from plimsoll_testbed.rigs.controlplane.binaries import NAMES
from plimsoll_testbed.rigs.controlplane.modules import DEFAULT, Module, modules_folder, versions
from plimsoll_testbed.rigs.operators import OPERATORS


def test_a_changed_module_is_another_folder_of_programs(tmp_path: Path):
    shutil.copytree(modules_folder() / DEFAULT, tmp_path / DEFAULT)
    before = Module.of(DEFAULT, tmp_path).label
    assert before == Module.of(DEFAULT).label
    with (tmp_path / DEFAULT / "go.sum").open("a", encoding="utf-8") as sums:
        sums.write("other\n")
    assert Module.of(DEFAULT, tmp_path).label != before


def test_the_newest_builds_everything():
    assert set(Module.of(DEFAULT).programs) == set(NAMES)


@pytest.mark.parametrize("program", ["jaeger", "karpenter", *OPERATORS])
def test_what_runs_beside_it_has_a_module_of_its_own_whose_label_says_its_version(program: str):
    module = Module.of(program, modules_folder().parent)
    assert module.programs == [program]
    assert re.match(rf"{program}-v\d+\.\d+\.\d+-[0-9a-f]{{8}}-", module.label)


@pytest.mark.parametrize("version", versions())
def test_each_pins_the_minor_that_it_is_named_for(version: str):
    assert Module.of(version).kubernetes.startswith(f"v{version}.")
