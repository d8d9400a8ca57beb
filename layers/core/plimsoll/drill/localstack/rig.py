"""The rig `localstack`: the emulated rig with LocalStack in the place of its emulator.

The clusters are hollow, as on the emulated rig. What LocalStack has not (Auto Scaling, EKS) and
what it has thinly (EC2) the drill's own fleet answers.
"""

from __future__ import annotations

from plimsoll.drill.emulated.clusters import HollowClusters
from plimsoll.drill.emulated.rig import play
from plimsoll.drill.history import Recorder
from plimsoll.drill.localstack.localstack import LocalStack
from plimsoll.drill.report import Report
from plimsoll.drill.rigs import Listener
from plimsoll.drill.script import Script


def run(
    drill: Script,
    *,
    responder: str,
    seed: int,
    listener: Listener | None = None,
    recorder: Recorder | None = None,
) -> Report:
    """Play a drill and return its report; nothing is left running.

    Raises:
        BadInput: the rig cannot play it, or its cluster never becomes Ready.
        Refused: something that the rig starts is missing or did not start.
    """
    return play(
        drill,
        clusters=HollowClusters,
        emulators=LocalStack,
        rig="localstack",
        responder=responder,
        seed=seed,
        listener=listener,
        recorder=recorder,
    )
