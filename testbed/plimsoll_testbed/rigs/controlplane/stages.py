"""What KWOK plays of a node: its first status, and its heartbeats. Pods are the fake kubelets'.

The lease is KWOK's own (--node-lease-duration-seconds). Whose lease is held by somebody else it
leaves alone: that is how an instance vanishes for KWOK and for the node lifecycle controller.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

_HEARTBEAT: Final = 300_000
"""Milliseconds between two status reports that say nothing new: kubelets' nodeStatusReportFrequency
of 5 min. In between the lease is the heartbeat."""
_READY: Final = '.status.conditions.[] | select( .type == "Ready" ) | .status'
_CONDITIONS: Final = """\
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
  message: {{ .message | Quote }}
  reason: {{ .reason | Quote }}
  status: {{ .status | Quote }}
  type: {{ .type | Quote }}
{{ end }}
"""
_FIRST: Final = (
    _CONDITIONS
    + """\
addresses:
- address: {{ .metadata.name | Quote }}
  type: Hostname
- address: {{ .metadata.name | Quote }}
  type: InternalDNS
nodeInfo:
  architecture: amd64
  bootID: ""
  containerRuntimeVersion: {{ printf "kwok-%s" Version | Quote }}
  kernelVersion: ""
  kubeProxyVersion: ""
  kubeletVersion: {{ printf "kwok-%s" Version | Quote }}
  machineID: ""
  operatingSystem: linux
  osImage: ""
  systemUUID: ""
phase: Running
"""
)
_BEAT: Final = """\
{{ $now := Now }}
conditions:
{{ range .status.conditions }}
- lastHeartbeatTime: {{ $now | Quote }}
  type: {{ .type | Quote }}
{{ end }}
"""


def write(file: Path) -> Path:
    """Write KWOK's configuration and return where it is. JSON is YAML too."""
    stages = [
        _stage("node-starts", "NotIn", delay=0, status=_FIRST),
        _stage("node-beats", "In", delay=_HEARTBEAT, status=_BEAT),
    ]
    file.write_text("\n---\n".join(json.dumps(stage) for stage in stages), encoding="utf-8")
    return file


def _stage(name: str, operator: str, *, delay: int, status: str) -> dict[str, Any]:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Node"},
            "selector": {
                "matchExpressions": [{"key": _READY, "operator": operator, "values": ["True"]}]
            },
            "delay": {"durationMilliseconds": delay},
            "next": {"statusTemplate": status},
        },
    }
