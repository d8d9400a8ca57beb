"""What is kept of the advice about a cluster: the documents `savings` and `recommendations`."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.advice import Recommendations

SAVINGS: Final = "savings"
RECOMMENDATIONS: Final = "recommendations"


def recommendations(data: TenantData, cluster: str) -> Recommendations:
    """Return the recommendations of a cluster, the one that saves most first."""
    kept, _ = read_recommendations(data, cluster)
    found = sorted(kept.recommendations, key=lambda each: (-each.monthly, each.id))
    return replace(kept, recommendations=tuple(found))


def read_recommendations(data: TenantData, cluster: str) -> tuple[Recommendations, int]:
    """Return what is kept, and the version of its document."""
    found, version = stored(data, cluster, RECOMMENDATIONS, Recommendations)
    return found or Recommendations(recommendations=()), version
