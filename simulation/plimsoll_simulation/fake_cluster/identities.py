"""UIDs and name suffixes, drawn from one seed so that a run can be repeated exactly.

Source of the alphabet: k8s.io/apimachinery/pkg/util/rand (no vowels, no digits that look alike).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from uuid import UUID

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5


class Identities:
    """The one source of chance in a fake cluster."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - a model that must repeat itself, not a secret

    def uid(self) -> str:
        """Return a new UID."""
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        """Return the five characters that follow a generateName."""
        return "".join(self._random.choices(_ALPHABET, k=_SUFFIX))

    def share(self) -> float:
        """Return a number from 0 to below 1."""
        return self._random.random()

    def turned[T](self, items: Sequence[T]) -> Sequence[T]:
        """Return the items in their order, but from another one on."""
        start = self._random.randrange(len(items))
        return [*items[start:], *items[:start]]


def readable(number: int) -> str:
    """Return a hash in the alphabet of suffixes, as a pod-template-hash is written."""
    return "".join(_ALPHABET[int(d) % len(_ALPHABET)] for d in f"{number % 10**10:010d}")
