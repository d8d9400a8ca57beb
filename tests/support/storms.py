"""Storms of a few lines, and those that Hypothesis draws: by the same code as seeds are drawn."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from plimsoll_simulation.fake_aws.nodegroups import NodeGroupSpec
from plimsoll_simulation.scenario.timeline import NoticeEntry
from plimsoll_simulation.storms import Storm, storm_by
from plimsoll_simulation.storms.workload import Workload


@st.composite
def storms(draw: st.DrawFn, *, small: bool = True) -> Storm:
    """Draw a whole storm."""
    rnd = draw(st.randoms(use_true_random=False))
    return storm_by(rnd, seed=draw(st.integers(0, 999)), small=small)


def a_batch(group: str, count: int, **changes) -> NoticeEntry:
    batch = {"at": "10s", "notice": "spot-interruption", "nodes": {"group": group, "count": count}}
    return NoticeEntry.model_validate(batch | changes)


def a_group(name: str, capacity: str, size: int = 1) -> NodeGroupSpec:
    return NodeGroupSpec.model_validate(
        {
            "name": name,
            "capacity": capacity,
            "kind": "asg",
            "instanceType": f"{name}.xlarge",
            "zones": ["us-east-1a"],
            "size": size,
            "max": 4,
            "startup": "30s",
            "allocatable": {"cpu": "2", "memory": "16Gi"},
        }
    )


WEB = Workload(
    kind="Deployment",
    name="web",
    replicas=2,
    cpu=450,
    grace_seconds=30,
    stop_seconds=3,
    startup_seconds=5,
)


def a_storm(**changes) -> Storm:
    """A spot node with one of two pods, beside an on-demand node with headroom."""
    storm = Storm(
        seed=1,
        groups=(a_group("base", "on-demand"), a_group("spot-1", "spot")),
        workloads=(WEB,),
        events=(a_batch("spot-1", 1),),
    )
    return replace(storm, **changes)
