"""Forwards other handlers' interruption taints at once, ahead of all snapshots.

It follows the Nodes by a watch of its own, so that neither a snapshot nor a backlog of them is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import batched
from typing import Final

from msgspec import Raw

from plimsoll.adapters.kubernetes.calls import LIST_NODES
from plimsoll.adapters.kubernetes.collection import Collection
from plimsoll.adapters.kubernetes.decoding import Json
from plimsoll.adapters.kubernetes.objects import parse_node
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.watches import Watches
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.names import INTERRUPTION
from plimsoll.services.ports import Clock
from plimsoll_service.wire.taints import FORWARDED, MOST

LOOK_SECONDS: Final = 1.0
"""Between two looks at what the watch told."""
LIST_SECONDS: Final = 30.0
"""Between two looks where the Nodes may not be watched, and are listed each time."""
SAID_AT: Final = (timedelta(0), timedelta(seconds=10), timedelta(seconds=30))
"""How long after it was seen a taint is forwarded: what EC2 answers may lag behind the handler's source."""


class Forwarding:
    """Follows the Nodes of a cluster.

    Args:
        requests: Makes the calls.
        clock: The time.
        forward: Tells the service of instances.
        warn: Told of Nodes that cannot be read, and where there is no right to watch.
    """

    def __init__(
        self,
        requests: Requests,
        clock: Clock,
        forward: Callable[[Sequence[str]], object],
        warn: Callable[[str], None],
    ) -> None:
        self._requests = requests
        self._clock = clock
        self._forward = forward
        self._warn = warn
        self._nodes = Collection(LIST_NODES, _interrupted)
        self._watches = Watches(requests, SerialWorkers(), clock, warn)
        self._said: dict[str, tuple[datetime, int]] = {}
        """By instance: when its taint was seen, and how often that was forwarded."""

    def round(self) -> float:
        """Forward what is due, and return in how many seconds to look again.

        Raises:
            PlimsollError: the cluster or the service cannot be reached; the next round goes on.
        """
        self._watches.follow([self._nodes])
        refused = not self._nodes.watchable
        if not self._nodes.watched:
            self._nodes.watchable = True  # the right may come
            self._nodes.list(self._requests, self._warn)
        now = self._clock.now()
        standing = dict.fromkeys(filter(None, self._nodes.objects), (now, 0))
        self._said = {each: self._said.get(each, new) for each, new in standing.items()}
        due = [
            each
            for each, (seen, times) in self._said.items()
            if times < len(SAID_AT) and now >= seen + SAID_AT[times]
        ]
        for batch in batched(due, MOST, strict=False):
            self._forward(batch)
            for each in batch:
                seen, times = self._said[each]
                self._said[each] = (seen, times + 1)
        return LIST_SECONDS if refused else LOOK_SECONDS


def _interrupted(obj: Json | Raw) -> str | None:
    """Return the instance of a Node that another handler marked, and we did not."""
    node = parse_node(obj)
    keys = {taint.key for taint in node.taints}
    return node.instance if keys.intersection(FORWARDED) and INTERRUPTION not in keys else None
