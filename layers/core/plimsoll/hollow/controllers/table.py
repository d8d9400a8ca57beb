"""The controllers of a hollow cluster, in the order in which they work. One is one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll.hollow.controllers.autoscalers import Autoscalers
from plimsoll.hollow.controllers.base import Controller
from plimsoll.hollow.controllers.budgets import Budgets
from plimsoll.hollow.controllers.daemonsets import DaemonSets
from plimsoll.hollow.controllers.deployments import Deployments
from plimsoll.hollow.controllers.garbage import Garbage
from plimsoll.hollow.controllers.jobs import Jobs
from plimsoll.hollow.controllers.kubelet import Kubelets
from plimsoll.hollow.controllers.nodes import NodeLifecycle
from plimsoll.hollow.controllers.replicasets import ReplicaSets
from plimsoll.hollow.controllers.scheduler import Scheduler
from plimsoll.hollow.controllers.statefulsets import StatefulSets
from plimsoll.hollow.controllers.taints import TaintEviction
from plimsoll.hollow.controllers.volumes import Volumes
from plimsoll.hollow.world import World

CONTROLLERS: tuple[Callable[[World], Controller[Any]], ...] = (
    NodeLifecycle,
    TaintEviction,
    Autoscalers,
    Deployments,
    ReplicaSets,
    StatefulSets,
    DaemonSets,
    Jobs,
    Garbage,
    Scheduler,
    Volumes,
    Kubelets,
    Budgets,
)
