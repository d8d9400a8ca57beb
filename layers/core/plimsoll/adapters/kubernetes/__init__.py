from __future__ import annotations

from plimsoll.adapters.kubernetes.api import KubernetesCluster
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.transport import Response, Transport

__all__ = ["Call", "KubernetesCluster", "Response", "Transport"]
