"""What the suites of rights use of the doctor."""

from __future__ import annotations

from plimsoll_cli.doctor.kubernetes_probe import GROUP, KubernetesProbe

__all__ = ["GROUP", "KubernetesProbe"]
