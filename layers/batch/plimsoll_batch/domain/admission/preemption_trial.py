"""Whether a gang would have a place once others make way."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll_batch.domain.capacity import NoPlace, Placement
from plimsoll_batch.domain.jobs import Gang
from plimsoll_batch.domain.quota import Holder, RoleFlavors


class Trials:
    """Looks for a gang's place while others are taken off the nodes and put back."""

    def __init__(
        self, placement: Placement | None, gang: Gang, flavors: Sequence[RoleFlavors], most: int
    ) -> None:
        self._placement, self._gang, self._flavors = placement, gang, flavors
        self._most = most
        self._found = False
        self.failed = 0

    def has_nodes(self) -> bool:
        """Whether there is a place now; after too many failures there is none, but for filling back."""
        if self._placement is None:
            return True
        if not self._found and self.failed >= self._most:
            return False
        place = self._placement.place(self._gang, self._flavors)
        if isinstance(place, NoPlace):
            self.failed += 1
            return False
        self._placement.remove(place)
        self._found = True
        return True

    def took(self, holder: Holder) -> None:
        """See a gang as ended."""
        if self._placement is not None:
            self._placement.release([holder.running])

    def put_back(self, holder: Holder) -> None:
        """Undo that."""
        if self._placement is not None:
            self._placement.occupy([holder.running])
