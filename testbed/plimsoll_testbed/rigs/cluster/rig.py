"""The cluster rig: the emulated rig's AWS, and real control planes for its clusters.

etcd, API server, scheduler and controllers are the real ones; nodes and kubelets are played, and
join and vanish with the fleet. Time is the wall's: what takes two minutes takes two minutes.
"""

from __future__ import annotations

from functools import partial

from plimsoll_testbed.rigs.cluster.clusters import ControlPlanes
from plimsoll_testbed.rigs.emulated.rig import Emulation
from plimsoll_testbed.rigs.registry import Rig
from plimsoll_testbed.rigs.run import rig_of_runs

run: Rig = rig_of_runs(partial(Emulation, clusters=ControlPlanes, rig="cluster"))
