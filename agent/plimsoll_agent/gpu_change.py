"""What to do next about a Node whose GPUs are to be split anew. Pure: the Node, its journal and the time decide.

NVIDIA's mig-manager evicts nobody and leaves a Node without its device plugin after a failure, also when the
old label is put back and it reports success. So a Node is empty before a label is written, what is paused is
put right before anything else, and a Node leaves its cordon only while it shows the GPUs that it should.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, assert_never

from msgspec.structs import replace

from plimsoll.domain.interruptions import Policy
from plimsoll.domain.kubernetes import MIG_STATE, Node
from plimsoll.domain.observation import why_drained
from plimsoll_agent.gpu_journal import GpuChange, Layout, Step
from plimsoll_service.wire.gpu_plan import PLUGIN_CONFIG
from plimsoll_service.wire.taints import FORWARDED

PAUSED: Final = "paused-for-mig-change"
"""The value by which mig-manager sends a DaemonSet of the GPU Operator away from a Node."""
DEPLOY: Final = "nvidia.com/gpu.deploy."
NVIDIA: Final = "nvidia.com/"
_ENDED: Final = frozenset({None, "success"})
_BUSY: Final = frozenset({"pending", "rebooting"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long each part may take."""

    empties: timedelta = timedelta(minutes=30)
    """From the cordon to no pod with a GPU."""
    begins: timedelta = timedelta(seconds=60)
    """From the label until mig-manager begins."""
    changes: timedelta = timedelta(minutes=30)
    """From the label to its end: up to five waits of five minutes stand in mig-manager's source."""
    reboots: timedelta = timedelta(minutes=45)
    """The same, where the Node reboots."""
    settles: timedelta = timedelta(minutes=5)
    """From its end until the Node shows its GPUs."""
    steady: timedelta = timedelta(seconds=60)
    """For so long it shows them without a break before that is believed."""


LIMITS: Final = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A Node and the pods on it, as they are now."""

    node: Node
    change: GpuChange | None = None
    holders: tuple[str, ...] = ()
    """Pods on it that hold GPUs, terminating ones included."""

    @property
    def state(self) -> str | None:
        """What mig-manager says."""
        return self.node.labels.get(MIG_STATE)

    @property
    def paused(self) -> tuple[str, ...]:
        """Labels by which DaemonSets of the GPU Operator are kept away."""
        labels = self.node.labels.items()
        return tuple(k for k, v in labels if k.startswith(DEPLOY) and v == PAUSED)

    @property
    def gpus(self) -> dict[str, int]:
        """The GPUs that pods can have, by resource."""
        amounts = self.node.allocatable.extended
        return {name: n for name, n in amounts if name.startswith(NVIDIA) and n > 0}

    def unsteady(self, expected: Mapping[str, int]) -> str | None:
        """Return why it is not in order with these GPUs."""
        if not self.node.ready:
            return "it is not Ready"
        if self.paused:
            return f"{self.paused[0]} is {PAUSED}"
        if self.state not in _ENDED:
            return f"{MIG_STATE} is {self.state}"
        if self.gpus != expected:
            return f"it shows {_words(self.gpus)} and not {_words(expected)}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Do nothing now."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Release pods of the Node, and evict those whose replacements are Ready."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Patch the Node: the journal, and what it tells of."""

    change: GpuChange
    labels: Mapping[str, str] | None = None
    unschedulable: bool | None = None
    """None: the cordon stays as it is."""

    @property
    def alert(self) -> bool:
        """Whether a person is asked to look."""
        return self.change.step == "alert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """Undo the releases of the Node's pods, and then write."""

    write: Write


type NextStep = Wait | Release | Write | Undo


def interrupted(node: Node) -> str | None:
    """Return what takes a Node away, which comes first."""
    if node.interruption is not None or node.newer_record:
        return "it is interrupted"
    if (by := why_drained(node, Policy())) is not None:
        return f"it is being taken away by {by}"
    handled = [taint.key for taint in node.taints if taint.key in FORWARDED]
    return f"it has the taint {handled[0]}" if handled else None


def next_step(
    look: Look, change: GpuChange, against: str | None, now: datetime, limits: Limits = LIMITS
) -> NextStep:
    """Decide about a Node whose change is under way.

    Args:
        look: the Node as it is now.
        change: its journal.
        against: why the plan, as it is now, no longer asks for this change.
        now: the time of the look.
        limits: how long each part may take.
    """
    # Checked before the step: an interrupted Node belongs to its drain.
    if (why := interrupted(look.node)) is not None:
        return Wait(reason=f"{why}, which comes first")
    found = _Decision(look=look, change=change, now=now, limits=limits)
    step: NextStep
    match change.step:
        case "emptying":
            step = found.emptying(against)
        case "labelled":
            step = found.foreign() or found.labelled()
        case "changing":
            step = found.foreign() or found.changing()
        case "checking":
            step = found.foreign() or found.checking()
        case "alert":
            step = found.alerted()
        case "done" | "undone" | "stopped":
            step = Wait(reason=change.reason)
        case never:
            assert_never(never)
    return step


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    look: Look
    change: GpuChange
    now: datetime
    limits: Limits

    @property
    def label(self) -> str | None:
        return self.look.node.labels.get(self.change.label)

    def since(self, limit: timedelta) -> bool:
        return self.now - self.change.since >= limit

    @property
    def overdue(self) -> bool:
        limit = self.limits.reboots if self.change.rebooted else self.limits.changes
        return self.now - (self.change.labelled or self.change.begun) >= limit

    @property
    def busy(self) -> bool:
        """Whether mig-manager works, or the Node reboots."""
        return self.look.state in _BUSY or not self.look.node.ready

    def foreign(self) -> Write | None:
        """Leave to its author what somebody else did meanwhile, and stay cordoned."""
        if not self.look.node.unschedulable:
            return self.alert("somebody uncordoned it while its GPUs change", final=True)
        if self.label != self.change.aim:
            return self.alert(
                f"somebody set {self.change.label} to {self.label}: finish by hand", final=True
            )
        return None

    def emptying(self, against: str | None) -> NextStep:
        change, look = self.change, self.look
        if not look.node.unschedulable:
            return Undo(write=self.to("stopped", reason="somebody uncordoned it"))
        # Checked before the time: the agent never overwrites a
        # label that somebody else set, however late the change is.
        if self.label != change.saved:
            return self.alert(
                f"somebody set {change.label} to {self.label}: finish by hand", final=True
            )
        unsteady = look.unsteady(change.old)
        why = against
        if why is None and self.since(self.limits.empties):
            stands = f"{look.holders[0]} holds GPUs" if look.holders else unsteady
            why = f"{stands} after {self.limits.empties}" if stands else None
        if why is not None:
            return self.undo(why, unsteady)
        if look.holders:
            return Release(reason=f"{look.holders[0]} holds GPUs")
        if unsteady is not None:
            return Wait(reason=unsteady)
        return self.to("labelled", labels={change.label: change.target}, labelled=self.now)

    def undo(self, why: str, unsteady: str | None) -> NextStep:
        """Let pods come again, where the Node shows the GPUs that it had."""
        if unsteady is None:
            return Undo(write=self.to("undone", reason=why, unschedulable=False))
        if self.since(self.limits.empties):
            return self.alert(f"{why}, and {unsteady}", final=True)
        return Wait(reason=f"{why}, and {unsteady}")

    def labelled(self) -> NextStep:
        change, look = self.change, self.look
        if self.busy or look.paused:
            return self.to("changing")
        back = change.goal == "old"
        answered = look.state == "success" if back else look.state == "failed"
        moved = not back and look.gpus != change.old
        if answered or moved or change.label == PLUGIN_CONFIG:
            return self.to("checking")
        if not self.since(self.limits.begins):
            return Wait(reason="mig-manager has not begun")
        if back:
            return self.to("checking")
        return self.back(f"mig-manager has not begun within {self.limits.begins}")

    def changing(self) -> NextStep:
        look = self.look
        if not self.busy:
            return self.to("checking")
        if self.overdue:
            return self.to("checking", late=True)
        if not self.change.rebooted and (look.state == "rebooting" or not look.node.ready):
            return self.to("changing", rebooted=True)
        return Wait(reason=f"{MIG_STATE} is {look.state}" if look.node.ready else "it is not Ready")

    def checking(self) -> NextStep:
        change, look = self.change, self.look
        if self.busy and not (change.late or self.overdue):
            return self.to("changing")
        if look.paused and not self.since(self.limits.settles):
            return self.unpause()
        found = change.layout(look.gpus) if look.node.ready and not look.paused else None
        flaps = found is None and self.since(self.limits.settles)
        ended = not self.failed
        if (found, ended) != (change.found, change.ended) and not flaps:
            return self.to(
                "checking", since=change.since, found=found, ended=ended, found_since=self.now
            )
        return self.judge(found)

    def judge(self, found: Layout | None) -> NextStep:
        """Put a Node back into service once it shows a layout for long enough; else say what it lacks."""
        change = self.change
        ended = f"it shows {_words(self.look.gpus)}, and {MIG_STATE} is {self.look.state}"
        expired = self.since(self.limits.settles)
        shown = self.now - (change.found_since or self.now)
        # Both have to agree, the GPUs that the Node shows and the state:
        # mig-manager may report success on a Node without its device plugin.
        good = found == change.goal and not self.failed
        returns = found == "old" and change.goal == "new" and (expired or self.failed)
        if good and shown >= self.limits.steady:
            return self.to("done" if change.goal == "new" else "stopped", unschedulable=False)
        if returns and shown >= self.limits.steady:
            return self.back(ended)
        if expired and not good and not returns:
            return self.alert(f"{ended} where {_words(self.wanted)} should be")
        return Wait(reason=ended)

    @property
    def failed(self) -> bool:
        """Whether mig-manager says so, or never ended."""
        return self.look.state not in _ENDED

    @property
    def wanted(self) -> Mapping[str, int]:
        return self.change.new if self.change.goal == "new" else self.change.old

    def alerted(self) -> NextStep:
        """Try once to return to the old layout."""
        change, look = self.change, self.look
        if not look.node.unschedulable:
            return self.to("stopped", reason=f"somebody uncordoned it: {change.reason}")
        if change.final or self.label != change.aim or not look.node.ready:
            return Wait(reason=change.reason)
        return self.unpause() if look.paused else self.back(change.reason)

    def back(self, why: str) -> NextStep:
        """Write the old label again: nobody's pod may stand there, and nothing may be paused."""
        change = self.change
        # mig-manager evicts no pod, so the Node must have no pod with a GPU when the label is written.
        if self.look.holders or self.look.state == "rebooting":
            stands = self.look.holders[0] if self.look.holders else "a reboot"
            if change.step == "alert" or not self.since(self.limits.settles):
                return Wait(reason=f"{why}, and {stands} stands in the way of {change.saved}")
            return self.alert(f"{why}, and {stands} stands in the way of {change.saved}")
        return self.to(
            "labelled",
            labels={change.label: change.saved},
            labelled=self.now,
            goal="old",
            reason=why,
            rebooted=False,
            late=False,
            found=None,
            found_since=None,
        )

    def unpause(self) -> Write:
        return Write(change=self.change, labels=dict.fromkeys(self.look.paused, "true"))

    def alert(self, why: str, *, final: bool = False) -> Write:
        final = final or self.change.goal == "old"
        return self.to("alert", reason=why, final=final)

    def to(
        self,
        step: Step,
        *,
        labels: Mapping[str, str] | None = None,
        unschedulable: bool | None = None,
        **changes: Any,
    ) -> Write:
        changed = replace(self.change, **{"step": step, "since": self.now} | changes)
        return Write(change=changed, labels=labels, unschedulable=unschedulable)


def _words(gpus: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(gpus.items())) or "no GPUs"
