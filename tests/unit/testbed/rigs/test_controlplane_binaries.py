"""Where the programs of a control plane come from: folders that are named, a cache, a build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plimsoll.domain.errors import BadInput, Refused
from plimsoll_testbed.rigs.controlplane.binaries import NAMES, find, ready
from plimsoll_testbed.rigs.controlplane.modules import (
    NEWEST,
    PROGRAMS,
    Module,
    modules_folder,
    versions,
)
from plimsoll_testbed.rigs.workbench import Workbench

OLDER = "1.34"
OWN = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""What an older module builds itself."""


def a_program(file: Path, script: str = "exit 0") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def a_module(root: Path, version: str, programs: tuple[str, ...], patch: str = "v1.36.3") -> None:
    folder = root / version
    folder.mkdir(parents=True)
    tools = "\n".join(f"\t{PROGRAMS[name]}" for name in programs)
    folder.joinpath("go.mod").write_text(
        f"module plane\n\ngo 1.26.0\n\ntool (\n{tools}\n)\n\nrequire (\n"
        f"\tk8s.io/kubernetes {patch} // indirect\n\tsigs.k8s.io/kwok v0.8.0 // indirect\n"
        "\tgo.etcd.io/etcd/server/v3 v3.6.8 // indirect\n)\n"
    )
    folder.joinpath("go.sum").write_text("")


class Machine:
    """A machine with modules, a cache, and a Go that writes down what it is asked to build."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules = root / "modules"
        a_module(self.modules, NEWEST, NAMES)
        a_module(self.modules, OLDER, OWN, "v1.34.4")
        self.said: list[str] = []
        self.go()

    @property
    def built(self) -> list[str]:
        log = self.root / "asked"
        return log.read_text().split() if log.exists() else []

    def go(self, *, version: str = "1.26.8", before: str = "true") -> None:
        """Install a Go; `before` runs before it writes what it was asked for."""
        a_program(
            self.root / "path" / "go",
            f'if [ "$1" = version ]; then echo "go version go{version} linux/amd64"; exit; fi\n'
            'while [ "$1" != -o ]; do shift; done\nfolder="$2"; shift 2\n'
            f'for package; do name="${{package%/v3}}"; name="${{name##*/}}"\n'
            f'echo "$name" >> {self.root}/asked\n'
            f'{before} || exit 1\necho program > "$folder$name"; done',
        )

    def find(self, version: str = NEWEST, **bench: Path) -> set[Path]:
        found = find(version, bench=self.bench(**bench), modules=self.modules, say=self.said.append)
        return set(found.values())

    def bench(self, **more: Path) -> Workbench:
        env = {"XDG_CACHE_HOME": str(self.root / "cache")} | {k: str(v) for k, v in more.items()}
        return Workbench.from_env(env)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    return Machine(tmp_path)


def a_folder(root: Path, names: tuple[str, ...] = NAMES) -> Path:
    for name in names:
        a_program(root / name)
    return root


def test_a_folder_that_the_environment_names_is_taken_as_it_is(machine: Machine, tmp_path: Path):
    folder = a_folder(tmp_path / "ready")
    assert machine.find(PLIMSOLL_CONTROL_PLANE=folder) == {folder / name for name in NAMES}
    assert machine.built == []


def test_a_named_folder_must_hold_all(machine: Machine, tmp_path: Path):
    folder = a_folder(tmp_path / "ready", ("etcd", "kube-apiserver", "kube-scheduler"))
    with pytest.raises(
        Refused, match="PLIMSOLL_CONTROL_PLANE, lacks kwok, kube-controller-manager, kubectl"
    ):
        machine.find(PLIMSOLL_CONTROL_PLANE=folder)


def test_what_is_missing_is_built_once_in_one_run_of_go(machine: Machine):
    first = machine.find()
    assert {path.name for path in first} == set(NAMES)
    assert all(path.read_text() == "program\n" for path in first)
    assert len(machine.built) == len(NAMES)
    assert len([line for line in machine.said if line.startswith("building")]) == 1
    assert machine.find() == first
    assert len(machine.built) == len(NAMES)


def test_a_changed_module_is_built_anew(machine: Machine):
    before = machine.find()
    machine.modules.joinpath(NEWEST, "go.sum").write_text("other")
    assert machine.find().isdisjoint(before)


def test_a_version_that_nobody_pinned_is_named_beside_those_that_are(machine: Machine):
    with pytest.raises(BadInput, match=r"Kubernetes 1\.20; there are 1\.36, 1\.34"):
        machine.find("1.20")


def test_a_build_that_fails_says_why_and_leaves_nothing_that_looks_ready(machine: Machine):
    machine.go(before='{ echo half > "$folder$name"; echo "out of disk"; false; }')
    with pytest.raises(Refused, match=r"(?s)building etcd, .* failed:.*out of disk"):
        machine.find()
    assert not ready(NEWEST, bench=machine.bench(), modules=machine.modules)
    assert [file.name for file in (machine.root / "cache").rglob("*") if file.is_file()] == [
        ".lock"
    ]


class TestThePinnedModules:
    def test_the_newest_builds_everything(self):
        assert set(Module.of(NEWEST).programs) == set(NAMES)

    def test_karpenter_has_a_module_of_its_own_whose_label_says_its_version(self):
        karpenter = Module.of("karpenter", modules_folder().parent)
        assert karpenter.programs == ["karpenter"]
        assert re.match(r"karpenter-v1\.\d+\.\d+-[0-9a-f]{8}-", karpenter.label)

    @pytest.mark.parametrize("version", versions())
    def test_each_pins_the_minor_that_it_is_named_for(self, version: str):
        assert Module.of(version).kubernetes.startswith(f"v{version}.")

    @pytest.mark.parametrize("version", versions())
    def test_each_has_its_sums(self, version: str):
        assert (modules_folder() / version / "go.sum").stat().st_size > 0
