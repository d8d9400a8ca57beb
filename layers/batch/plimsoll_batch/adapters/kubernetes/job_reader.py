"""What a Job or a bare pod asks of its queue, in labels and annotations.

Tenants write them. What cannot be read is said in words, so that its own gang waits for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from plimsoll.adapters.kubernetes import schema
from plimsoll.domain.errors import BadInput
from plimsoll.domain.fields import Field, clip
from plimsoll.domain.kubernetes import PREFIX
from plimsoll_batch.domain import names
from plimsoll_batch.domain.jobs import Admission, NodeRequest, Stop, Topology

MOST_PODS: Final = 100_000
"""Of one Job; as in a snapshot's file."""
MOST_SECONDS: Final = 7 * 24 * 3600
MOST_PRIORITY: Final = 10**9
TELL: Final = "tell"
"""What is asked of an interruption that suspends nothing."""
MOST_ZONES: Final = 20
_DIGITS: Final = 6
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL: Final = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_NUMBER: Final = re.compile(r"-?[0-9]{1,10}")


class Asked:
    """Reads the metadata of one object, and keeps what is wrong with it."""

    def __init__(self, meta: schema.Metadata) -> None:
        """Check its labels."""
        self._meta = meta
        self.wrong: list[str] = []
        for label in (names.QUEUE, names.GANG, names.ROLE):
            text = meta.labels.get(label)
            if text is not None and not _NAME.fullmatch(text):
                self.wrong.append(f"label {label}: must be a name, not {clip(text)}")
        self.admission = self.said(names.ADMISSION, Admission.from_record)

    def said[T](self, annotation: str, read: Callable[[str], T]) -> T | None:
        """Return what an annotation says; None where it is missing or wrong."""
        text = self._meta.annotations.get(annotation)
        if text is None:
            return None
        try:
            return read(text)
        except BadInput as error:
            self.wrong.append(f"annotation {annotation}: {error}")
            return None

    def fields(self) -> dict[str, Any]:
        """Return the fields of a role that follow from metadata alone."""
        meta = self._meta
        gang = meta.labels.get(names.GANG)
        return {
            "uid": meta.uid,
            "resource_version": meta.resource_version,
            "created": Field(meta.creation_timestamp, "metadata.creationTimestamp").time(),
            "queue": meta.labels.get(names.QUEUE, ""),
            "gang": gang,
            "role": meta.labels.get(names.ROLE) or meta.name.removeprefix(f"{gang}-"),
            "declared": self.said(names.GANG_SIZE, _whole(1, MOST_PODS)),
            "priority": self.said(names.PRIORITY, _whole(-MOST_PRIORITY, MOST_PRIORITY)) or 0,
            "topology": self.said(names.TOPOLOGY, _topology),
            "data": self.said(names.DATA, _weights) or (),
            "start_seconds": self.said(names.START_SECONDS, _whole(1, MOST_SECONDS)),
            "checkpoint_seconds": self.said(names.CHECKPOINT_SECONDS, _whole(1, MOST_SECONDS)),
            "held": meta.annotations.get(names.HOLD) == "true",
            "resumed": meta.annotations.get(names.RESUME),
            "leases": meta.annotations.get(names.LEASE_NODES) == "true",
            "admission": self.admission,
            "stop": self.said(names.STOP, Stop.from_record),
            "request": self.said(names.NODES, NodeRequest.from_record),
        }

    def unsteered(self, spec: schema.PodSpec) -> schema.PodSpec:
        """Return a pod spec without what an admission added to it."""
        if self.admission is None:
            return spec
        steering = self.admission.in_template
        return msgspec.structs.replace(
            spec,
            node_selector=without(spec.node_selector, steering.labels),
            tolerations=tuple(
                each for each in spec.tolerations if each not in steering.tolerations
            ),
        )


def without(selector: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    """Return a node selector without these labels."""
    return {key: value for key, value in selector.items() if labels.get(key) != value}


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
            raise BadInput(f"must be a whole number from {least} to {most}, not {clip(text)}")
        return int(text)

    return read


def _topology(text: str) -> Topology:
    word, sign, label = text.partition("=")
    if word not in {"required", "preferred"} or not sign or not _LABEL.fullmatch(label):
        raise BadInput(
            f"must be required=LABEL or preferred=LABEL, such as required={PREFIX}rack, not {clip(text)}"
        )
    return Topology(label=label, required=word == "required")


def _weights(text: str) -> tuple[tuple[str, int], ...]:
    pairs = [part.partition("=") for part in text.split(",")]
    right = 0 < len(pairs) <= MOST_ZONES and all(
        _NAME.fullmatch(zone) and weight.isdecimal() and 0 < len(weight) <= _DIGITS
        for zone, _, weight in pairs
    )
    if not right or len({zone for zone, *_ in pairs}) < len(pairs):
        raise BadInput(
            f"must be ZONE=WEIGHT, {MOST_ZONES} of them at most, such as us-east-1a=3,us-east-1b=1,"
            f" not {clip(text)}"
        )
    return tuple(sorted((zone, int(weight)) for zone, _, weight in pairs))
