"""EC2 Instance Rebalance Recommendation: the instance is likelier than others to be reclaimed.

It may come long before the interruption notice, together with it, or with none following; so it has
no deadline. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, override

from plimsoll.domain.notices.about import About
from plimsoll.domain.notices.decision import Decision, drains
from plimsoll.domain.notices.envelope import Envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceRecommendation(About):
    """EC2 advises to leave a spot instance."""

    kind: ClassVar[str] = "rebalance-recommendation"

    @property
    @override
    def decision(self) -> Decision:
        """A drain that has no end."""
        return drains("likely to be reclaimed: this notice names no deadline")


def parse(event: Envelope) -> tuple[RebalanceRecommendation]:
    """Read the one notice of the event."""
    return (RebalanceRecommendation(**event.about(event.detail["instance-id"].instance())),)
