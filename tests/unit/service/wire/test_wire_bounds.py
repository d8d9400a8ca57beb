"""Every document that is stored or sent: what its reader would refuse is not written, and what it takes is.

The values are made from the types themselves, so that a field which is added is held to it from its first day.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import inspect

from plimsoll_agent import gpu_journal, journal
from plimsoll_cli.service import login
from plimsoll_service.domain.advice import AdviceRequest, LastAdvice
from plimsoll_service.domain.snapshots import Arrival, Newest, Rollup
from plimsoll_service.services import gpu_history, instructions
from plimsoll_service.wire import access, advice, gpu, gpu_plan, snapshot, taints, views
from plimsoll_service.wire import instructions as wire_instructions
from plimsoll_service.wire.documents import Unwritable, decode, encode

MODULES = (access, advice, gpu, gpu_plan, wire_instructions, snapshot, taints, views)
STORED = (
    Arrival,
    AdviceRequest,
    LastAdvice,
    Newest,
    Rollup,
    gpu_history._Day,
    instructions._Issued,
    gpu_journal.GpuChange,
    journal.Journal,
    login.Login,
)
"""Documents beside the wire that are kept: by the service, by the agent in the cluster, by a person's machine."""


MANY = 4
"""Items of a list of texts or numbers."""
LONG = 5000
"""Longer lists are tried in `test_service_wire`."""


def documents() -> list[type]:
    of_wire = {
        found
        for module in MODULES
        for found in vars(module).values()
        if isinstance(found, type)
        and issubclass(found, msgspec.Struct)
        and found.__module__ == module.__name__
        and found.__name__ not in {"Part", "_Part"}
    }
    return sorted({*of_wire, *STORED}, key=lambda kind: (kind.__module__, kind.__name__))


def at_bound(kind: Any) -> Any:  # noqa: C901, PLR0911, PLR0912 - one line for each kind of type
    """Return the largest JSON value that a field takes; a list of parts has as few of them as it may."""
    match kind:
        case inspect.Metadata(type=its):
            return at_bound(its)
        case inspect.StrType():
            return text(kind)
        case inspect.BytesType():
            return b64encode(bytes(kind.max_length or 30)).decode()
        case inspect.IntType():
            return kind.le if kind.le is not None else 2**53
        case inspect.FloatType():
            return 1e300
        case inspect.BoolType():
            return True
        case inspect.DateTimeType():
            return "9999-12-31T23:59:59.999999Z"
        case inspect.DateType():
            return "9999-12-31"
        case inspect.LiteralType(values=values):
            return values[-1]
        case inspect.EnumType(cls=cls):
            return max(each.value for each in cls)
        case inspect.DictType():
            return {at_bound(kind.key_type): at_bound(kind.value_type)}
        case inspect.VarTupleType() | inspect.ListType() | inspect.FrozenSetType():
            is_part = isinstance(kind.item_type, inspect.StructType)
            most = max(kind.min_length or 1, 1 if is_part else min(kind.max_length or 1, MANY))
            return [at_bound(kind.item_type)] * most
        case inspect.TupleType(item_types=items):
            return [at_bound(each) for each in items]
        case inspect.UnionType(types=types):
            return at_bound(next(each for each in types if not isinstance(each, inspect.NoneType)))
        case inspect.StructType() | inspect.DataclassType():
            fields = {each.encode_name: at_bound(each.type) for each in kind.fields}
            is_array = isinstance(kind, inspect.StructType) and kind.array_like
            return list(fields.values()) if is_array else fields
        case inspect.NoneType():
            return None
        case _:
            raise AssertionError(f"{kind} is not known here")


def text(kind: inspect.StrType) -> str:
    """Return the longest text that a field takes."""
    most = kind.max_length or 64
    tries = ("a" * most, "0" * most, "a" * 63, "x://" + "a" * (most - 4), "9" * 9 + "%", "f" * 360)
    instance = "i-0123456789abcdef0"
    volume = "vol-" + "0" * 40
    sha = "f" * 64
    for each in (*tries, sha, instance, volume, "A" * most):
        try:
            msgspec.convert(each, rebuilt(kind))
        except msgspec.ValidationError:
            continue
        return each
    raise AssertionError(f"no text is known that {kind} takes")


def rebuilt(kind: inspect.StrType) -> Any:
    return Annotated[
        str,
        msgspec.Meta(min_length=kind.min_length, max_length=kind.max_length, pattern=kind.pattern),
    ]


@cache
def whole(kind: type) -> Any:
    """Return a document at its bounds."""
    return decode(msgspec.json.encode(at_bound(inspect.type_info(kind))), kind)


@pytest.mark.parametrize("kind", documents(), ids=lambda kind: kind.__name__)
def test_at_its_bounds_a_document_is_written_and_read_back(kind: type):
    assert decode(encode(whole(kind)), kind) == whole(kind)


def bounded(kind: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the fields of a document that have a bound, by their place, with a value beyond it."""
    match kind:
        case inspect.StrType() if kind.max_length or kind.pattern or kind.min_length:
            yield place, "x" * (kind.max_length + 1) if kind.max_length else "; \x1b]52;c;\n"
            if kind.pattern:
                yield place, "a && b"
        case inspect.IntType() if kind.le is not None or kind.ge is not None:
            yield place, (kind.ge or 0) - 1 if kind.le is None else kind.le + 1
        case inspect.FloatType():
            yield place, float("nan")
        case inspect.StructType() if (
            not place
        ):  # those inside are documents of this list themselves
            for each in kind.fields:
                yield from bounded(each.type, (each.name,))
        case inspect.VarTupleType():
            if kind.max_length is not None and kind.max_length <= LONG:
                yield place, kind.max_length + 1
            yield from bounded(kind.item_type, (*place, 0))
        case _:
            return


def broken(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    """Return a document with another value at one place, as code of ours that errs would make it."""
    match place:
        case ():
            return document[:1] * value if isinstance(document, tuple) else value
        case (int(), *rest):
            return (broken(document[0], tuple(rest), value), *document[1:])
        case (name, *rest):
            its = broken(getattr(document, name), tuple(rest), value)
            return msgspec.structs.replace(document, **{name: its})
        case _:
            raise AssertionError(place)


CASES = [
    (kind, place, value)
    for kind in documents()
    if issubclass(kind, msgspec.Struct)
    for place, value in bounded(inspect.type_info(kind))
]


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    CASES,
    ids=[
        f"{kind.__name__}.{'.'.join(map(str, place))}-{n}"
        for n, (kind, place, _) in enumerate(CASES)
    ],
)
def test_beyond_a_bound_it_is_not_written(kind: type, place: tuple[Any, ...], value: Any):
    with pytest.raises(Unwritable, match=kind.__name__):
        encode(broken(whole(kind), place, value))
