"""Small manifests, and a drill that is written, read and played to its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plimsoll_simulation.measure.listening import Listener, Quiet
from plimsoll_simulation.measure.report import as_text
from plimsoll_simulation.rigs.simulated.rig import run
from plimsoll_simulation.scenario.drill import read_drill

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: example/web, resources: {requests: {cpu: 500m}}}
"""

AGENT = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      tolerations: [{operator: Exists}]
      containers:
        - {name: agent, image: example/agent, resources: {requests: {cpu: 100m}}}
"""


def play(
    folder: Path,
    drill: str,
    *,
    responder: str = "plimsoll",
    seed: int = 0,
    listener: Listener | None = None,
    **manifests: str,
) -> dict[str, Any]:
    """Play a drill whose manifests are files of these names, and return its report."""
    for name, text in manifests.items():
        (folder / f"{name}.yaml").write_text(text)
    (folder / "drill.yaml").write_text(drill)
    found = read_drill(folder / "drill.yaml")
    report = run(found, responder=responder, seed=seed, listener=listener or Quiet())
    whole: dict[str, Any] = json.loads(as_text(report))
    return whole
