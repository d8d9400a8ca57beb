"""What fields of Kubernetes objects have in common in drills, whatever their kind."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import parse_quantity, resolve_count
from plimsoll_simulation.declared import QUANTITY_FORM, Declared, Label, Name

type Whole = Annotated[int, Field(ge=0)]
type Positive = Annotated[int, Field(ge=1)]
type Strings = dict[str, str]
type Rolling = Literal["RollingUpdate", "OnDelete"]
type Effect = Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"]


def _amount(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("neither text nor a number")  # noqa: TRY004 - pydantic reports a ValueError
    try:
        negative = parse_quantity(str(value)) < 0
    except BadInput as error:
        raise ValueError(str(error)) from error
    if negative or str(value).startswith(("+", "-")):
        raise ValueError("negative, or with a sign")
    return value


def _pods_or_share(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("neither a number nor text")  # noqa: TRY004 - pydantic reports a ValueError
    try:
        resolve_count(value, 1, round_up=True)
    except BadInput as error:
        raise ValueError(str(error)) from error
    return value


type Amount = Annotated[int | float | str, PlainValidator(_amount), WithJsonSchema(QUANTITY_FORM)]
"""A quantity as it stands in the file: text, or a number."""
type Amounts = dict[str, Amount]
type PodsOrShare = Annotated[
    int | str,
    PlainValidator(_pods_or_share),
    WithJsonSchema(
        {"type": ["integer", "string"], "title": "a number of pods, or a percentage such as 25%"}
    ),
]


def among(names: str) -> AfterValidator:
    """Return the check that a field is one of these, which no drill reads."""
    known = frozenset(names.split())

    def check(name: str) -> str:
        if name not in known:
            raise ValueError("an unknown field")
        return name

    return AfterValidator(check)


class ObjectFields(Declared, use_attribute_docstrings=False):
    """A mapping in a manifest. The reference of Kubernetes describes its fields, and none of ours does."""


class LabelRequirement(ObjectFields):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] | None = None


class LabelSelector(ObjectFields):
    match_labels: Strings | None = None
    match_expressions: tuple[LabelRequirement, ...] | None = None


class Metadata(ObjectFields, extra="allow"):
    """Metadata of an object that has a name."""

    name: Name
    namespace: Label | None = None
    labels: Strings = Field(default_factory=dict)
    annotations: Strings = Field(default_factory=dict)


class KubernetesObject(ObjectFields, extra="allow", defer_build=True):
    """What every kind has. A drill has few of them: a kind is built when the first object of it is read."""

    __pydantic_extra__: dict[Annotated[str, among("status")], Any]
    api_version: str | None = None
    kind: str = ""
    metadata: Metadata
