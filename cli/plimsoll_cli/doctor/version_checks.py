"""Whether this Plimsoll knows the cluster's version of Kubernetes, and the cluster the APIs of this Plimsoll."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from plimsoll_cli.doctor.findings import Finding, fail, info, ok
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.probes.discovery import Unserved, needed

OLDEST_TESTED: Final = (1, 34)
NEWEST_TESTED: Final = (1, 37)


def api_versions(installation: Installation) -> Iterator[Finding]:
    """Say what of the APIs that Plimsoll needs is not served, and whether its tests ran on this Kubernetes."""
    minor = installation.minor()
    found = installation.probe.unserved()
    for each in found:
        yield _not_served(each)
    if minor is not None and minor > NEWEST_TESTED:
        yield info(
            f"Kubernetes {_named(minor)} is newer than {_named(NEWEST_TESTED)}, the newest that this "
            "Plimsoll is tested on",
            "look for a newer Plimsoll; until then keep the mode observe, or rehearse an interruption: "
            + installation.stack.command("rehearse", "--cluster", installation.cluster.name),
            about="Kubernetes",
        )
    elif minor is not None and minor < OLDEST_TESTED:
        yield info(
            f"Kubernetes {_named(minor)} is older than {_named(OLDEST_TESTED)}, the oldest that this "
            "Plimsoll is tested on",
            "upgrade the cluster",
            about="Kubernetes",
        )
    if not found:
        yield ok(f"all {len(needed())} that Plimsoll reads and writes are served")


def _not_served(found: Unserved) -> Finding:
    resources = ", ".join(found.resources)
    if found.instead:
        says = f"{resources}: Plimsoll knows {found.api}, and the cluster serves only {', '.join(found.instead)}"
    else:
        says = f"{resources}: Plimsoll needs {found.api}, which the cluster does not serve"
    cure = "install a Plimsoll that knows the cluster's version: drains of this one fail, or miss these objects"
    return fail(says, cure)


def _named(minor: tuple[int, int]) -> str:
    return ".".join(map(str, minor))
