"""The service as the executor asks it, with the keys by which instructions are known."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from plimsoll_agent.identity import PinnedKey, SecretIdentity
from plimsoll_agent.service import Service
from plimsoll_service.wire.access import Enrolled, InstructionKey
from plimsoll_service.wire.instructions import Instructions, Results, Successor, successor_message


class PinningService:
    """Pins the successor of a key that is pinned, once that key has signed it. The Secret is written first.

    The former key is forgotten: it may have been rotated because others have it.
    """

    def __init__(self, service: Service, store: SecretIdentity, enrolled: Enrolled) -> None:
        self._service = service
        self._store = store
        self._enrolled = enrolled

    @property
    def keys(self) -> Mapping[str, PinnedKey]:
        """The keys that are pinned, by their ids."""
        return {each.key_id: PinnedKey(each.public_key) for each in self._enrolled.instruction_keys}

    def instructions(self) -> Instructions:
        """Return what is asked of the executor of this cluster.

        Raises:
            PlimsollError: the service or the cluster cannot be reached, or refuses.
        """
        answer = self._service.instructions()
        for signed in answer.instructions:
            if signed.successor is not None:
                self._follow(signed.successor)
        return answer

    def report(self, results: Results) -> None:
        """Report what became of instructions.

        Raises:
            PlimsollError: the service cannot be reached, or refuses.
        """
        self._service.report(results)

    def _follow(self, successor: Successor) -> None:
        former = self.keys.get(successor.former_id)
        message = successor_message(successor.key_id, successor.public_key)
        if former is None or not former.verify(successor.signature, message):
            return
        key = InstructionKey(key_id=successor.key_id, public_key=successor.public_key)
        enrolled = replace(self._enrolled, instruction_keys=(key,))
        # Stored before it is used: a process that dies in between pins the key again from the next answer.
        self._store.enrolled(enrolled)
        self._enrolled = enrolled
