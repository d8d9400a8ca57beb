"""The questions that only the doctor asks of a stack and its clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from plimsoll.domain.node_groups import NodeGroup
from plimsoll.domain.registry import Cluster
from plimsoll.services.ports import Limits
from plimsoll_cli.doctor.facts import Concurrency, Direct, GroupSettings, Simulated, Target

if TYPE_CHECKING:
    from plimsoll_cli.doctor.kubernetes_probe import KubernetesProbe


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """One function for each question. Each raises a `PlimsollError` where nobody answers."""

    send_canary: Callable[[str], None]
    """Puts a canary of that name on the event bus."""
    send_past_the_rules: Callable[[str, datetime], Direct]
    """Tries to put a canary with that word straight into the queue of notices."""
    targets: Callable[[], Sequence[Target]]
    """How the stack's rules deliver."""
    cluster: Callable[[Cluster], KubernetesProbe]
    queue_delay: Callable[[Cluster, str], int]
    """For how many seconds a queue of that name, in the cluster's account, holds a message back."""
    group_settings: Callable[[Cluster, Sequence[NodeGroup]], Mapping[str, GroupSettings]]
    """By the name of the Auto Scaling group; groups of other kinds are left out."""
    limits: Callable[[Cluster], Limits]
    simulated: Callable[[], Sequence[Simulated]]
    """What IAM decides on requests of the stack's roles."""
    concurrency: Callable[[], Concurrency]
    reserve: Callable[[str, int], None]
    """Reserves concurrency for a function, by the output of the stack."""
    unknown_roles: Callable[[Cluster], Sequence[str]]
    """The roles of the stack that an EKS cluster does not put into our group."""
