"""Jobs, bare pods and gangs: told as late as is safe, so that they may finish or checkpoint.

Nothing is planned here. Every pod on an interrupted node is evicted at its eviction deadline, and that is all
that these need.
"""

from __future__ import annotations

from plimsoll.domain.disruptions import Allowance, WorkloadDisruption
from plimsoll.domain.drain.strategies.steps import Steps, Strategy
from plimsoll.domain.kubernetes import in_gang
from plimsoll.domain.scheduling import Headroom


def _why(disruption: WorkloadDisruption) -> str | None:
    if disruption.ref.kind == "Job":
        return "a job may finish or checkpoint"
    if disruption.ref.kind == "Pod":
        return "no controller replaces a bare pod"
    if any(in_gang(one.pod) for one in disruption.evictable):
        return "a gang loses its work with the first of its pods"
    return None


def _steps(disruption: WorkloadDisruption, _headroom: Headroom, _allowance: Allowance) -> Steps:
    if all(d.deadline is None for d in disruption.evictable):
        return Steps(waiting="stays until an interruption with a deadline takes its node")
    return Steps(waiting="evicted at its eviction deadline")


AT_DEADLINE = Strategy(name="late", surges=False, why=_why, steps=_steps)
