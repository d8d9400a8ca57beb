"""Carries Kubernetes workloads through spot interruptions, from outside the cluster.

`domain` (pure) <- `services` (use cases) <- `adapters` (the world) <- `bootstrap` (wiring)
<- `functions`, `cli`. `simulation` and `testbed` stand beside them and never run in Lambda.
"""

from __future__ import annotations
