"""Times as Kubernetes writes them: whole seconds for metav1.Time, microseconds for Leases.

Everything finer is lost in an object, as in the real thing; what must be exact (when a pod is
killed, when it is Ready) is kept beside the objects, in timers.

Source: https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#Time
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=4096)
def stamp(moment: datetime) -> str:
    """Return a moment as metav1.Time is written: whole seconds, cut off, in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=4096)
def moment(text: str) -> datetime:
    """Read what `stamp` wrote, and MicroTime."""
    return datetime.fromisoformat(text)
