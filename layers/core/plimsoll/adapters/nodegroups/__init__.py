from __future__ import annotations

from plimsoll.adapters.nodegroups.groups import KINDS, AwsNodeGroups

__all__ = ["KINDS", "AwsNodeGroups"]
