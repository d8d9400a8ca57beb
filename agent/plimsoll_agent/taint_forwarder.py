"""Forwards other handlers' interruption taints at once, ahead of all snapshots.

It follows the Nodes by a watch of its own, so that neither a snapshot nor a backlog of them is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import batched
from typing import Final

from msgspec import Raw, ValidationError, convert

from plimsoll.adapters.kubernetes.calls import LIST_NODES
from plimsoll.adapters.kubernetes.collection import Collection
from plimsoll.adapters.kubernetes.decoding import Json
from plimsoll.adapters.kubernetes.objects import parse_node
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.watches import Watches
from plimsoll.adapters.workers import SerialWorkers
from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import INTERRUPTION
from plimsoll.services.ports import Clock
from plimsoll_service.wire.taints import FORWARDED, MOST_INSTANCES, InstanceId

LOOK_SECONDS: Final = 1.0
"""Between two looks at what the watch told."""
LIST_SECONDS: Final = 30.0
"""Between two looks where objects may not be watched, and are listed each time."""
SAID_AT: Final = (timedelta(0), timedelta(seconds=10), timedelta(seconds=30))
"""How long after it was seen a taint is forwarded: what EC2 answers may lag behind the handler's source."""


class Followed[T]:
    """Objects of one kind, followed by a watch of their own.

    Args:
        kind: The objects.
        requests: Makes the calls.
        clock: The time.
        warn: Told of objects that cannot be read, and where there is no right to watch.
    """

    def __init__(
        self, kind: Collection[T], requests: Requests, clock: Clock, warn: Callable[[str], None]
    ) -> None:
        self._kind, self._requests, self._warn = kind, requests, warn
        self._watches = Watches(requests, SerialWorkers(), clock, warn)

    @property
    def objects(self) -> Sequence[T]:
        """What could be read at the last look."""
        return self._kind.objects

    def look(self) -> float:
        """Take in what changed, and return in how many seconds to look again.

        Raises:
            PlimsollError: the cluster cannot be reached.
        """
        self._watches.follow([self._kind])
        refused = not self._kind.watchable
        if not self._kind.watched:
            self._kind.watchable = True  # the right may come
            self._kind.list(self._requests, self._warn)
        return LIST_SECONDS if refused else LOOK_SECONDS


class TaintForwarder:
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
        self._clock = clock
        self._forward = forward
        self._nodes = Followed(Collection(LIST_NODES, _interrupted), requests, clock, warn)
        self._said: dict[str, tuple[datetime, int]] = {}
        """By instance: when its taint was seen, and how often that was forwarded."""

    def round(self) -> float:
        """Forward what is due, and return in how many seconds to look again.

        Raises:
            PlimsollError: the cluster or the service cannot be reached; the next round goes on.
        """
        pause = self._nodes.look()
        now = self._clock.now()
        standing = dict.fromkeys(filter(None, self._nodes.objects), (now, 0))
        # A taint that is gone is forgotten: the instance may be started and marked again.
        self._said = {each: self._said.get(each, new) for each, new in standing.items()}
        due = [
            each
            for each, (seen, times) in self._said.items()
            if times < len(SAID_AT) and now >= seen + SAID_AT[times]
        ]
        for batch in batched(due, MOST_INSTANCES, strict=False):
            self._forward(batch)
            # Counted after the forward: if that fails, the instance is due again.
            for each in batch:
                seen, times = self._said[each]
                self._said[each] = (seen, times + 1)
        return pause


def _interrupted(obj: Json | Raw) -> str | None:
    """Return the instance of a Node that another handler marked, and we did not."""
    node = parse_node(obj)
    keys = {taint.key for taint in node.taints}
    if not keys.intersection(FORWARDED) or INTERRUPTION in keys or node.instance is None:
        return None
    try:
        convert(node.instance, InstanceId)
    except ValidationError:
        raise BadInput(f"Node {node.name}: {node.instance!r} is no instance") from None
    return node.instance
