"""Actions: one file for each, and one line in `Action`."""

from __future__ import annotations

from plimsoll.domain.actions.base import Wave
from plimsoll.domain.actions.clear_cost import ClearCost
from plimsoll.domain.actions.complete import CompleteLifecycle
from plimsoll.domain.actions.cordon import Cordon
from plimsoll.domain.actions.evict import Evict
from plimsoll.domain.actions.finish_surge import FinishSurge
from plimsoll.domain.actions.force_delete import ForceDelete
from plimsoll.domain.actions.grow import Grow
from plimsoll.domain.actions.out_of_service import OutOfService
from plimsoll.domain.actions.record import Record
from plimsoll.domain.actions.restart import Restart
from plimsoll.domain.actions.scale import Scale
from plimsoll.domain.actions.terminate_instance import TerminateInstance
from plimsoll.domain.actions.uncordon import Uncordon
from plimsoll.domain.actions.writers import CapacityWriter, ClusterWriter, Writers

type Action = (
    Cordon
    | Uncordon
    | Grow
    | Scale
    | Restart
    | Evict
    | ForceDelete
    | FinishSurge
    | OutOfService
    | Record
    | TerminateInstance
    | CompleteLifecycle
    | ClearCost
)

__all__ = [
    "Action",
    "CapacityWriter",
    "ClearCost",
    "ClusterWriter",
    "CompleteLifecycle",
    "Cordon",
    "Evict",
    "FinishSurge",
    "ForceDelete",
    "Grow",
    "OutOfService",
    "Record",
    "Restart",
    "Scale",
    "TerminateInstance",
    "Uncordon",
    "Wave",
    "Writers",
]
