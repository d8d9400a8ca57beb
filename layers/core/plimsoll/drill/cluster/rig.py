"""The cluster rig: the emulated rig's AWS, and real control planes for its clusters.

etcd, API server, scheduler and controllers are the real ones; nodes and kubelets are played, and
join and vanish with the fleet. Time is the wall's: what takes two minutes takes two minutes.
"""

from __future__ import annotations

from plimsoll.drill.cluster.clusters import ControlPlanes
from plimsoll.drill.emulated.rig import play
from plimsoll.drill.history import Recorder
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
        clusters=ControlPlanes,
        rig="cluster",
        responder=responder,
        seed=seed,
        listener=listener,
        recorder=recorder,
    )
