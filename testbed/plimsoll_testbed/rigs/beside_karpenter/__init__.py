"""The objects of a drill on a real control plane beside Karpenter itself, with Plimsoll's services or without.

The services are those that run in Lambda, in this process, over stores in memory. A notice reaches them
one second after its time and Karpenter as much later as its queue is delayed. Karpenter's KWOK provider
has no EC2 instances, so that its provider ids are shown to Plimsoll as those of EC2.
"""

from __future__ import annotations

from plimsoll_testbed.rigs.beside_karpenter.run import Setting, play

__all__ = ["Setting", "play"]
