"""The controllers of a hollow cluster, in the order in which they work. One is one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll_testbed.model.hollow.controllers.autoscalers import Autoscalers
from plimsoll_testbed.model.hollow.controllers.base import Controller
from plimsoll_testbed.model.hollow.controllers.budgets import Budgets
from plimsoll_testbed.model.hollow.controllers.daemonsets import DaemonSets
from plimsoll_testbed.model.hollow.controllers.deployments import Deployments
from plimsoll_testbed.model.hollow.controllers.garbage import Garbage
from plimsoll_testbed.model.hollow.controllers.jobs import Jobs
from plimsoll_testbed.model.hollow.controllers.kubelet import Kubelets
from plimsoll_testbed.model.hollow.controllers.nodes import NodeLifecycle
from plimsoll_testbed.model.hollow.controllers.replicasets import ReplicaSets
from plimsoll_testbed.model.hollow.controllers.scheduler import Scheduler
from plimsoll_testbed.model.hollow.controllers.statefulsets import StatefulSets
from plimsoll_testbed.model.hollow.controllers.taints import TaintEviction
from plimsoll_testbed.model.hollow.controllers.volumes import Volumes
from plimsoll_testbed.model.hollow.state import ClusterState

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
)
