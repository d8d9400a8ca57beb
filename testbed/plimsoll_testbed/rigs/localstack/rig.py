"""The rig `localstack`: the emulated rig with LocalStack in the place of its emulator.

The clusters are hollow, as on the emulated rig. What LocalStack has not (Auto Scaling, EKS) and
what it has thinly (EC2) the drill's own fleet answers.
"""

from __future__ import annotations

from functools import partial

from plimsoll_testbed.rigs.emulated.rig import Emulation
from plimsoll_testbed.rigs.localstack.localstack import LocalStack
from plimsoll_testbed.rigs.registry import Rig
from plimsoll_testbed.rigs.run import rig_of_runs

run: Rig = rig_of_runs(partial(Emulation, emulators=LocalStack, rig="localstack"))
