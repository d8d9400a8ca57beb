"""What is kept of the advice about a cluster: the documents `savings` and `recommendations`."""

from __future__ import annotations

from typing import Final

from plimsoll_service.services.ports import TenantData
from plimsoll_service.services.stored import stored
from plimsoll_service.wire.advice import Recommendations

SAVINGS: Final = "savings"
RECOMMENDATIONS: Final = "recommendations"
ATTEMPTS: Final = 3
"""How often a run, or a decision, is tried while others write about its cluster."""


def read_recommendations(data: TenantData, cluster: str) -> tuple[Recommendations, int]:
    """Return the recommendations of a cluster, and the version of its document."""
    found, version = stored(data, cluster, RECOMMENDATIONS, Recommendations)
    return found or Recommendations(recommendations=()), version
