"""What is paid for and used by nobody, besides nodes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from plimsoll_service.domain.view import View
from plimsoll_service.wire.snapshot import LoadBalancer, Volume

SETTLED: Final = timedelta(days=1)
"""What is younger may be about to be used."""


def orphan_volumes(view: View) -> Iterator[Volume]:
    """Yield volumes that no claim has."""
    for volume in view.seen.volumes:
        unclaimed = volume.phase in {"Available", "Released", "Failed"}
        if unclaimed and view.at - volume.created_at >= SETTLED:
            yield volume


def idle_load_balancers(view: View) -> Iterator[LoadBalancer]:
    """Yield load balancers that have nothing to send requests to."""
    for balancer in view.seen.load_balancers:
        old = view.at - balancer.created_at >= SETTLED
        if balancer.provisioned and balancer.ready_endpoints == 0 and old:
            yield balancer
