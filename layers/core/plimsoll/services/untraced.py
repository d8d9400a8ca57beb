"""No traces: what stands for them wherever no layer exports OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Self


class Untraced:
    """Traces of which nothing is kept, and each of their spans."""

    traceparent: Final[str | None] = None
    """There is nothing to continue."""

    def begin(self, *_: object, **__: object) -> Self:
        """Return the same span for all."""
        return self

    def child(self, *_: object, **__: object) -> Self:
        """Return the same span for all."""
        return self

    def note(self, **facts: str) -> None:
        """Forget facts."""

    def link(self, traceparents: Iterable[str | None]) -> None:
        """Link to nothing; what is given is not even iterated."""

    def fail(self, error: Exception) -> None:
        """Forget an error."""

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


UNTRACED: Final = Untraced()
