"""Whether the drain of an instruction may go on: asked after each observation, before anything is done by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from plimsoll.domain.errors import BadInput, PlimsollError, Refused, Temporary
from plimsoll.domain.observation import Observation
from plimsoll.services.ports import Clock
from plimsoll_agent.authorization import against_drain, against_policy
from plimsoll_agent.journal import Journal
from plimsoll_agent.owner_policy import ACT, OwnerPolicy
from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.instructions import Instruction, SignedInstruction, verify

UNREAD: Final = timedelta(seconds=10)
"""How long a drain stands still because the owner's policy cannot be read; then it is called off."""


@dataclass(slots=True, kw_only=True)
class DrainPermission:
    """Holds one drain to the owner's policy and to the instruction, both as they are now."""

    signed: SignedInstruction
    policy: Callable[[], OwnerPolicy]
    before: Journal
    """As it was before this drain."""
    clock: Clock
    started: datetime
    read: datetime
    """When the policy was last read."""
    begun: bool = False
    """Whether anything may have been moved: from then on its replacements take the places that were free."""

    def check(self, seen: Observation) -> None:
        """Let the drain go on.

        Raises:
            Temporary: the policy cannot be read now; nothing is begun meanwhile.
            Permanent: the drain must be called off, and undone.
        """
        policy = self._policy()
        try:
            instruction = verify(self.signed, policy.instruction_keys)
        except Malformed as error:
            raise Refused(str(error)) from None
        why = self._against(instruction, policy, seen)
        if why is not None:
            raise Refused(why)
        self.begun = True

    def _against(
        self, instruction: Instruction, policy: OwnerPolicy, seen: Observation
    ) -> str | None:
        now = self.clock.now()
        if policy.mode != ACT:
            return f"the owner's policy has the mode {policy.mode}"
        if now > self.started + policy.drain_limit:
            return f"timed out: the owner's policy allows {policy.drain_minutes} minutes"
        return against_policy(instruction, policy, self.before, now) or against_drain(
            instruction, policy, seen, now, begun=self.begun
        )

    def _policy(self) -> OwnerPolicy:
        try:
            policy = self.policy()
        except BadInput:
            raise
        except PlimsollError as error:
            why = f"the owner's policy cannot be read: {error}"
            if self.clock.now() - self.read >= UNREAD:
                raise Refused(why) from error
            raise Temporary(why) from error
        self.read = self.clock.now()
        return policy
