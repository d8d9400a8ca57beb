"""What Hypothesis draws the domain from: one strategy for each thing, shared by all tests.

Times lie close together and ids come from a small set, so that draws collide: collisions are where
merging can go wrong.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from plimsoll.domain.interruptions import Interruption, marked, merge
from plimsoll.domain.notices import (
    HealthScheduledChange,
    InstanceNotice,
    LifecycleTerminate,
    RebalanceRecommendation,
    SpotInterruption,
    StateChange,
)
from plimsoll.domain.notices.capacity_reservation import CapacityReservationInterruption
from plimsoll.domain.notices.lifecycle import LifecycleLaunch

START = datetime(2026, 11, 17, 14, 0, tzinfo=UTC)
INSTANCE = "i-0b662ef9931388ba0"
NODE = "ip-10-0-1-17.ec2.internal"
ACCOUNT = "111122223333"

moments = st.integers(0, 3600).map(lambda seconds: START + timedelta(seconds=seconds))
"""Within an hour, in whole seconds as EventBridge has them."""

fine_moments = st.timedeltas(timedelta(days=-2000), timedelta(days=4000)).map(START.__add__)
"""Any time, down to microseconds."""

_ids = st.sampled_from([f"e{number}" for number in range(12)])
_about = {
    "instance": st.just(INSTANCE),
    "time": moments,
    "account": st.just(ACCOUNT),
    "region": st.just("us-east-1"),
    "id": _ids,
    "zone": st.sampled_from(["us-east-1a", None]),
}
_hook = {
    "group": st.sampled_from(["spot-a", "spot-b"]),
    "hook": st.sampled_from(["plimsoll-terminate", "logs"]),
    "token": st.sampled_from(["2284b6b4-e931-4540-8abd-7b68f93f28db", None]),
}
_destinations = st.sampled_from(["EC2", "AutoScalingGroup", "WarmPool", None])

spot_interruptions = st.builds(
    SpotInterruption, **_about, action=st.sampled_from(["terminate", "stop", "hibernate"])
)
rebalance_recommendations = st.builds(RebalanceRecommendation, **_about)
lifecycle_terminates = st.builds(LifecycleTerminate, **_about, **_hook, destination=_destinations)
lifecycle_launches = st.builds(LifecycleLaunch, **_about, **_hook)
health_changes = st.builds(
    HealthScheduledChange,
    **_about,
    change=st.sampled_from(["maintenance", "retirement", "other"]),
    code=st.just("AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED"),
    arn=st.sampled_from(["arn:aws:health:us-east-1::event/EC2/A", "arn:aws:health:::event/EC2/B"]),
    starts=st.none() | moments,
    closed=st.booleans(),
)
ending_states = st.builds(
    StateChange,
    **_about,
    state=st.sampled_from(["stopping", "shutting-down", "stopped", "terminated"]),
)
other_states = st.builds(StateChange, **_about, state=st.sampled_from(["pending", "running"]))
capacity_reservation_interruptions = st.builds(
    CapacityReservationInterruption,
    **_about,
    terminates=moments,
    zone_id=st.sampled_from(["use1-az4", None]),
)

interruption_notices: st.SearchStrategy[InstanceNotice] = st.one_of(
    spot_interruptions,
    rebalance_recommendations,
    lifecycle_terminates,
    health_changes,
    ending_states,
    capacity_reservation_interruptions,
)
"""Notices of one instance, each of which opens or changes an interruption."""

instance_notices: st.SearchStrategy[InstanceNotice] = st.one_of(
    interruption_notices, lifecycle_launches, other_states
)


@st.composite
def interruptions(
    draw: st.DrawFn,
    *,
    launched: datetime | None = START,
    times: st.SearchStrategy[datetime] = moments,
    max_notices: int = 6,
) -> Interruption:
    """Draw an interruption of the one instance, with any marks."""
    notices = draw(st.lists(interruption_notices, min_size=1, max_size=max_notices))
    merged: Interruption | None = None
    for notice in notices:
        merged = merge(merged, notice, node=NODE, launched=launched)
    assert merged is not None
    mark = st.none() | times
    return marked(
        merged,
        cordoned=draw(mark),
        emptied=draw(mark),
        gone=draw(mark),
        closed=draw(mark),
    )
