"""Who cordoned which node. Beside a program that drains, not every cordon is the responder's."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from plimsoll_simulation.fake_cluster.edits import look
from plimsoll_simulation.fake_cluster.subresources import Request


@dataclass(frozen=True, slots=True)
class Cordons:
    """The cordons of one storm, from the writes to its Nodes."""

    ours: dict[str, datetime] = field(default_factory=dict)
    """When the responder first cordoned a node: from then on it has to report."""
    others: set[str] = field(default_factory=set)
    """Nodes that somebody else has cordoned, and nobody uncordoned since: these cordons are theirs to lift."""

    def note(self, write: Request, *, ours: bool) -> None:
        """Take note of a request that was answered."""
        if write.target.resource.plural != "nodes" or not write.name:
            return
        spec = look(write.body or {}, "spec", default={}) or {}
        if "unschedulable" not in spec:
            return
        if not spec["unschedulable"]:
            self.others.discard(write.name)
        elif ours:
            self.ours.setdefault(write.name, write.now)
        else:
            self.others.add(write.name)
