from __future__ import annotations

from plimsoll.drill.controlplane.plane import ControlPlane

__all__ = ["ControlPlane"]
