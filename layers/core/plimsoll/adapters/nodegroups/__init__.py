from __future__ import annotations

from plimsoll.adapters.nodegroups.groups import CALLS, KINDS, AwsNodeGroups

__all__ = ["CALLS", "KINDS", "AwsNodeGroups"]
