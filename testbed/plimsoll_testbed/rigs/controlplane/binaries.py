"""The programs of a control plane: ready ones where somebody says so, else built once and kept.

Looked for, in this order:

1. the folder `PLIMSOLL_CONTROL_PLANE`: it must hold all of them, and its versions
   are the business of whoever made it;
2. `KUBEBUILDER_ASSETS` (setup-envtest's): etcd, and kube-apiserver where it is of the wanted minor;
3. the cache folder, which `build` fills.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_testbed.rigs.controlplane.builds import build, cached, to_stderr
from plimsoll_testbed.rigs.controlplane.modules import CONTROL_PLANE, DEFAULT, Module
from plimsoll_testbed.rigs.workbench import Workbench

NAMES: Final = tuple(CONTROL_PLANE)
_ASK_SECONDS: Final = 10.0


def find(version: str) -> Mapping[str, Path]:
    """Return where the programs of a minor version of Kubernetes, such as `1.37`, are; build what is missing.

    A build takes minutes, and tells each of its steps on standard error.

    Raises:
        Refused: a folder that was named lacks one, or a build failed.
        BadInput: no such version is pinned.
    """
    bench = Workbench.of_this_process()
    if bench.control_plane is not None:
        return _all_in(bench.control_plane)
    found: dict[str, Path] = {}
    if bench.kubebuilder_assets is not None:
        found |= _assets(bench.kubebuilder_assets, version)
    for module, wanted, missing in _needed(version, found, bench):
        folder = cached(module, bench.cache)
        if missing:
            build(module, missing, folder, say=to_stderr)
        found |= {name: folder / name for name in wanted}
    return found


def ready(version: str, *, bench: Workbench) -> bool:
    """Whether `find` would build nothing."""
    if bench.control_plane is not None:
        return True
    return not any(missing for _, _, missing in _needed(version, (), bench))


def _needed(
    version: str, found: Collection[str], bench: Workbench
) -> Sequence[tuple[Module, Sequence[str], Sequence[str]]]:
    """Return modules with what is wanted of each, and what of that is not built yet."""
    needed, covered = [], set(found)
    for name in dict.fromkeys((version, DEFAULT)):
        module = Module.of(name)
        wanted = [name for name in NAMES if name in module.programs and name not in covered]
        covered.update(wanted)
        folder = cached(module, bench.cache)
        missing = [program for program in wanted if not (folder / program).is_file()]
        needed.append((module, wanted, missing))
    return needed


def _all_in(folder: Path) -> Mapping[str, Path]:
    missing = [name for name in NAMES if not (folder / name).is_file()]
    if missing:
        raise Refused(
            f"{folder}, named by PLIMSOLL_CONTROL_PLANE, lacks {', '.join(missing)}: it must hold all of "
            f"{', '.join(NAMES)}"
        )
    return {name: folder / name for name in NAMES}


def _assets(folder: Path, version: str) -> Mapping[str, Path]:
    """Return what fits of setup-envtest's folder, which holds etcd, kube-apiserver and kubectl."""
    found = {}
    if (folder / "etcd").is_file():
        found["etcd"] = folder / "etcd"
    server = folder / "kube-apiserver"
    if server.is_file() and f"v{version}." in _version_of(server):
        found["kube-apiserver"] = server
    return found


def _version_of(program: Path) -> str:
    try:
        return subprocess.run(  # noqa: S603 - the program that we were told to run
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(f"{program}, found by KUBEBUILDER_ASSETS, does not run: {error}") from error
