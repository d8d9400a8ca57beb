"""Tell Auto Scaling that an instance is drained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, override

from plimsoll.domain.actions.base import AboutNode, Wave
from plimsoll.domain.actions.writers import Writers
from plimsoll.domain.errors import NotFound
from plimsoll.domain.interruptions import Interruption


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteLifecycle(AboutNode):
    """Complete the lifecycle actions that hold an instance, then write down that it is finished.

    Both in one action, so that a completion that failed is tried again at the next look.
    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/completing-lifecycle-hooks.html
    """

    verb: ClassVar[str] = "complete-lifecycle"
    wave: ClassVar[Wave] = Wave.CLOSE

    interruption: Interruption
    """With its closing mark."""

    @property
    @override
    def target(self) -> str:
        """The instance and the hooks that hold it."""
        hooks = ", ".join(f"{n.hook} of {n.group}" for n in self.interruption.hooks)
        return f"{self.interruption.instance} ({hooks})"

    def perform(self, writers: Writers) -> None:
        """Complete each with CONTINUE; one that is over already is as good."""
        for notice in self.interruption.hooks:
            try:
                writers.capacity.complete_lifecycle(
                    notice.group or "",
                    notice.hook or "",
                    notice.token,
                    self.interruption.instance,
                )
            except NotFound:
                continue
        writers.cluster.record(self.node, self.interruption)
