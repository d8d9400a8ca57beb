"""Replace an instance before it is taken away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, override

from plimsoll.domain.actions.base import AboutNode, Wave
from plimsoll.domain.actions.writers import Writers
from plimsoll.domain.interruptions import Interruption


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminateInstance(AboutNode):
    """Terminate an empty instance whose group then launches another, and close its interruption.

    Only after a recommendation without a deadline, and only in groups whose owner marked them with
    the tag `plimsoll.dev/renew: "true"`: a recommended instance often lives on for hours.
    """

    verb: ClassVar[str] = "terminate-instance"
    wave: ClassVar[Wave] = Wave.CLOSE

    interruption: Interruption
    """With its closing mark."""

    @property
    @override
    def target(self) -> str:
        """The node and its instance."""
        return f"Node {self.node.name} ({self.interruption.instance})"

    def perform(self, writers: Writers) -> None:
        """Terminate it, then write down that it is finished: the other way round it could stay."""
        writers.capacity.terminate(self.interruption.instance)
        writers.cluster.record(self.node, self.interruption)
