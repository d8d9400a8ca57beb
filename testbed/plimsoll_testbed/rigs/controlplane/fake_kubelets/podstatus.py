"""The status that a kubelet posts for a pod. Source: PodStatus in k8s.io/api/core/v1."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from plimsoll_testbed.model.hollow.edits import Json, look
from plimsoll_testbed.model.hollow.stamps import stamp

_EXITED: Final = 0


def address(number: int) -> str:
    """Return an address out of 100.64.0.0/10, which no cluster's Services are in."""
    return f"100.{64 + number // 65536 % 64}.{number // 256 % 256}.{number % 256}"


def _conditions(now: datetime, **status: bool) -> list[Json]:
    since = stamp(now)
    return [
        {"type": kind, "status": str(holds), "lastTransitionTime": since}
        for kind, holds in status.items()
    ]


def _containers(pod: Json, *, ready: bool, state: Json) -> list[Json]:
    return [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "ready": ready,
            "started": "running" in state,
            "restartCount": 0,
            "state": state,
        }
        for container in look(pod, "spec", "containers", default=())
    ]


def running(pod: Json, now: datetime, address: str, *, ready: bool) -> dict[str, Any]:
    """Return the status of a pod whose containers run. Source: the PodStatus a kubelet posts."""
    since = stamp(now)
    return {
        "phase": "Running",
        "startTime": since,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(
            now,
            PodReadyToStartContainers=True,
            Initialized=True,
            ContainersReady=ready,
            Ready=ready,
        ),
        "containerStatuses": _containers(pod, ready=ready, state={"running": {"startedAt": since}}),
    }


def succeeded(pod: Json, now: datetime) -> dict[str, Any]:
    """Return the status of a pod whose containers are done."""
    since = stamp(now)
    began = look(pod, "status", "startTime", default=since)
    ended = {"exitCode": _EXITED, "reason": "Completed", "startedAt": began, "finishedAt": since}
    return {
        "phase": "Succeeded",
        "conditions": [
            {**condition, "reason": "PodCompleted"}
            for condition in _conditions(now, ContainersReady=False, Ready=False)
        ],
        "containerStatuses": _containers(pod, ready=False, state={"terminated": ended}),
    }
