"""The files that the commands of queues read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.domain.errors import BadInput
from plimsoll_batch.adapters.documents import told, validated
from plimsoll_batch.adapters.queues_file import QueuesFile, configuration_of
from plimsoll_batch.adapters.queues_fitness import unfit
from plimsoll_batch.domain.quota import QueueConfiguration
from plimsoll_cli.batch import kueue
from plimsoll_cli.batch.yaml_documents import read_documents


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuesRead:
    """A file of queues that is right."""

    document: Any
    """What it holds, or what the objects of Kueue in it mean."""
    file: QueuesFile
    configuration: QueueConfiguration
    notes: tuple[str, ...] = ()
    """What has to be done beside it."""


def read_queues(path: Path) -> QueuesRead:
    """Read a file of queues, or of objects of Kueue.

    Raises:
        BadInput: names every problem, its place, and what to write instead.
    """
    documents = read_documents(path)
    notes: list[str] = []
    try:
        if kueue.is_kueue(documents):
            made = kueue.converted(documents)
            document, notes = made.file, made.notes
        else:
            document = _only(documents)
        return _checked(document, notes)
    except BadInput as error:
        raise BadInput(f"{path}:\n{error}") from error


def _checked(document: Any, notes: list[str]) -> QueuesRead:
    configuration = configuration_of(document)
    file = validated(QueuesFile, document)
    problems = unfit(file)
    if problems:
        raise BadInput(told(problems))
    return QueuesRead(document=document, file=file, configuration=configuration, notes=tuple(notes))


def read_snapshot(path: Path) -> Any:
    """Return what a snapshot file holds.

    Raises:
        BadInput: it is not YAML, or holds more than one document.
    """
    try:
        return _only(read_documents(path))
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def _only(documents: list[Any]) -> Any:
    if not documents:
        raise BadInput(
            "the file is empty: examples/queues in the repository, and the guide of batch queues, show one"
        )
    if len(documents) > 1:
        raise BadInput(f"holds {len(documents)} documents: put all of it into one, without ---")
    return documents[0]
