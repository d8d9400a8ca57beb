"""The ready endpoints of Services, as a client that follows the EndpointSlices knows them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Self, override

from plimsoll.adapters.clock import SystemClock
from plimsoll_testbed.rigs.follower import Follower

PATH: Final = "/apis/discovery.k8s.io/v1/endpointslices"
SERVICE: Final = "kubernetes.io/service-name"

type Service = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """From this moment on these are the ready addresses of a Service."""

    at: datetime
    addresses: Sequence[str]


class ReadyEndpoints(AbstractContextManager["ReadyEndpoints"]):
    """Follows all EndpointSlices of a cluster while its block lasts."""

    def __init__(self, kubeconfig: Path) -> None:
        self._clock = SystemClock()
        self._lock = threading.Lock()
        self._slices: dict[Service, dict[str, Sequence[str]]] = {}
        """Service -> name of the slice -> its ready addresses."""
        self._changes: dict[Service, list[Change]] = {}
        self._follower = Follower(kubeconfig, PATH, self._heard)

    @override
    def __enter__(self) -> Self:
        self._follower.start()
        return self

    @override
    def __exit__(self, *_: object) -> None:
        self._follower.end()

    def ready(self, service: Service) -> Sequence[str]:
        """Return the addresses that are ready now."""
        with self._lock:
            changes = self._changes.get(service)
            return changes[-1].addresses if changes else ()

    def seconds_below(
        self, count: int, service: Service, since: datetime, until: datetime
    ) -> float:
        """Return for how long fewer addresses were ready, between two moments."""
        with self._lock:
            changes = list(self._changes.get(service, ()))
        ends = [change.at for change in changes[1:]] + [until]
        return sum(
            max(0.0, (min(end, until) - max(change.at, since)).total_seconds())
            for change, end in zip(changes, ends, strict=True)
            if len(change.addresses) < count
        )

    def _heard(self, change: str, found: dict[str, Any]) -> None:
        meta = found["metadata"]
        service = meta["namespace"], meta.get("labels", {}).get(SERVICE, "")
        addresses = [
            address
            for endpoint in (found.get("endpoints") or () if change != "DELETED" else ())
            if endpoint["conditions"].get("ready") is not False
            for address in endpoint["addresses"]
        ]
        with self._lock:
            slices = self._slices.setdefault(service, {})
            slices[meta["name"]] = addresses
            total = sorted(address for part in slices.values() for address in part)
            self._changes.setdefault(service, []).append(
                Change(at=self._clock.now(), addresses=total)
            )
