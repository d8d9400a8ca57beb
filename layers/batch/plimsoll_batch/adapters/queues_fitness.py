"""What a file of queues says that no cluster can mean, such as half a GPU or a label that no object can carry.

Who writes a file is told this. A planner reads what a cluster holds without these rules: a file that an older Plimsoll
took must not stop its queues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from plimsoll.domain.kubernetes import parse_quantity
from plimsoll_batch.adapters.queues_file import (
    FlavorEntry,
    QueuesFile,
    TaintEntry,
    TolerationEntry,
)
from plimsoll_batch.domain.quota import amount_text

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
OPERATORS: Final = ("Exists", "Equal")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""The value of a label, and the last part of its key.
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"""
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAMED: Final = (
    "letters, digits, '-', '_' and '.', beginning and ending with a letter or digit, at most 63"
)
_DIVISIBLE: Final = {"cpu": 10**3, "memory": 1, "ephemeral-storage": 1}
"""Resources of which a fraction can be requested, and into how many parts a unit of them."""
_MOST: Final = {"cpu": 10**7, "memory": 2**60, "ephemeral-storage": 2**60}
_MOST_PIECES: Final = 10**7
_LEAST_BYTES: Final = 2**20


def unfit(file: QueuesFile) -> list[str]:
    """Say what of a file cannot be meant, each with its place and what to write instead."""
    return [
        *_nothing(file),
        *chain.from_iterable(_flavor(flavor) for flavor in file.flavors),
        *(
            f"queue {queue.name!r}: name: a Job names it by a label, which takes {_NAMED}"
            for queue in file.queues
            if not _NAME.fullmatch(queue.name)
        ),
        *(
            f"topologyLevels: {level!r} is no key of a label: write PREFIX/NAME, such as example.com/rack"
            for level in file.topology_levels
            if not _is_key(level)
        ),
        *_amounts(file),
    ]


def _nothing(file: QueuesFile) -> Iterator[str]:
    if not file.queues:
        yield (
            "queues: names none, so every gang would wait for ever: name at least one, as in"
            " queues: [{name: research, resourceGroups: [...]}]"
        )


def _flavor(entry: FlavorEntry) -> Iterator[str]:
    place = f"flavor {entry.name}"
    for key, value in entry.node_labels.items():
        if not _is_key(key) or (value and not _NAME.fullmatch(value)):
            yield (
                f"{place}: nodeLabels: no Node can carry {key!r}: {value!r}; key and value take {_NAMED}"
            )
    said: list[TaintEntry | TolerationEntry] = [*entry.taints, *entry.tolerations]
    for each in said:
        gives = isinstance(each, TolerationEntry)
        at = f"{place}: {'tolerations' if gives else 'taints'}"
        if (each.key or not gives) and not _is_key(each.key):
            yield f"{at}: no Node can carry the taint {each.key!r}: its key takes {_NAMED}"
        if each.effect not in EFFECTS and (each.effect or not gives):
            yield f"{at}: effect {each.effect!r}: Kubernetes knows {', '.join(EFFECTS)}"
        if isinstance(each, TolerationEntry) and each.operator not in OPERATORS:
            yield f"{at}: operator {each.operator!r}: write {' or '.join(OPERATORS)}"


def _is_key(text: str) -> bool:
    prefix, sign, name = text.rpartition("/")
    return bool(_NAME.fullmatch(name)) and (not sign or bool(_PREFIX.fullmatch(prefix)))


def _amounts(file: QueuesFile) -> Iterator[str]:
    owners = [(f"queue {each.name}", each.resource_groups) for each in file.queues]
    owners += [(f"cohort {each.name}", each.resource_groups) for each in file.cohorts]
    for owner, groups in owners:
        for flavor in chain.from_iterable(group.flavors for group in groups):
            for resource, quota in flavor.resources.items():
                place = f"{owner}: quota of {resource} in {flavor.name}"
                said: Mapping[str, str | None] = {
                    "nominal": quota.nominal,
                    "borrowingLimit": quota.borrowing_limit,
                    "lendingLimit": quota.lending_limit,
                }
                for field, text in said.items():
                    if text is not None and (why := _absurd(resource, text)) is not None:
                        yield f"{place}: {field} {text}: {why}"


def _absurd(resource: str, text: str) -> str | None:
    """Say why no cluster has an amount; None where one may. It is a quantity: the file was read before."""
    amount = parse_quantity(text)
    parts = amount * _DIVISIBLE.get(resource, 1)
    if parts != int(parts):
        if resource == "cpu":
            return "is finer than a thousandth of a core: write whole millicores, such as 1500m"
        if resource in _DIVISIBLE:
            return "is a fraction of a byte: m means thousandths; write for example 64Gi"
        return (
            f"a pod requests whole pieces of {resource}: write a whole number, or count slices of GPUs"
            " as a resource of their own, such as nvidia.com/mig-1g.10gb"
        )
    most = _MOST.get(resource, _MOST_PIECES)
    if amount > most:
        unit = amount_text(resource, most * _DIVISIBLE.get(resource, 1))
        return (
            f"is more than any cluster has, at most {unit}: leave out a limit that limits nothing, and list what"
            " nobody counts in freeResources"
        )
    if resource in {"memory", "ephemeral-storage"} and 0 < amount < _LEAST_BYTES:
        return (
            f"is {amount} bytes: write a unit, such as {text}Gi"
            if text.isdecimal()
            else (f"is {amount} bytes, less than a pod can use: write for example 64Gi")
        )
    return None
