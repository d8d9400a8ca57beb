"""Actions: one file for each, and one line in `Action`."""

from __future__ import annotations

from plimsoll.domain.actions.base import Wave
from plimsoll.domain.actions.clear_cost import ClearCost
from plimsoll.domain.actions.complete import CompleteLifecycle
from plimsoll.domain.actions.cordon import Cordon
from plimsoll.domain.actions.discard import Discard
from plimsoll.domain.actions.evict import Evict
from plimsoll.domain.actions.give_back import GiveBack
from plimsoll.domain.actions.grow import Grow
from plimsoll.domain.actions.hands import CapacityHands, ClusterHands, Hands
from plimsoll.domain.actions.out_of_service import OutOfService
from plimsoll.domain.actions.record import Record
from plimsoll.domain.actions.release import Release
from plimsoll.domain.actions.renew import Renew
from plimsoll.domain.actions.restart import Restart
from plimsoll.domain.actions.scale import Scale

type Action = (
    Cordon
    | Release
    | Grow
    | Scale
    | Restart
    | Evict
    | Discard
    | GiveBack
    | OutOfService
    | Record
    | Renew
    | CompleteLifecycle
    | ClearCost
)

__all__ = [
    "Action",
    "CapacityHands",
    "ClearCost",
    "ClusterHands",
    "CompleteLifecycle",
    "Cordon",
    "Discard",
    "Evict",
    "GiveBack",
    "Grow",
    "Hands",
    "OutOfService",
    "Record",
    "Release",
    "Renew",
    "Restart",
    "Scale",
    "Wave",
]
