"""The admission policies that no dry run of the group plimsoll can try, held to the manifests of this version.

One lets dry runs pass; the others bind other identities. So they are read, and compared by digests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.doctor.facts import AdmissionPolicies, Facts
from plimsoll_cli.doctor.findings import Finding, fail, info, ok


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """The policies of a folder of manifests."""

    folder: str
    role: str
    """The ClusterRole of the folder: where it stands, the policies must."""
    digests: Mapping[str, str]
    """Name of a policy -> `digest_of` it."""


SHIPPED: Final = (
    Shipped(
        folder="infra/cluster/injection",
        role="plimsoll-injection",
        digests={"plimsoll-canaries": "2714b39fabfd"},
    ),
    Shipped(
        folder="infra/cluster/batch",
        role="plimsoll-batch",
        digests={
            "plimsoll-batch-events": "f7c1c922864c",
            "plimsoll-batch-jobs": "affdca248d6c",
            "plimsoll-batch-lease": "374917218153",
            "plimsoll-batch-nodes": "8f25d12aa07c",
            "plimsoll-batch-pods": "ec7ff68e3866",
            "plimsoll-queued-pods": "20fd08d8bded",
            "plimsoll-queues": "70376de8bf76",
        },
    ),
    Shipped(
        folder="infra/agent/act",
        role="plimsoll-agent-act",
        digests={"plimsoll-agent": "67d9e2e1c874"},
    ),
)
"""A test compares the digests with the manifests."""


def digest_of(policy: Mapping[str, Any]) -> str:
    """Return what tells two versions of a policy apart: what it is asked about, and its expressions.

    Whom it concerns is left out: the agent's overlay changes that.
    """
    spec = policy["spec"]
    told = [
        *(
            f"{rule['operations']} {rule['apiGroups']} {rule['resources']}"
            for rule in spec["matchConstraints"]["resourceRules"]
        ),
        *(each["expression"] for each in spec.get("variables") or ()),
        *(each["expression"] for each in spec["validations"]),
    ]
    return sha256("\n".join(told).encode()).hexdigest()[:12]


def policies_of(
    policies: Iterable[Mapping[str, Any]],
    bindings: Iterable[Mapping[str, Any]],
    roles: Iterable[Mapping[str, Any]],
) -> AdmissionPolicies:
    """Return which policies are in force, and the ClusterRoles. What no API server would show is passed over."""
    bound: set[str] = set()
    for each in bindings:
        with suppress(AttributeError, KeyError, TypeError):
            if "Deny" in each["spec"]["validationActions"]:
                bound.add(each["spec"]["policyName"])
    found: dict[str, str] = {}
    for each in policies:
        with suppress(AttributeError, KeyError, TypeError):
            if (name := each["metadata"]["name"]) in bound:
                found[name] = digest_of(each)
    return AdmissionPolicies(
        digests=found, roles=frozenset(each["metadata"]["name"] for each in roles)
    )


def policies(facts: Facts) -> Iterator[Finding]:
    """Name the policies that are missing, or of another version, where their rights are given."""
    if isinstance(facts.policies, PlimsollError):
        cure = "ask as an administrator of the cluster"
        yield info("policies", f"not read: {facts.policies}", cure)
        return
    found = facts.policies.digests
    for each in SHIPPED:
        if each.role not in facts.policies.roles:
            continue
        missing = [name for name in each.digests if name not in found]
        old = [n for n, digest in each.digests.items() if found.get(n, digest) != digest]
        if missing or old:
            yield fail(
                f"policies of {each.folder}",
                f"its rights are given, and not all policies that bound them are in force: {_said(missing, old)}",
                f"kubectl apply -k {each.folder}",
            )
        else:
            yield ok(f"policies of {each.folder}", "all are in force, as this version ships them")


def _said(missing: Sequence[str], old: Sequence[str]) -> str:
    said = {"missing or not bound": missing, "of another version": old}
    return "; ".join(f"{words}: {', '.join(names)}" for words, names in said.items() if names)
