"""The journal of a change of GPUs: one annotation of the Node, written in the same patch as what it tells of.

So an agent that dies leaves neither without the other, and whoever comes next goes on from there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, Self

from msgspec import Struct

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import GPU_CHANGE, Node
from plimsoll_service.wire.documents import Malformed, decode, encode
from plimsoll_service.wire.gpu_plan import ConfigLabel

type Layout = Literal["new", "old"]
type Step = Literal[
    "emptying", "labelled", "changing", "checking", "alert", "done", "undone", "stopped"
]
"""`emptying`: cordoned, and its pods leave. `labelled`: NVIDIA's manager has not begun yet. `changing`: it works.
`checking`: it ended, or its time is over. `alert`: cordoned until a person looks. `done`: in service in the new layout.
`undone`: in service, and never labelled. `stopped`: not tried again for the same plan."""
UNDER_WAY: Final[frozenset[Step]] = frozenset(
    {"emptying", "labelled", "changing", "checking", "alert"}
)


class GpuChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the change of one Node stands, and all that is needed to end it without the plan."""

    step: Step
    label: ConfigLabel
    """Which label of NVIDIA's is written."""
    saved: str
    """Its value before."""
    target: str
    old: dict[str, int]
    """The GPUs that the Node showed before, by resource."""
    new: dict[str, int]
    config: str
    """The hash of the ConfigMap that was planned with."""
    begun: datetime
    since: datetime
    """When the present step began."""
    labelled: datetime | None = None
    """When the label was last written."""
    goal: Layout = "new"
    rebooted: bool = False
    late: bool = False
    """The manager did not end in its time."""
    found: Layout | None = None
    """Which layout the Node shows, while it is checked."""
    ended: bool = False
    """Whether NVIDIA's manager says meanwhile that it has ended: one that hung goes on when it can."""
    found_since: datetime | None = None
    """Since when both are so."""
    final: bool = False
    """An alert after which nothing more is tried."""
    reason: str = ""

    @classmethod
    def of(cls, node: Node) -> Self | None:
        """Return the journal of a Node; None where it has none.

        Raises:
            BadInput: it cannot be read: somebody else wrote there.
        """
        text = node.annotations.get(GPU_CHANGE)
        if text is None:
            return None
        try:
            return decode(text.encode(), cls)
        except Malformed as error:
            raise BadInput(f"Node {node.name}: annotation {GPU_CHANGE}: {error}") from None

    @property
    def aim(self) -> str:
        """What the label has to say now."""
        return self.target if self.goal == "new" and self.labelled else self.saved

    @property
    def under_way(self) -> bool:
        """Whether the Node is cordoned for it."""
        return self.step in UNDER_WAY

    def stopped_at(self, target: str, config: str) -> bool:
        """Whether it was stopped on the way to this very layout."""
        return self.step == "stopped" and (self.target, self.config) == (target, config)

    def layout(self, allocatable: dict[str, int]) -> Layout | None:
        """Return which layout a Node shows; where both are alike, the one that is wanted."""
        wanted, other = (self.new, self.old) if self.goal == "new" else (self.old, self.new)
        if allocatable == wanted:
            return self.goal
        return ("old" if self.goal == "new" else "new") if allocatable == other else None

    def text(self) -> str:
        """Return it as it is written."""
        return encode(self).decode()
