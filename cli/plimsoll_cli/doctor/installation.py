"""A cluster and the stack that looks after it, as the checks ask about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Final

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import Cluster
from plimsoll.services.ports import Clock
from plimsoll_cli.environment import Deployed
from plimsoll_cli.setup.manifests import NO_OVERLAY, folder_of

_MINOR: Final = re.compile(r"v?(\d+)\.(\d+)")


class Installation:
    """What the checks ask. The answers that several of them need are read once, at the first question.

    The canary leaves as soon as this is made: it travels while the checks read everything else.

    Args:
        deployed: The stack.
        cluster: A registered cluster.
        clock: The time.
        word: What the canary says; no two runs may use the same.
        wait: How many seconds the canary may take.
    """

    def __init__(
        self, deployed: Deployed, cluster: Cluster, clock: Clock, *, word: str, wait: float
    ) -> None:
        self.stack = deployed.stack
        self.index = deployed.index
        self.reports = deployed.reports
        self.aws = deployed.aws
        self.cluster = cluster
        self.clock = clock
        self.word = word
        self.wait = wait
        self.now = clock.now()
        self.canary = once(partial(self.aws.send_canary, word))
        with suppress(PlimsollError):  # the check of notices asks again, and tells it
            self.canary()
        self.probe = deployed.probe(cluster)
        self.limits = self.aws.limits(cluster)
        self.version = once(self.probe.version)
        """Of the API server."""
        api = deployed.clusters.open(cluster)
        self.nodes = once(api.nodes)
        self.observation = once(api.observe)
        self.groups = once(lambda: deployed.groups(cluster).list(_or_none(self.nodes)))

    def minor(self) -> tuple[int, int] | None:
        """Return the minor version of Kubernetes, as in (1, 37); None where the API server names none."""
        found = _MINOR.match(self.version())
        return (int(found[1]), int(found[2])) if found else None

    def apply(self, overlay: str | None = NO_OVERLAY) -> str:
        """Return the command that gives the cluster our manifests.

        Args:
            overlay: what it applies beside the base; None: its default.
        """
        if self.cluster.role is not None:  # the command writes in the account of the stack only
            return f"kubectl apply -k {folder_of(None if overlay == NO_OVERLAY else overlay)}"
        chosen = [] if overlay is None else ["--overlay", overlay]
        return self.stack.command(
            "clusters", "add", self.cluster.name, "--context", "CONTEXT", *chosen
        )

    def waited(self) -> float:
        """Return the seconds since the canary left."""
        return (self.clock.now() - self.now).total_seconds()


def once[T](ask: Callable[[], T]) -> Callable[[], T]:
    """Return a function that asks at its first call; each call returns that answer, or raises that error."""

    @cache
    def asked() -> T | PlimsollError:
        try:
            return ask()
        except PlimsollError as error:
            return error

    def answer() -> T:
        found = asked()
        if isinstance(found, PlimsollError):
            raise found
        return found

    return answer


def _or_none[T](ask: Callable[[], Sequence[T]]) -> Sequence[T]:
    try:
        return ask()
    except PlimsollError:
        return ()
