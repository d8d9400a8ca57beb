"""What a file declares: the base of its models, the types of their fields, and what contradicts itself.

A model is at once the type that a drill works with, the check of what stands in a file, and the
source of the JSON Schema and of the reference: its docstrings are the descriptions there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)
from pydantic.alias_generators import to_camel

type FieldPath = tuple[str | int, ...]

type Label = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
        title="at most 63 lower-case letters, digits and -, beginning and ending with a letter or digit",
    ),
]
"""A DNS label: a name of which no part is cut off where it becomes part of another."""
type Name = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
        title="lower-case letters, digits, - and ., beginning and ending with a letter or digit",
    ),
]
"""A DNS subdomain: the name of most objects."""
type Word = Annotated[str, Field(min_length=1, max_length=253)]

_NUMBER = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?"
QUANTITY_FORM = {
    "type": ["string", "number"],
    "title": "a Kubernetes quantity such as 500m, 2 or 1.5Gi",
    "minimum": 0,
    "pattern": f"^{_NUMBER}$",
}


def _text(value: Any) -> Any:
    return str(value) if type(value) in {int, float} else value


type Quantity = Annotated[
    str, BeforeValidator(_text), Field(pattern=f"^{_NUMBER}$"), WithJsonSchema(QUANTITY_FORM)
]
"""An amount of a resource, as text also where the file has a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """What is wrong with values that are each sound. All but the paths are phrases, without a full stop."""

    path: FieldPath
    """The field that is named, from the model that was asked."""
    found: str
    allowed: str
    cure: str
    first: FieldPath | None = None
    """Where the same stood before."""

    def under(self, *outer: str | int) -> Self:
        """Return it as a model says it that holds the one asked."""
        first = None if self.first is None else (*outer, *self.first)
        return replace(self, path=(*outer, *self.path), first=first)


def repeated(field: str, names: Sequence[str], what: str, *inner: str) -> Iterator[Contradiction]:
    """Yield the names that stand twice among the items of a list.

    Args:
        field: the list.
        names: of its items.
        what: they are, in words.
        inner: the way from an item to what holds its name.
    """
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if first.setdefault(name, i) != i:
            yield Contradiction(
                path=(field, i, *inner, "name"),
                found=f"the {what} {name} again",
                allowed="each name once",
                cure="Rename one of the two",
                first=(field, first[name], *inner, "name"),
            )


class Declared(BaseModel):
    """A mapping in a file: names in camelCase, no unknown fields, no nulls, nothing converted."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_name=True,
        use_attribute_docstrings=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _given(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None and info.context is not None:
            raise ValueError("a file leaves a field out, and gives it no null")
        return tuple(value) if isinstance(value, list) else value

    def contradictions(self) -> Iterator[Contradiction]:
        """Yield what its fields say against each other."""
        yield from ()
