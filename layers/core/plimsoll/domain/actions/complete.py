"""Tell Auto Scaling that an instance is drained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from plimsoll.domain.actions.base import Wave
from plimsoll.domain.actions.hands import Hands


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteLifecycle:
    """Complete the lifecycle action that holds an instance, so that it need not wait any longer.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/completing-lifecycle-hooks.html
    """

    verb: ClassVar[str] = "complete-lifecycle"
    wave: ClassVar[Wave] = Wave.CLOSE

    group: str
    hook: str
    token: str
    instance: str
    reason: str

    @property
    def target(self) -> str:
        """The instance and its hook."""
        return f"{self.instance} in {self.group} ({self.hook})"

    def perform(self, hands: Hands) -> None:
        """Complete it with CONTINUE."""
        hands.capacity.complete_lifecycle(self.group, self.hook, self.token, self.instance)
