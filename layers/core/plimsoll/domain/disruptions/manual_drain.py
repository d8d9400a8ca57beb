"""A drain that a person asked for with `plimsoll drain`, as planner and pipeline see it.

On the Node it leaves nothing but the cordon, so that a deployed Plimsoll sees no interruption. Its
interruption exists in memory only. The pods that it releases name it in their annotation.
"""

from __future__ import annotations

from typing import Final

from plimsoll.domain.kubernetes import RELEASED, Pod
from plimsoll.domain.observation import Observation

DRAIN: Final = "drain"
"""Kind of the notice, and in the place of the instance in the identity `drain@<time>`."""


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
