"""Nodes of KWOK as instances of EC2."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Unpack

from msgspec import Raw

from plimsoll.adapters.kubernetes.transport import Events, RequestParts, Response, Transport

ZONE: Final = "us-east-1a"
_PROVIDER_ID: Final = re.compile(rb"kwok://([a-z0-9.-]+)")


class AsInstances:
    """A way to the API server on which a node of KWOK looks like an instance of EC2."""

    def __init__(self, way: Transport) -> None:
        self._way = way

    def call(self, method: str, path: str, **more: Unpack[RequestParts]) -> Response:
        """Carry a request, and show the answer."""
        answer = self._way.call(method, path, **more)
        return Response(
            status=answer.status,
            content=None if answer.content is None else _shown(answer.content),
            headers=answer.headers,
            events=None if answer.events is None else _ShownEvents(answer.events),
        )


@dataclass(slots=True)
class _ShownEvents:
    events: Events

    @property
    def over(self) -> bool:
        return self.events.over

    def take(self) -> Sequence[Raw | Mapping[str, Any]]:
        return [Raw(_shown(bytes(e))) if isinstance(e, Raw) else e for e in self.events.take()]

    def close(self) -> None:
        self.events.close()


def instance_of(node: str) -> str:
    """Return the instance that Plimsoll takes a node of KWOK for."""
    return f"i-{hashlib.sha256(node.encode()).hexdigest()[:17]}"


def _shown(content: bytes) -> bytes:
    return _PROVIDER_ID.sub(
        lambda found: f"aws:///{ZONE}/{instance_of(found[1].decode())}".encode(), content
    )
