from __future__ import annotations

from plimsoll.adapters.nodegroups.groups import ASKED, CALLS, KINDS, AwsNodeGroups

__all__ = ["ASKED", "CALLS", "KINDS", "AwsNodeGroups"]
