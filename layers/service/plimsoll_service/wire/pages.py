"""A page of a list: the part that all lists of `/v1` have in common."""

from __future__ import annotations

from msgspec import Struct

from plimsoll_service.wire.documents import Time


class Page(Struct, frozen=True, kw_only=True):
    """A page of a list. Each list adds `items`, in its own order."""

    next: str | None = None
    """Give it as `after` to read on; None: nothing follows."""
    as_of: Time
    """When the service read the list."""
