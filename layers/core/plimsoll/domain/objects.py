"""Kubernetes objects, as JSON, read into the domain's types.

Signatures first; the thinking follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from plimsoll.domain.nodes import Node
from plimsoll.domain.pods import Pod, Selector
from plimsoll.domain.workloads import Budget, Claim, Workload

type Json = Mapping[str, Any]


def parse_time(text: str) -> datetime:
    """Read a Kubernetes time, such as 2026-01-02T03:04:05Z, with or without fractions."""
    raise NotImplementedError


def parse_node(obj: Json) -> Node:
    """Read a Node, with the interruption recorded on it."""
    raise NotImplementedError


def parse_pod(obj: Json) -> Pod:
    """Read a Pod."""
    raise NotImplementedError


def parse_deployment(obj: Json) -> Workload:
    """Read a Deployment."""
    raise NotImplementedError


def parse_stateful_set(obj: Json) -> Workload:
    """Read a StatefulSet."""
    raise NotImplementedError


def parse_replica_set(obj: Json) -> Workload:
    """Read a ReplicaSet."""
    raise NotImplementedError


def parse_budget(obj: Json) -> Budget:
    """Read a PodDisruptionBudget."""
    raise NotImplementedError


def parse_claim(claim: Json, volume: Json | None) -> Claim:
    """Read a PersistentVolumeClaim and, where it is bound, its PersistentVolume."""
    raise NotImplementedError


def parse_selector(obj: Json | None) -> Selector:
    """Read a label selector; an absent one selects nothing."""
    raise NotImplementedError
