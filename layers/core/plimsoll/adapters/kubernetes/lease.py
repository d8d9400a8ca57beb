"""A Lease of the cluster: one drain at a time plans for a cluster, and one planner of its queues.

It keeps two reconciles from asking for capacity twice, and is not what makes a write safe: the API
server honours no fencing token, so every write has a precondition of its own.

https://kubernetes.io/docs/concepts/architecture/leases/
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from plimsoll.adapters.kubernetes.calls import CREATE_LEASE, GET_LEASE, UPDATE_LEASE
from plimsoll.adapters.kubernetes.requests import Json, Requests
from plimsoll.domain.errors import Conflict, NotFound, Refused
from plimsoll.domain.fields import parse_time
from plimsoll.domain.kubernetes import LEASE, NAMESPACE


def acquire(
    requests: Requests, holder: str, seconds: float, now: datetime, name: str = LEASE
) -> bool:
    """Take a Lease or renew it; False while somebody else's is live, or was quicker.

    Raises:
        Refused: the namespace for it is missing, or the right.
    """
    try:
        lease = requests.send(GET_LEASE, namespace=NAMESPACE, name=name)
    # The first reconcile of a cluster creates it. Of two at once, the API server answers 409 to the second.
    except NotFound:
        return _create(requests, holder, seconds, now, name)
    spec = lease.get("spec") or {}
    other = (spec.get("holderIdentity") or "") not in {"", holder}
    # This compares our clock with the holder's. client-go needs no common clock: it waits
    # until it has seen no renewal for the whole duration, for which an invocation has no time.
    # https://pkg.go.dev/k8s.io/client-go/tools/leaderelection
    if other and now < _expires(spec):
        return False
    mine = _spec(holder, seconds, now)
    if spec.get("holderIdentity") == holder:
        mine["acquireTime"] = spec.get("acquireTime") or mine["acquireTime"]
        mine["leaseTransitions"] = spec.get("leaseTransitions") or 0
    else:
        mine["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + 1
    return _update(requests, lease, mine)


def release(requests: Requests, holder: str, name: str = LEASE) -> None:
    """Give the Lease back, if it is ours. Somebody who was quicker keeps it."""
    try:
        lease = requests.send(GET_LEASE, namespace=NAMESPACE, name=name)
    except NotFound:
        return
    spec = lease.get("spec") or {}
    if spec.get("holderIdentity") == holder:
        # The API server refuses a duration below 1.
        # https://github.com/kubernetes/kubernetes/blob/master/pkg/apis/coordination/validation/validation.go
        _update(requests, lease, {**spec, "holderIdentity": "", "leaseDurationSeconds": 1})


def micro_time(time: datetime) -> str:
    """Return a time as a MicroTime, whose six digits the API server insists on."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _create(requests: Requests, holder: str, seconds: float, now: datetime, name: str) -> bool:
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": _spec(holder, seconds, now),
    }
    try:
        requests.send(CREATE_LEASE, namespace=NAMESPACE, name=name, body=lease)
    except Conflict:
        return False
    except NotFound as error:
        raise Refused(
            f"cluster {requests.cluster} has no namespace {NAMESPACE}: apply infra/cluster "
            "(kubectl apply -k infra/cluster)"
        ) from error
    return True


def _update(requests: Requests, lease: Json, spec: Json) -> bool:
    try:
        # The Lease goes back with the resourceVersion that was read: a write in between makes this a Conflict.
        name = lease["metadata"]["name"]
        requests.send(
            UPDATE_LEASE, namespace=NAMESPACE, name=name, body={**lease, "spec": dict(spec)}
        )
    except (Conflict, NotFound):
        return False
    return True


def _spec(holder: str, seconds: float, now: datetime) -> dict[str, Any]:
    return {
        "holderIdentity": holder,
        "leaseDurationSeconds": max(1, ceil(seconds)),
        "acquireTime": micro_time(now),
        "renewTime": micro_time(now),
        "leaseTransitions": 0,
    }


def _expires(spec: Json) -> datetime:
    """Return when a Lease ends. One without times was never renewed: it has ended."""
    renewed = spec.get("renewTime") or spec.get("acquireTime")
    if not renewed:
        return datetime.min.replace(tzinfo=UTC)
    return parse_time(renewed) + timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
