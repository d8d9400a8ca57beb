"""The controllers of a fake cluster, in the order in which they work. One is one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll_simulation.fake_cluster.controllers.autoscalers import Autoscalers
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.controllers.budgets import Budgets
from plimsoll_simulation.fake_cluster.controllers.daemonsets import DaemonSets
from plimsoll_simulation.fake_cluster.controllers.deployments import Deployments
from plimsoll_simulation.fake_cluster.controllers.garbage import Garbage
from plimsoll_simulation.fake_cluster.controllers.jobs import Jobs
from plimsoll_simulation.fake_cluster.controllers.kubelet import Kubelets
from plimsoll_simulation.fake_cluster.controllers.nodes import NodeLifecycle
from plimsoll_simulation.fake_cluster.controllers.quotas import Quotas
from plimsoll_simulation.fake_cluster.controllers.replicasets import ReplicaSets
from plimsoll_simulation.fake_cluster.controllers.scheduler import Scheduler
from plimsoll_simulation.fake_cluster.controllers.statefulsets import StatefulSets
from plimsoll_simulation.fake_cluster.controllers.taints import TaintEviction
from plimsoll_simulation.fake_cluster.controllers.volumes import Volumes
from plimsoll_simulation.fake_cluster.state import ClusterState

CONTROLLERS: tuple[Callable[[ClusterState], Controller[Any]], ...] = (
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
    Quotas,
)
