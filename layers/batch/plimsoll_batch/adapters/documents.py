"""Documents that people write, read into models: every problem is told with its place, in our own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import clip

MOST_PROBLEMS: Final = 20
"""So many are told at once."""


class Strict(BaseModel):
    """Fields in Kubernetes' style; a misspelt one is an error."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=False
    )


def validated[M: BaseModel](model: type[M], document: Any) -> M:
    """Return a document in its model.

    Raises:
        BadInput: names every problem and its place.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        found = [
            f"{'.'.join(map(str, each['loc'])) or 'the file'}: {_words(model, each)}"
            for each in error.errors(include_url=False)
        ]
        raise BadInput(told(found)) from None


def told(problems: Sequence[str]) -> str:
    """Return problems as lines."""
    more = len(problems) - MOST_PROBLEMS
    return "\n".join([*problems[:MOST_PROBLEMS], *([f"and {more} more"] if more > 0 else [])])


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return a hint at what a misspelt word may mean; empty where nothing is near."""
    near = get_close_matches(word, known, n=1)
    return f": did you mean {near[0]}?" if near else ""


type _Problem = Mapping[str, Any]

_KINDS: Final = {
    "dict_type": "an object",
    "model_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
    "string_type": "a text: put it in quotation marks",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "none_required": "left out",
    "timezone_aware": "a time with its zone, such as 2026-11-17T12:00:00Z",
}
"""What a value of another kind must be."""
_BOUNDS: Final[Mapping[str, Callable[[_Problem], str]]] = {
    "enum": lambda said: said["expected"].replace("'", ""),
    "literal_error": lambda said: said["expected"].replace("'", ""),
    "greater_than": lambda said: f"more than {said['gt']}",
    "greater_than_equal": lambda said: f"at least {said['ge']}",
    "less_than": lambda said: f"less than {said['lt']}",
    "less_than_equal": lambda said: f"at most {said['le']}",
    "decimal_max_digits": lambda said: f"a number of at most {said['max_digits']} digits",
    "decimal_max_places": lambda said: f"a number of at most {said['decimal_places']} places",
    "decimal_whole_digits": lambda said: f"a number of at most {said['whole_digits']} whole digits",
    "string_too_short": lambda said: f"a text of at least {said['min_length']} characters",
    "string_too_long": lambda said: f"a text of at most {said['max_length']} characters",
    "string_pattern_mismatch": lambda said: f"a text of the form {said['pattern']}",
}
"""What a value beyond its bounds must be, by the bounds."""


def _words(model: type[BaseModel], problem: Any) -> str:
    kind, about = problem["type"], problem.get("ctx") or {}
    if kind == "missing":
        return "is missing"
    if kind == "value_error":  # raised by a validator of ours, in words
        return str(about["error"])
    if kind == "extra_forbidden":
        *above, name = problem["loc"]
        return f"is no field here{did_you_mean(str(name), _fields_at(model, above))}"
    if kind in {"too_short", "too_long"}:  # of lists and maps
        bound = (
            f"at least {about['min_length']}"
            if kind == "too_short"
            else f"at most {about['max_length']}"
        )
        return f"must have {bound} entries, not {about['actual_length']}"
    if kind in _KINDS:
        must = _KINDS[kind]
    elif kind in _BOUNDS:
        must = _BOUNDS[kind](about)
    else:
        must = f"another value ({kind.replace('_', ' ')})"
    value = problem["input"]
    if isinstance(value, list | tuple | dict):
        value = "an object" if isinstance(value, dict) else "a list"
    return f"must be {must}, not {clip(value)}"


def _fields_at(model: type[BaseModel], place: Sequence[int | str]) -> list[str]:
    """Return the fields of the object at a place; keys of maps and numbers in lists lead no further in."""
    for part in place:
        for name, field in model.model_fields.items():
            if part == (field.alias or name):
                model = _model_in(field.annotation) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation is made of, as in a list of it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    parts = get_args(getattr(annotation, "__value__", annotation))
    return next((found for each in parts if (found := _model_in(each)) is not None), None)
