"""What became of the launches of Auto Scaling groups, as their scaling activities tell.

They are read only while nodes are on the way: it takes a call for each group.
https://docs.aws.amazon.com/autoscaling/ec2/userguide/CHAP_Troubleshooting.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypedDict

from plimsoll.adapters.nodegroups.kind import Warn
from plimsoll.adapters.nodegroups.refusals import of_activity, of_health
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.kubernetes import Node
from plimsoll.domain.node_groups import Refusal

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.adapters.nodegroups.account import Account

_LAUNCH: Final = re.compile(
    r"Launching a new EC2 instance(?! into warm pool)(?: from warm pool)?(?:: (i-[0-9a-f]+))?"
)
"""An instance that only joins the warm pool is none of the group yet."""
_SIZE: Final = re.compile(r"increasing the capacity from \d+ to (\d+)")
"""In the cause of a launch: how many instances the group was to have."""


class Launches(TypedDict):
    """The fields of a `NodeGroup` that activities tell."""

    asked: datetime | None
    launched: Mapping[str, datetime]
    refusals: tuple[Refusal, ...]


def launches_of(  # noqa: PLR0913 - what is known of a group, each part named
    account: Account,
    groups: Sequence[Mapping[str, Any]],
    desired: int,
    nodes: Sequence[Node],
    warn: Warn,
    *,
    health: Sequence[Mapping[str, Any]] = (),
) -> Launches:
    """Return the latest launches of the Auto Scaling groups behind one node group.

    What cannot be read tells nothing: what was asked for is then expected for as long as it takes.

    Args:
        account: where the groups are.
        groups: as Auto Scaling describes them.
        desired: how many nodes they are to have.
        nodes: those of the cluster.
        warn: called with what could not be read.
        health: what EKS says of the node group's health. It does not say since when, so it counts only where there is
            no Auto Scaling group whose activities tell what became of the newest request.
    """
    ready = {n.instance for n in nodes if n.ready}
    here = sum(i["InstanceId"] in ready for group in groups for i in group.get("Instances", ()))
    launched: dict[str, datetime] = {}
    asked = None
    refusals: list[Refusal] = []
    for group in groups if here < desired else ():
        try:
            found = account.activities(group["AutoScalingGroupName"])
        except PlimsollError as error:
            warn(str(error))
            continue
        # If a node group has several Auto Scaling groups, none of them has the size of the node group.
        if len(groups) == 1:
            asked = _tried(found, desired)
        for activity in found:
            launch = _LAUNCH.match(activity.get("Description", ""))
            if launch and launch[1]:
                launched[launch[1]] = activity["StartTime"]
            if launch and activity.get("StatusCode") == "Failed":
                refusals.append(of_activity(activity))
    if here < desired and not groups:
        refusals += of_health(health, account.now())
    return Launches(asked=asked, launched=launched, refusals=_newest(refusals))


def _tried(activities: Sequence[Mapping[str, Any]], desired: int) -> datetime | None:
    """Return when a group last tried to have what it is to have, if its newest activity says that it did.

    This may be long ago: after failures Auto Scaling pauses for longer and longer.
    """
    size = _SIZE.search(activities[0].get("Cause", "")) if activities else None
    return activities[0]["StartTime"] if size and int(size[1]) >= desired else None


def _newest(refusals: Sequence[Refusal]) -> tuple[Refusal, ...]:
    """Return the newest refusal of each kind, zone and instance type, the newest of all first."""
    found: dict[tuple[str, str | None, str | None], Refusal] = {}
    # The newest first: `setdefault` keeps the first of each kind.
    for refusal in sorted(refusals, key=lambda r: r.at, reverse=True):
        found.setdefault((refusal.kind, refusal.zone, refusal.instance_type), refusal)
    return tuple(found.values())
