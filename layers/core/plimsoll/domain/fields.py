"""Reading untyped JSON field by field, so that a wrong one can be named.

A missing field is never wrong: each reader has a default. A field of the wrong type always is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from plimsoll.domain.errors import BadInput
from plimsoll.domain.quantities import Resources

_NO_PAIRS: Mapping[str, Any] = {}


class Field:
    """A value in a JSON document, and the way to it. The way is spelt only when it is needed."""

    __slots__ = ("_name", "_parent", "value")

    def __init__(self, value: Any, name: str = "", parent: Field | None = None) -> None:
        self.value = value
        self._name = name
        self._parent = parent

    def __getitem__(self, key: str) -> Self:
        return type(self)(self._mapping().get(key), key, self)

    def __bool__(self) -> bool:
        return bool(self.value)

    @property
    def path(self) -> str:
        """The way to this field, such as `spec.containers[0].resources`."""
        before = self._parent.path if self._parent is not None else ""
        dot = "." if before and not self._name.startswith("[") else ""
        return f"{before}{dot}{self._name}"

    def wrong(self, expected: str) -> BadInput:
        """Return the error that this field is not what it should be."""
        return BadInput(f"{self.path or 'the object'}: found {self.value!r:.80}, want {expected}")

    def each(self) -> Iterator[Self]:
        """Yield the entries of a list; a missing one has none."""
        if self.value is None:
            return
        if not isinstance(self.value, list | tuple):
            raise self.wrong("a list")
        for index, item in enumerate(self.value):
            yield type(self)(item, f"[{index}]", self)

    def text(self, default: str = "") -> str:
        """Return a string."""
        if self.value is None:
            return default
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        return self.value

    def whole(self, default: int = 0) -> int:
        """Return a whole number."""
        if self.value is None:
            return default
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong("a whole number")
        return self.value

    def flag(self, *, default: bool = False) -> bool:
        """Return true or false."""
        if self.value is None:
            return default
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def count_or_share(self) -> int | str | None:
        """Return a number or a percentage such as "25%"; None where it is missing."""
        match self.value:
            case None:
                return None
            case bool():
                raise self.wrong("a whole number or a percentage")
            case int():
                return self.value
            case str() if self.value.removesuffix("%").isdigit():
                return self.value if self.value.endswith("%") else int(self.value)
            case _:
                raise self.wrong("a whole number or a percentage")

    def texts(self) -> tuple[str, ...]:
        """Return a list of strings."""
        return tuple(item.text() for item in self.each())

    def pairs(self) -> Mapping[str, str]:
        """Return a copy of a mapping of strings to strings, as labels and annotations are."""
        pairs = dict(self._mapping())
        for key, value in pairs.items():
            if not isinstance(value, str):
                raise self[key].wrong("a string")
        return pairs

    def resources(self, *, pods: int = 0) -> Resources:
        """Return a resource list; `pods` is used where it names none."""
        amounts = self._mapping()
        for key, value in amounts.items():
            if not isinstance(value, str | int | float) or isinstance(value, bool):
                raise self[key].wrong("a quantity")
        try:
            return Resources.parse(amounts, pods=pods)
        except BadInput as error:
            raise BadInput(f"{self.path}: {error}") from error

    def _mapping(self) -> Mapping[str, Any]:
        if self.value is None:
            return _NO_PAIRS
        if not isinstance(self.value, Mapping):
            raise self.wrong("a mapping")
        return self.value
