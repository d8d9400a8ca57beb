"""Objects out of JSON, by `plimsoll.adapters.kubernetes.schema`: in full, or as an error that names the field.

API servers write what an object needs and leave out the rest, and that is decoded at once. What is
written otherwise, with nulls or without a spec or status, is put into that form first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from functools import cache, wraps
from threading import Lock
from typing import Any, Final, cast

import msgspec
from msgspec import Raw

from plimsoll.domain.errors import BadInput

type Json = Mapping[str, Any]

SAID_CHARACTERS: Final = 300
"""Characters that are kept of what an object says in words, and of a complaint about it."""
_AT: Final = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)
"""How the decoder says where what is wrong."""
_BROKEN: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
_PARTS: Final[dict[str, object]] = {"metadata": {}, "spec": {}, "status": {}}


def raw(obj: Json | Raw) -> Raw:
    """Return an object's JSON.

    Raises:
        BadInput: it cannot be written as JSON.
    """
    if isinstance(obj, Raw):
        return obj
    try:
        return Raw(msgspec.json.encode(obj))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadInput(f"is no JSON: {error}") from None


def decoded[T: msgspec.Struct](obj: Raw, kind: type[T]) -> T:
    """Return the fields of an object that are read.

    Raises:
        BadInput: one is wrong; the message names it.
    """
    try:
        return cast("T", _decoder(kind).decode(obj))
    except msgspec.ValidationError:
        pass  # it may be written otherwise
    except _BROKEN as error:
        raise BadInput(str(error)) from None
    try:
        found = _without_nulls(msgspec.json.decode(obj))
        return msgspec.convert(_PARTS | found if isinstance(found, dict) else found, kind)
    except _BROKEN as error:
        raise BadInput(_AT.sub(r"\2: \1", str(error))) from None


def naming[T](kind: str) -> Callable[[Callable[[Raw], T]], Callable[[Json | Raw], T]]:
    """Put kind and name of the object before every complaint about it, and let nothing else out."""

    def around(read: Callable[[Raw], T]) -> Callable[[Json | Raw], T]:
        @wraps(read)
        def named(obj: Json | Raw) -> T:
            try:
                return read(raw(obj))
            except Exception as error:  # whatever an object is made of, it costs itself only
                why = error if isinstance(error, BadInput) else type(error).__name__
                raise BadInput(f"{kind} {_name_of(obj)}: {why}"[:SAID_CHARACTERS]) from error

        return named

    return around


def version_of(obj: Json | Raw) -> tuple[str, str]:
    """Return an object's UID, and what changes with every change of it; empty for what has none."""
    try:
        meta = _VERSION.decode(obj) if isinstance(obj, Raw) else msgspec.convert(obj, _Versioned)
    except _BROKEN:
        return "", ""
    return meta.metadata.uid, meta.metadata.resource_version


def asked_to_go(obj: Json | Raw) -> bool:
    """Whether an object was deleted, rather than left a selection. What cannot be read says nothing, and counts as deleted.

    An object that no longer passes a field selector comes as DELETED too, as it was before.
    https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go
    """
    try:
        found = _DELETABLE.decode(obj) if isinstance(obj, Raw) else msgspec.convert(obj, _Deletable)
    except _BROKEN:
        return True
    return found.metadata.deletion_timestamp is not None


def event_of(line: Json | Raw) -> tuple[str, Json | Raw]:
    """Return what a line of a watch says, ADDED for example, and of what; of no such line ERROR."""
    try:
        event = _EVENT.decode(line) if isinstance(line, Raw) else msgspec.convert(line, _Event[Any])
    except _BROKEN:
        return "ERROR", {}
    return event.type, event.object


class _Version(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Versioned(msgspec.Struct):
    metadata: _Version


class _Deletion(msgspec.Struct, rename="camel"):
    deletion_timestamp: str | None = None


class _Deletable(msgspec.Struct):
    metadata: _Deletion


class _Event[T](msgspec.Struct):
    type: str
    object: T


class _Name(msgspec.Struct):
    name: Any = None
    namespace: Any = None


class _Named(msgspec.Struct):
    metadata: _Name


_VERSION: Final = msgspec.json.Decoder(_Versioned)
_DELETABLE: Final = msgspec.json.Decoder(_Deletable)
_EVENT: Final = msgspec.json.Decoder(_Event[Raw])


_ONE_AT_A_TIME: Final = Lock()
"""While msgspec (0.22) makes a decoder, its types are half made, and another thread that makes one of the
same types reads them so: the process dies of it. A cold start reads its first objects in many threads."""


@cache
def _decoder(kind: Hashable) -> msgspec.json.Decoder[Any]:
    with _ONE_AT_A_TIME:
        return msgspec.json.Decoder(kind)


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_nulls(v) for key, v in value.items() if v is not None}
        case list():
            return [_without_nulls(item) for item in value]
        case _:
            return value


def _name_of(obj: Json | Raw) -> str:
    """Return what an object calls itself, however broken it is."""
    try:
        found = _NAME.decode(obj) if isinstance(obj, Raw) else msgspec.convert(obj, _Named)
    except _BROKEN:
        return "(without a name)"
    said = (found.metadata.namespace, found.metadata.name)
    named = [ascii(part)[1:-1][:253] for part in said if isinstance(part, str) and part]
    return "/".join(named) or "(without a name)"


_NAME: Final = msgspec.json.Decoder(_Named)
