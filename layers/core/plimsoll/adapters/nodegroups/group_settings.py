"""What the owners of Auto Scaling groups say of them: tags, and processes that they suspended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from plimsoll.adapters.nodegroups import asg
from plimsoll.adapters.nodegroups.account import Account
from plimsoll.domain.doctor.facts import GroupSettings
from plimsoll.domain.groups import NodeGroup

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws
    from plimsoll.services.ports import Clock


class AwsGroupSettings:
    """Implements `plimsoll.services.doctor.GroupSettingsReader`."""

    def __init__(self, aws: Aws, clock: Clock) -> None:
        self._account = Account(aws, clock)

    def read(self, groups: Sequence[NodeGroup]) -> Mapping[str, GroupSettings]:
        """Return the marks of those that are Auto Scaling groups, by name."""
        names = [group.name for group in groups if group.kind == asg.NAME]
        return {
            name: GroupSettings(
                tags=asg.tags_of(found),
                suspended=frozenset(p["ProcessName"] for p in found.get("SuspendedProcesses", ())),
            )
            for name, found in self._account.auto_scaling_groups(names).items()
        }
