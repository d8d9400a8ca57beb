"""A drain that a person asked for with `plimsoll drain`, as planner and pipeline see it.

On the Node it leaves nothing but the cordon, so that a deployed Plimsoll sees no interruption. Its
interruption exists in memory only. The pods that it releases name it in their annotation.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from plimsoll.domain.interruptions import Interruption, NoticeRecord
from plimsoll.domain.names import RELEASED
from plimsoll.domain.observation import Observation
from plimsoll.domain.pods import Pod

DRAIN: Final = "drain"
"""Kind of the notice, and in the place of the instance in the identity `drain@<time>`."""


def drain_interruption(
    node: str, *, started: datetime, deadline: datetime | None = None
) -> Interruption:
    """Return the interruption that a drain by hand overlays on a node.

    Args:
        node: the name of the node.
        started: when the drain began; part of the identity.
        deadline: when pods are evicted against their budgets; None: never.
    """
    notice = NoticeRecord(kind=DRAIN, time=started, id=node, ends=deadline)
    return Interruption(
        instance=DRAIN,
        launched=started.replace(microsecond=0),
        node=node,
        notices=(notice,),
        cordoned=started,
    )


def released_by_drain(pod: Pod) -> bool:
    """Whether a pod was released by a drain by hand."""
    return pod.released and pod.annotations[RELEASED].startswith(f"{DRAIN}@")


def left_to_drain(seen: Observation, pod: Pod) -> bool:
    """Whether a released pod belongs to a drain by hand that is not called off.

    The cordon says so: as long as it stands, the drain is under way or will be run again. Whoever
    uncordons the node calls the drain off, and its released pods are undone like all others.
    """
    node = seen.node.get(pod.node or "")
    return released_by_drain(pod) and node is not None and node.unschedulable
