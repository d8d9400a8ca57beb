"""Builds the programs of a control plane from their pinned Go modules, once.

A program stands under its name only when it is whole: it is built beside and then renamed. Who
builds holds a lock on the folder, so that a second builder waits and then finds everything there.
All are built in one run of Go, which compiles one while it links another.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_simulation.checkout import Checkout
from plimsoll_testbed.rigs.controlplane.modules import PROGRAMS, Module
from plimsoll_testbed.rigs.workbench import Workbench

_VERSION_PACKAGE: Final = "k8s.io/component-base/version"
_MAJOR: Final = re.compile(r"/v[0-9]+$")
"""What ends a module's path and not the name of its program."""
_GO_VERSION: Final = re.compile(r"go version go([0-9]+(?:\.[0-9]+)*)")


def to_stderr(words: str) -> None:
    """Say something to who watches."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def cached(module: Module, cache: Path) -> Path:
    """Return the folder that the programs of a module are kept in."""
    return cache / "controlplane" / module.label


def build(
    module: Module, names: Sequence[str], folder: Path, *, say: Callable[[str], None]
) -> None:
    """Build programs into a folder.

    Raises:
        Refused: Go cannot be had, or does not build one; the message ends with what it said.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / ".lock", say):
        names = [name for name in names if not (folder / name).is_file()]
        if not names:
            return
        go = _go(module.go, say)
        say(
            f"building {', '.join(names)} of {module.folder} into {folder}: once, up to ten minutes on "
            "two cores"
        )
        began = time.monotonic()
        _build(module, names, folder, go)
        say(f"built in {time.monotonic() - began:.0f} s")


def _build(module: Module, names: Sequence[str], folder: Path, go: str) -> None:
    stamps: dict[str, str] = {}
    if module.kubernetes:
        major, minor, _ = module.kubernetes.removeprefix("v").split(".")
        stamps = {"gitVersion": module.kubernetes, "gitMajor": major, "gitMinor": minor}
    flags = " ".join(["-s -w", *(f"-X {_VERSION_PACKAGE}.{k}={v}" for k, v in stamps.items())])
    with tempfile.TemporaryDirectory(prefix=".half-", dir=folder) as half:
        # Nobody debugs these programs: without debugging data they compile in a seventh less processor time.
        command = [
            *("/usr/bin/env", "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOFLAGS=-mod=readonly"),
            *(go, "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", flags),
            *("-o", f"{half}/"),
            *(PROGRAMS[name] for name in names),
        ]
        _run(command, module.folder, f"building {', '.join(names)} in {module.folder} failed")
        for name in names:
            binary = _MAJOR.sub("", PROGRAMS[name]).rpartition("/")[2]
            Path(half, binary).rename(folder / name)


def built(name: str) -> tuple[Module, Path]:
    """Return the module of a program that runs beside a control plane, and the program; build it if it is missing.

    Args:
        name: of the program, and of its module below `infra/local`.

    Raises:
        Refused: Go cannot be had, or does not build it.
    """
    module = Module.of(name, Checkout.find().root / "infra" / "local")
    folder = cached(module, Workbench.of_this_process().cache)
    build(module, [name], folder, say=to_stderr)
    return module, folder / name


def with_manifests(name: str, paths: Sequence[str]) -> tuple[Path, Sequence[Path]]:
    """Return a program that runs beside a control plane, and manifests of its source; build and copy what is missing.

    Args:
        name: as of `built`.
        paths: files, and folders of files, in the source.

    Raises:
        Refused: Go cannot be had, does not build it, or does not find its source.
    """
    module, program = built(name)
    kept = program.with_name("manifests")
    if not kept.is_dir():
        source = _source(module, name)
        half = Path(tempfile.mkdtemp(prefix=".half-", dir=program.parent))
        for path in paths:
            found = source / path
            for file in sorted(found.glob("*.yaml")) if found.is_dir() else [found]:
                shutil.copyfile(file, half / f"{path.replace('/', '-')}-{file.name}")
        half.rename(kept)
    return program, sorted(kept.glob("*.yaml"))


def _source(module: Module, name: str) -> Path:
    """Return the folder with the source of a program, which Go keeps, or fetches again."""
    go = _go(module.go, to_stderr)
    path = module.module_of(name)
    command = ["/usr/bin/env", "GOTOOLCHAIN=local", go, "mod", "download", "-json", path]
    said = _run(command, module.folder, f"the source of {path} is not to be found")
    return Path(json.loads(said)["Dir"])


def _go(least: str, say: Callable[[str], None]) -> str:
    """Return a Go that is new enough: PATH's, else one that is installed for this checkout."""
    found = shutil.which("go")
    if found is not None and _parts(_said(found)) >= _parts(least):
        return found
    root = Checkout.find().root
    own = root / ".tools" / "go"
    if not (own / ".ready").is_file():
        say(f"Go {least} or newer is not on PATH: installing it into {own}")
        lock = "infra/local/controlplane/go.lock"
        why = (
            f"Go {least} or newer is neither on PATH nor could it be installed into {own}. "
            "Install Go, or try again"
        )
        _run([root / "infra" / "local" / "environment.sh", ".tools/go", lock], root, why)
    return str(own / "bin" / "go")


def _run(command: Sequence[str | Path], folder: Path, failed: str) -> str:
    done = subprocess.run(  # noqa: S603 - Go on our own module, or our own script
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(f"{failed}:\n{done.stdout[-3000:]}")
    return done.stdout


def _said(go: str) -> str:
    said = subprocess.run(  # noqa: S603 - Go
        ["/usr/bin/env", "GOTOOLCHAIN=local", go, "version"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    version = _GO_VERSION.search(said)
    return version.group(1) if version else "0"


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@contextmanager
def _locked(file: Path, say: Callable[[str], None]) -> Iterator[None]:
    with file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"somebody else is building in {file.parent}: waiting")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
