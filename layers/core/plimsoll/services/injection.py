"""Proves that the admission policy constrains new pods as it is meant to, by pods of a dry run.

An API server may refuse every pod that a policy concerns, whatever its `failurePolicy` says. So the
policy stays bound only while pods of workloads that do not exist pass it. They are created in the
namespace `plimsoll`, where no quota or webhook of a tenant decides what becomes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.kubernetes import Ref, Scheduling
from plimsoll.domain.placement import (
    INJECTION_ENTRIES,
    LAYOUT_CANARY,
    NO_INJECTION,
    Injected,
    Injection,
    canaries_told,
    is_as_injected,
)
from plimsoll.services.ports import ClusterApi

RESTART: Final = (
    "the API server does not see what ConfigMaps say now. Restart all API servers, then run "
    "`plimsoll install-policy`"
)
ATTEMPTS: Final = 3
"""A single answer may be lost on its way, and that is no reason to take the binding away."""


class Proof(StrEnum):
    """What became of the canaries, as the log says it."""

    IN_FORCE = "injection in force"
    ABSENT = "injection not in force"
    """They passed unchanged: the policy is not bound, or not compiled yet. Pods are not harmed."""
    STALE = "injection stale"
    """They got what an earlier entry says: the API server does not see what is written now."""
    BROKEN = "injection broken"
    """They were refused or changed otherwise, and a pod that the policy does not concern was not."""
    UNPROVEN = "injection not proven"
    """Not even a pod that the policy does not concern is let through."""


@dataclass(frozen=True, slots=True)
class Proven:
    """The proof, and why."""

    proof: Proof
    why: str
    layouts: bool = True
    """Whether layouts of several on-demand groups are known to it."""


def injection_of(api: ClusterApi) -> tuple[Injection, Proven | None]:
    """Return what the policy is told and whether it is in force; no proof where none is installed."""
    told = api.injected_floors()
    if not told:
        return NO_INJECTION, None
    found = prove(api, told)
    broken = None if found.proof in {Proof.IN_FORCE, Proof.UNPROVEN} else found.why
    return Injection(told=told, broken=broken, layouts=found.layouts), found


def prove(api: ClusterApi, told: Injected) -> Proven:
    """Try a canary of every kind, beside a pod that the policy does not concern.

    Args:
        api: the cluster.
        told: what the namespaces that opted in say now, the canaries' among them.
    """
    for owner, entry in canaries_told(told).items():
        plain, canary = _tried(api, None), _tried(api, owner)
        if isinstance(canary, PlimsollError):
            plain = _tried(api, None)  # the API server may have gone away in between
        if isinstance(plain, PlimsollError):
            return Proven(Proof.UNPROVEN, f"no pod can be tried: {plain}")
        if (found := _judged(owner, entry, plain, canary)) is not None:
            return found
    return Proven(Proof.IN_FORCE, "every canary was constrained as it is meant to be")


def _judged(
    owner: Ref, entry: str, plain: Scheduling, canary: Scheduling | PlimsollError
) -> Proven | None:
    """Return what one canary proves; None: it was constrained as it is meant to be."""
    if isinstance(canary, PlimsollError):
        return Proven(Proof.BROKEN, f"a pod of {owner} is refused: {canary}")
    if canary == plain and owner == LAYOUT_CANARY:  # the last canary: the others passed
        why = f"a pod of {owner} passes as it is: `plimsoll install-policy` installs a newer policy"
        return Proven(Proof.IN_FORCE, why, layouts=False)
    if canary == plain:
        return Proven(Proof.ABSENT, f"a pod of {owner} passes as it is")
    if is_as_injected(canary, entry):
        return None
    if any(is_as_injected(canary, earlier) for earlier in INJECTION_ENTRIES):
        return Proven(Proof.STALE, f"a pod of {owner} gets what {entry} replaced: {RESTART}")
    return Proven(Proof.BROKEN, f"a pod of {owner} is changed otherwise than by {entry}")


def _tried(api: ClusterApi, owner: Ref | None) -> Scheduling | PlimsollError:
    failed = PlimsollError()
    for _ in range(ATTEMPTS):
        try:
            return api.try_pod(owner)
        except PlimsollError as error:
            failed = error
    return failed
