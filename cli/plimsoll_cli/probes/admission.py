"""What admits requests of a cluster beside its own rules: webhooks and admission policies, as objects say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An admission webhook that is asked about pods or evictions."""

    name: str
    evictions: bool
    """Whether it is asked about evictions; else about new or changed pods only."""
    fails: bool
    """Whether its failure refuses the request (`failurePolicy: Fail`)."""
    seconds: int
    """How long it may take to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionPolicies:
    """What holds the identities of the manifests."""

    digests: Mapping[str, str]
    """Policy that is bound and denies -> what tells its version."""
    roles: frozenset[str]
    """The names of all ClusterRoles."""


def webhooks_of(configurations: Sequence[Mapping[str, Any]]) -> Sequence[Webhook]:
    """Return the admission webhooks that are asked about evictions, or about new and changed pods.

    What no API server would show is passed over.
    https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
    """
    found = []
    for configuration in configurations:
        with suppress(AttributeError, KeyError, TypeError):
            for hook in configuration.get("webhooks") or ():
                asked = {what for rule in hook.get("rules") or () for what in _asked_about(rule)}
                if asked:
                    found.append(
                        Webhook(
                            name=str(hook["name"]),
                            evictions="evictions" in asked,
                            fails=hook.get("failurePolicy", "Fail") == "Fail",
                            seconds=int(hook.get("timeoutSeconds", 10)),
                        )
                    )
    return found


def _asked_about(rule: Mapping[str, Any]) -> Iterator[str]:
    resources, operations = {*rule["resources"]}, {*rule["operations"]}
    if not {"", "*"} & {*rule["apiGroups"]}:
        return
    if resources & {"*/*", "pods/*", "pods/eviction", "*/eviction"} and operations & {
        "CREATE",
        "*",
    }:
        yield "evictions"
    if resources & {"*", "*/*", "pods"} and operations & {"CREATE", "UPDATE", "*"}:
        yield "pods"


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
