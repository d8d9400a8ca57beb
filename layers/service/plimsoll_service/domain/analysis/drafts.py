"""Recommendations as an analysis makes them."""

from __future__ import annotations

from hashlib import sha256

from plimsoll_service.domain.analysis.cluster_view import View
from plimsoll_service.wire.advice import About, ContainerRequests, Frees, Kind, Recommendation
from plimsoll_service.wire.documents import shortened


def draft(  # noqa: PLR0913 - the fields of a recommendation
    view: View,
    kind: Kind,
    about: About,
    monthly: float,
    reason: str,
    *,
    patch: str = "",
    executable: bool = False,
    containers: tuple[ContainerRequests, ...] = (),
    measurable: bool = True,
    frees: Frees | None = None,
) -> Recommendation:
    """Return a recommendation that is open, with the id that it has in each run."""
    told = f"{view.seen.cluster_id}/{kind}/{about.uid}"
    return Recommendation(
        id=f"r-{sha256(told.encode()).hexdigest()[:16]}",
        kind=kind,
        about=about,
        reason=shortened(reason, 1000),
        monthly=round(monthly, 2),
        executable=executable,
        patch=patch,
        containers=containers,
        measurable=measurable,
        frees=frees or Frees(),
        since=view.at,
        changed_at=view.at,
    )
