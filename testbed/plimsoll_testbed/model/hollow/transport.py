"""Requests to a hollow cluster in the same process: no sockets, and time from whoever drives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.domain.errors import Temporary
from plimsoll.services.ports import Clock
from plimsoll_testbed.model.hollow.cluster import HollowCluster

USER: Final = "plimsoll"


class HollowTransport:
    """Implements `plimsoll.adapters.kubernetes.transport.Transport`.

    Bodies are shared with the cluster's store, as the API itself shares them: read them only.
    """

    def __init__(self, cluster: HollowCluster, clock: Clock, *, user: str = USER) -> None:
        self._cluster = cluster
        self._clock = clock
        self._user = user

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str | None = None,
    ) -> Response:
        """Send a request and return its answer, whatever its status.

        Raises:
            Temporary: the API server is away.
        """
        try:
            return self._cluster.handle(
                method,
                path,
                query or {},
                body,
                content_type or "application/json",
                now=self._clock.now(),
                user=self._user,
            )
        except ConnectionRefusedError as error:
            raise Temporary(f"{method} {path}: {error}") from error
