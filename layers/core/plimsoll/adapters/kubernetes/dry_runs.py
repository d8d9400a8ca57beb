"""Changes that are tried and not kept: does the cluster hold us to our fields?

A dry run passes admission like any other request, so its answer is what a write would get. Asking
so finds what reading policies would not: that one does not name us, or is not bound, or that a
webhook refuses what we do.

https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, override

from plimsoll.adapters.kubernetes import calls
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.errors import policy_of, refusal, said_of
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH, Json
from plimsoll.adapters.kubernetes.transport import Response, Transport
from plimsoll.domain.errors import BadInput, Refused
from plimsoll.domain.fields import Field
from plimsoll.domain.kubernetes import FLOORS, IGNORE, NAMESPACE, PREFIX

POLICIES_SINCE: Final = (1, 30)
"""https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/"""
_REFUSED: Final = 400
_NOT_FOUND: Final = 404
_MINOR: Final = re.compile(r"v?(\d+)\.(\d+)")
_NO_RIGHT: Final = re.compile(r"cannot (?:patch|create) resource")
_BY_BUDGET: Final = "disruption budget"
"""An eviction that a budget refuses has passed admission."""
_POLICIES: Final = "plimsoll-"
"""How the names of our policies begin."""
_STRANGE: Final = "example.com/plimsoll-doctor"
_OURS: Final = f"{PREFIX}doctor"
_EVENT: Final = {
    "involvedObject": {"kind": "Pod", "namespace": NAMESPACE, "name": "doctor"},
    "reason": "Doctor",
}


class TrialResult(StrEnum):
    """What a cluster answered to a change that was tried and not kept."""

    PASSED = "passed"
    BY_OUR_POLICY = "refused by our policy"
    NO_RIGHT = "no right to write at all"
    BY_ANOTHER = "refused by something else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A change that was tried and not kept."""

    about: str
    """The object, for example `Node a`."""
    ours: bool
    """Whether Plimsoll writes that field, or whoever owns the object."""
    policy: str
    """The admission policy of our manifests that decides on it."""
    verdict: TrialResult
    said: str
    """The refusal in the cluster's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    namespace: str | None
    name: str
    uid: str

    @override
    def __str__(self) -> str:
        return "/".join(part for part in (self.namespace, self.name) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    about: str
    call: Call
    namespace: str | None = None
    name: str | None = None
    body: Json
    policy: str
    """That refuses it; that lets it pass where it is ours."""
    ours: bool = False


def policies_missing(transport: Transport, cluster: str) -> Collection[str]:
    """Return the policies of the group plimsoll that let pass what they should refuse.

    Kubernetes before 1.30 has none: an owner who installs there does without.

    Raises:
        PlimsollError: the cluster does not answer, or Nodes or pods may not be listed.
    """
    answer = transport.call("GET", "/version")
    version = answer.body.get("gitVersion") if isinstance(answer.body, Mapping) else None
    found = _MINOR.match(str(version))
    if found is not None and (int(found[1]), int(found[2])) < POLICIES_SINCE:
        return ()
    tried = trials(transport, cluster)
    return sorted({t.policy for t in tried if not t.ours and t.verdict is TrialResult.PASSED})


def trials(transport: Transport, cluster: str) -> list[Trial]:
    """Try what each policy of the group plimsoll refuses, on the first object of each kind that there is.

    Left out are plimsoll-canaries, which lets dry runs pass, and the policies of other groups: the doctor reads those.

    Raises:
        Refused: Nodes or pods may not be listed.
    """
    found = []
    for change in _changes(transport, cluster):
        answer = transport.call(
            change.call.method,
            change.call.path(namespace=change.namespace, name=change.name),
            query={"dryRun": "All"},
            body=change.body,
            content_type=MERGE_PATCH if change.call.verb == "patch" else "application/json",
        )
        if answer.status == _NOT_FOUND:
            continue  # it went in between, or our namespace is not there
        trial = Trial(
            about=change.about,
            ours=change.ours,
            policy=change.policy,
            verdict=_verdict(answer),
            said=said_of(answer),
        )
        found.append(trial)
    return found


def _changes(transport: Transport, cluster: str) -> Iterator[_Change]:
    """Yield what is tried; nothing where there is neither Node nor pod, for then most cannot be."""
    there = False
    for kind, policy, listing, call in (
        ("Node", "plimsoll-nodes", calls.LIST_NODES, calls.PATCH_NODE),
        ("Pod", "plimsoll-pods", calls.LIST_PODS, calls.PATCH_POD),
    ):
        for it in _first(transport, cluster, listing):
            there = True
            about, policies = f"{kind} {it}", ((False, _STRANGE), (True, _OURS))
            for ours, name in policies:
                yield _patch(about, call, it, {"annotations": {name: "asked"}}, policy, ours=ours)
            history = f"the history of {about}"
            yield _patch(history, call, it, {"managedFields": [{}]}, "plimsoll-history")
            if call is calls.PATCH_POD:
                yield _eviction(it, {}, "plimsoll-departures")
    if not there:
        return
    for it in _first(transport, cluster, calls.LIST_PODS, labelSelector=f"{IGNORE}=true"):
        yield _eviction(it, {"preconditions": {"uid": it.uid}}, "plimsoll-ignored")
    yield _created("Event", calls.CREATE_EVENT, "plimsoll-events", _EVENT)
    yield _created("Lease", calls.CREATE_LEASE, "plimsoll-lease", {})
    budget = {"spec": {"maxUnavailable": 1, "selector": {}}}
    yield _created("PodDisruptionBudget", calls.CREATE_BUDGET, "plimsoll-guard", budget)
    try:
        floors = list(
            _first(transport, cluster, calls.LIST_FLOORS, fieldSelector=f"metadata.name={FLOORS}")
        )
    except Refused:
        return  # without the overlay there is no right to change them either
    for it in floors:
        body = {"annotations": {_STRANGE: "asked"}}
        yield _patch(f"ConfigMap {it}", calls.PATCH_FLOORS, it, body, "plimsoll-floors")


def _first(transport: Transport, cluster: str, listing: Call, **query: str) -> Iterator[_Object]:
    """Yield the first object of a list, if there is one."""
    answer = transport.call(listing.method, listing.path(), query={"limit": "1", **query})
    if answer.status >= _REFUSED:
        raise refusal(cluster, listing, "", answer)
    for obj in (answer.body.get("items") or ())[:1]:
        meta = Field(obj)["metadata"]
        try:
            yield _Object(
                namespace=meta["namespace"].optional(),
                name=meta["name"].required(),
                uid=meta["uid"].required(),
            )
        except BadInput:
            return  # what no API server wrote is nothing to try on


def _patch(  # noqa: PLR0913 - the parts of a change
    about: str, call: Call, it: _Object, metadata: Json, policy: str, *, ours: bool = False
) -> _Change:
    return _Change(
        about=about,
        call=call,
        namespace=it.namespace,
        name=it.name,
        body={"metadata": metadata},
        policy=policy,
        ours=ours,
    )


def _eviction(pod: _Object, options: Json, policy: str) -> _Change:
    return _Change(
        about=f"an eviction of Pod {pod}",
        call=calls.EVICT,
        namespace=pod.namespace,
        name=pod.name,
        body={
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {**options, "dryRun": ["All"]},
        },
        policy=policy,
    )


def _created(kind: str, call: Call, policy: str, fields: Mapping[str, Any]) -> _Change:
    version = f"{call.group}/{call.version}" if call.group else call.version
    meta = {"name": "doctor", "namespace": NAMESPACE}
    return _Change(
        about=f"a new {kind}",
        call=call,
        namespace=NAMESPACE,
        body={"apiVersion": version, "kind": kind, "metadata": meta, **fields},
        policy=policy,
    )


def _verdict(answer: Response) -> TrialResult:
    # Admission runs before budgets are checked: an eviction that a budget refuses has passed the policies.
    if answer.status < _REFUSED or _BY_BUDGET in said_of(answer):
        return TrialResult.PASSED
    if (policy_of(answer) or "").startswith(_POLICIES):
        return TrialResult.BY_OUR_POLICY
    if _NO_RIGHT.search(said_of(answer)):
        return TrialResult.NO_RIGHT
    return TrialResult.BY_ANOTHER
