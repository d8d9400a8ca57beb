"""The rig `localstack`: the emulated rig with LocalStack in the place of its emulator.

The clusters are hollow, as on the emulated rig. What LocalStack has not (Auto Scaling, EKS) and
what it has thinly (EC2) the drill's own fleet answers.
"""

from __future__ import annotations

from functools import partial

from plimsoll_testbed.rigs.emulated.clusters import HollowClusters
from plimsoll_testbed.rigs.emulated.rig import play
from plimsoll_testbed.rigs.localstack.localstack import LocalStack
from plimsoll_testbed.rigs.registry import Rig

run: Rig = partial(play, clusters=HollowClusters, emulators=LocalStack, rig="localstack")
