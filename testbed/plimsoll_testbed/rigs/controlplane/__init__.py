from __future__ import annotations

from plimsoll_testbed.rigs.controlplane.plane import ControlPlane

__all__ = ["ControlPlane"]
