"""What Hypothesis draws storms from: the same choices as a seed makes, which it can make smaller."""

from __future__ import annotations

from hypothesis import strategies as st

from plimsoll_testbed.storms import Storm, storm_by
from plimsoll_testbed.storms.draw_clusters import draw_groups
from plimsoll_testbed.storms.draw_timelines import draw_fault, draw_timeline
from plimsoll_testbed.storms.draw_workloads import draw_workloads
from plimsoll_testbed.storms.model import Group
from plimsoll_testbed.storms.timeline import Event, Fault
from plimsoll_testbed.storms.workload import Workload

choices = st.randoms(use_true_random=False)
"""A `random.Random` whose every answer is Hypothesis' own."""


@st.composite
def clusters(draw: st.DrawFn, *, small: bool = True) -> tuple[Group, ...]:
    """Draw the node groups of a cluster."""
    return draw_groups(draw(choices), small=small)


@st.composite
def workloads(
    draw: st.DrawFn, groups: tuple[Group, ...], *, small: bool = True
) -> tuple[Workload, ...]:
    """Draw workloads that fit on these groups."""
    return draw_workloads(draw(choices), groups, small=small)


@st.composite
def faults(draw: st.DrawFn, groups: tuple[Group, ...]) -> Fault:
    """Draw something that is broken for a while."""
    return draw_fault(draw(choices), groups)


@st.composite
def timelines(
    draw: st.DrawFn,
    groups: tuple[Group, ...],
    runs: tuple[Workload, ...],
    *,
    small: bool = True,
) -> tuple[Event, ...]:
    """Draw what happens to a cluster and what runs there."""
    return draw_timeline(draw(choices), groups, runs, small=small)


@st.composite
def storms(draw: st.DrawFn, *, small: bool = True) -> Storm:
    """Draw a whole storm."""
    return storm_by(draw(choices), seed=draw(st.integers(0, 999)), small=small)
