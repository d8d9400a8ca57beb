"""Carries Kubernetes workloads through spot interruptions, from outside the cluster.

`domain` (pure) <- `services` (use cases) <- `adapters` (the world) <- `bootstrap` (wiring)
<- `functions`, `cli`. `hollow` and `drill` stand beside them and never run in Lambda.
"""

from __future__ import annotations
