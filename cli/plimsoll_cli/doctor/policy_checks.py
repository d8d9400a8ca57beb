"""The admission policies that no dry run of the group plimsoll can try, held to the manifests of this version.

One lets dry runs pass; the others bind other identities. So they are read, and compared by digests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll_cli.doctor.findings import Finding, fail, ok, unread
from plimsoll_cli.doctor.installation import Installation


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """The policies of a folder of manifests."""

    folder: str
    overlay: str | None = None
    """The overlay of `plimsoll clusters add` that applies the folder; None: it does not."""
    role: str
    """The ClusterRole of the folder: where it stands, the policies must."""
    digests: Mapping[str, str]
    """Name of a policy -> `digest_of` it."""


SHIPPED: Final = (
    Shipped(
        folder="infra/cluster/injection",
        overlay="injection",
        role="plimsoll-injection",
        digests={"plimsoll-canaries": "2714b39fabfd"},
    ),
    Shipped(
        folder="infra/cluster/batch",
        role="plimsoll-batch",
        digests={
            "plimsoll-batch-events": "f5e6875dd340",
            "plimsoll-batch-jobs": "6637f45be235",
            "plimsoll-batch-lease": "374917218153",
            "plimsoll-batch-nodes": "8f25d12aa07c",
            "plimsoll-batch-podgroups": "d04f9f4ea41a",
            "plimsoll-batch-pods": "ec7ff68e3866",
            "plimsoll-queued-pods": "20fd08d8bded",
            "plimsoll-queues": "70376de8bf76",
        },
    ),
    Shipped(
        folder="infra/cluster/batch-access",
        role="plimsoll-queues-granter",
        digests={
            "plimsoll-queue-access": "8339db11c7c8",
            "plimsoll-queue-grants": "47d52f8a9540",
            "plimsoll-queue-required": "8bf91ddf105c",
        },
    ),
    Shipped(
        folder="infra/agent/act",
        role="plimsoll-agent-act",
        digests={"plimsoll-agent": "67d9e2e1c874"},
    ),
)
"""A test compares the digests with the manifests."""


@unread("ask as an administrator of the cluster")
def policies(installation: Installation) -> Iterator[Finding]:
    """Name the policies that are missing, or of another version, where their rights are given."""
    read = installation.probe.policies()
    found = read.digests
    for each in SHIPPED:
        if each.role not in read.roles:
            continue
        missing = [name for name in each.digests if name not in found]
        old = [n for n, digest in each.digests.items() if found.get(n, digest) != digest]
        if missing or old:
            yield fail(
                f"its rights are given, and not all policies that bound them are in force: {_said(missing, old)}",
                installation.apply(each.overlay)
                if each.overlay is not None
                else f"kubectl apply -k {each.folder}",
                about=f"policies of {each.folder}",
            )
        else:
            yield ok(
                "all are in force, as this version ships them", about=f"policies of {each.folder}"
            )


def _said(missing: Sequence[str], old: Sequence[str]) -> str:
    said = {"missing or not bound": missing, "of another version": old}
    return "; ".join(f"{words}: {', '.join(names)}" for words, names in said.items() if names)
