"""Karpenter beside us: how long its interruption queue holds messages back, its version, and the limits of its NodePools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from plimsoll.adapters.nodegroups.karpenter import NAME
from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.doctor.facts import Drainer, Facts, read_or_raise
from plimsoll_cli.doctor.findings import Finding, info, ok, skipped

LEAST_SECONDS: Final = 10
"""What Plimsoll may need to mark the pods of a notice, with a cold start."""
RIGHT_SECONDS: Final = 15
MOST_SECONDS: Final = 30
"""What Karpenter has left of two minutes, and a node that ends without a notice is missed for that long."""
DURATIONS_SINCE: Final = (1, 12)
"""The version of Karpenter from which `karpenter.sh/do-not-disrupt` may be a duration."""
CHECK: Final = "Karpenter's queue"


def holds_back(delay_seconds: int) -> bool:
    """Whether a queue leaves Plimsoll the time to mark the pods of a notice before Karpenter hears of it."""
    return delay_seconds >= LEAST_SECONDS


def karpenters_queue(
    facts: Facts, karpenter: Drainer, say: Callable[[str, str, str], Finding], held: str
) -> Iterator[Finding]:
    """Say whether Karpenter's interruption queue holds messages back for as long as is right.

    Args:
        facts: all that was read.
        karpenter: one that reads a queue.
        say: makes the finding where it does not.
        held: what holds it back else, in words.
    """
    name = karpenter.queue
    cure = (
        f"set DelaySeconds of the queue {name} to {RIGHT_SECONDS}, in the code that makes it too: see "
        "docs/guides/beside-karpenter.md"
    )
    delay = facts.queue_delays[name or ""]
    if isinstance(delay, PlimsollError):
        yield skipped(CHECK, delay, f"look at it yourself: {cure}")
    elif not holds_back(delay):
        yield say(
            CHECK,
            f"{name} delivers messages after {delay} s. Karpenter in namespace {karpenter.namespace} then evicts the pods "
            f"of an interrupted node before Plimsoll has released them{held}",
            cure,
        )
    elif delay > MOST_SECONDS:
        yield info(
            CHECK,
            f"{name} holds messages back for {delay} s. An interrupted node counts against the limits of its NodePool for "
            "that long, and so does one that ended without a notice",
            cure,
        )
    else:
        yield ok(CHECK, f"{name} holds messages back for {delay} s: the mode act fits")
    if karpenter.version is not None and karpenter.version < DURATIONS_SINCE:
        yield say(
            "Karpenter's version",
            f"{karpenter.version[0]}.{karpenter.version[1]} reads no duration in karpenter.sh/do-not-disrupt, and evicts "
            "released pods",
            "update Karpenter to 1.12 or newer, or guard workloads (plimsoll guard install)",
        )


def node_pools(facts: Facts) -> Iterator[Finding]:
    """Name the NodePools that take no more pods, or whose limits leave too little room for all their spot nodes at once."""
    for group in read_or_raise(facts.groups):
        if group.kind == NAME and group.closed is not None:
            yield info(
                f"NodePool {group.name}",
                f"{group.closed}. Karpenter makes no node of it for Pending pods",
                "let another NodePool or node group take its pods, or make its EC2NodeClass Ready",
            )
        elif (
            group.kind == NAME and group.capacity == "spot" and group.addable_nodes < group.desired
        ):
            yield info(
                f"NodePool {group.name}",
                f"its limits leave room for {group.addable_nodes} more nodes, and {group.desired} of its nodes are spot. "
                "Replacements of interrupted nodes wait until Karpenter hears of the interruption",
                "raise spec.limits by as many nodes",
            )
