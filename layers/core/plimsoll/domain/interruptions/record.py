"""An interruption as the text of a Node's annotation, and back.

Compact JSON with sorted keys, so that the same interruption is always the same text and a patch
that changes nothing changes nothing. What is derived (kind, phase, noticed, deadline) is written
for people who read the Node, and ignored when it is read back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from plimsoll.domain.errors import BadInput, Permanent
from plimsoll.domain.fields import (
    ARN_LIMIT_CHARACTERS,
    TEXT_LIMIT_CHARACTERS,
    Field,
    clip,
    traceparent_of,
)
from plimsoll.domain.interruptions.model import Interruption, NoticeRecord, kept

VERSION: Final = 1
"""Raised only when an older Plimsoll must not touch the record; a new key does not need it."""

RECORD_CHARACTERS: Final = 256 * 1024
"""Characters: Kubernetes allows no more for all annotations of an object together."""

_MAX_NOTICES: Final = 1000
_ID_LIMIT: Final = 1024
_MARKS: Final = ("cordoned", "emptied", "gone", "closed")


class NewerRecord(Permanent):
    """A newer Plimsoll wrote this record: leave the node to it."""


def to_record(interruption: Interruption) -> str:
    """Write an interruption as an annotation."""
    said: dict[str, object] = {
        "v": VERSION,
        "instance": interruption.instance,
        "launched": _written(interruption.launched),
        "node": interruption.node,
        "kind": interruption.kind,
        "phase": interruption.phase,
        "noticed": _written(interruption.noticed),
        "deadline": _written(interruption.deadline),
        "notices": [_notice(notice) for notice in interruption.notices],
    }
    said |= {mark: _written(getattr(interruption, mark)) for mark in _MARKS}
    said["unschedulable_before"] = interruption.unschedulable_before or None
    return _compact(said)


def from_record(text: str) -> Interruption:
    """Read the annotation of a Node.

    Raises:
        NewerRecord: Its version is one that we cannot know.
        BadInput: It is no record; the message names the field.
    """
    if len(text) > RECORD_CHARACTERS:
        raise BadInput(f"the record has {len(text)} characters, more than {RECORD_CHARACTERS}")
    try:
        said = json.loads(text)
    except RecursionError:
        raise BadInput("the record is nested too deeply") from None
    except ValueError as error:
        raise BadInput(f"the record is not JSON ({error})"[:300]) from None
    if not isinstance(said, Mapping):
        raise BadInput(f"the record must be a JSON object, not {clip(said)}")
    # Checked before any field: a newer version may give fields another meaning.
    _check_version(said.get("v"))
    fields = Field(said)
    notices = [notice.present() for notice in fields["notices"].each(_MAX_NOTICES)]
    if not notices:
        raise BadInput("notices: must hold at least one notice")
    return Interruption(
        instance=fields["instance"].instance(),
        launched=fields["launched"].optional_time(),
        node=fields["node"].required(),
        notices=kept(_read_notice(notice) for notice in notices),
        cordoned=fields["cordoned"].optional_time(),
        emptied=fields["emptied"].optional_time(),
        gone=fields["gone"].optional_time(),
        closed=fields["closed"].optional_time(),
        unschedulable_before=fields["unschedulable_before"].flag(),
    )


def _check_version(version: object) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BadInput(f"v: must be the version of the record, not {clip(version)}")
    if version > VERSION:
        raise NewerRecord(f"the record has version {version}, and we know {VERSION}")


def _notice(notice: NoticeRecord) -> dict[str, object]:
    said = {
        "kind": notice.kind,
        "time": _written(notice.time),
        "id": notice.id,
        "ends": _written(notice.ends),
        "about": notice.about,
        "state": notice.state,
        "guessed": notice.guessed or None,
        "heartbeat": _written(notice.heartbeat),
        "traceparent": notice.traceparent,
    }
    return {key: value for key, value in said.items() if value is not None}


def _read_notice(fields: Field) -> NoticeRecord:
    return NoticeRecord(
        kind=fields["kind"].required(limit=63),
        time=fields["time"].time(),
        id=fields["id"].required(limit=_ID_LIMIT),
        ends=fields["ends"].optional_time(),
        about=fields["about"].optional(limit=ARN_LIMIT_CHARACTERS),
        state=fields["state"].optional(limit=TEXT_LIMIT_CHARACTERS),
        guessed=fields["guessed"].flag(),
        heartbeat=fields["heartbeat"].optional_time(),
        traceparent=traceparent_of(fields["traceparent"].value),
    )


def _written(time: datetime | None) -> str | None:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z") if time else None


def _compact(said: Mapping[str, object]) -> str:
    present = {key: value for key, value in said.items() if value is not None}
    return json.dumps(present, sort_keys=True, separators=(",", ":"))
