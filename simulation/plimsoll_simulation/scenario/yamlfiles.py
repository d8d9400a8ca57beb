"""YAML with line numbers, read without trust.

PyYAML forgets where a value stood and takes a key twice without a word; here every value keeps its
line and a duplicate key is a problem. Files are refused by size, depth and number of values, since
a few lines of aliases can stand for gigabytes and libyaml's composer overflows the C stack on deep
nesting: the events are counted before anything is composed.

Numbers in base 60 (`12:30`) and dates stay text, as in Kubernetes' own reader.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from plimsoll_simulation.declared import FieldPath
from plimsoll_simulation.scenario.problems import Place, Problems, field_name, shown

MAX_BYTES = 4 * 1024 * 1024
MAX_VALUES = 400_000
MAX_DEPTH = 60
MAX_WHOLE = 2**63

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTRUCTOR = SafeConstructor()
_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One YAML document as plain JSON values, and the line of each."""

    file: str
    value: Any
    lines: Mapping[FieldPath, int] = field(repr=False)
    base: FieldPath = ()
    """Where `value` stands in its file's document: an item of a List starts deeper."""

    def place(self, *path: str | int) -> Place:
        """Return where a field stands, or its nearest parent if it is not there."""
        full = (*self.base, *path)
        at = full
        while at not in self.lines and at:
            at = at[:-1]
        return Place(file=self.file, line=self.lines.get(at), field=field_name(full))

    def part(self, *path: str | int) -> Document:
        """Return a part of it as a document of its own; the path must be there."""
        value = self.value
        for key in path:
            value = value[key]
        return Document(file=self.file, value=value, lines=self.lines, base=(*self.base, *path))


def read_documents(
    path: Path, problems: Problems, *, named_at: Place | None = None
) -> list[Document]:
    """Return the documents of a file that are not empty; what is wrong goes to `problems`.

    Args:
        path: the file.
        problems: where to note what is wrong.
        named_at: the place that names this file, for the message when it cannot be read.
    """
    before = len(problems)
    try:
        text = _text(path, named_at)
        _count(text, str(path))
        found = [
            _Reader(str(path), problems).document(node)
            for node in yaml.compose_all(text, Loader=_LOADER)
        ]
    except _Unreadable as why:
        problems.add(why.place, found=why.found, allowed=why.allowed, cure=why.cure)
        return []
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problems.add(
            Place(file=str(path), line=mark.line + 1 if mark else None),
            found=" ".join(filter(None, [error.problem, error.context])) or "something unreadable",
            allowed="YAML",
            cure="Mend the line named, or the one before it",
        )
        return []
    except yaml.YAMLError as error:
        problems.add(
            Place(file=str(path)),
            found=str(error).partition("\n")[0],
            allowed="YAML of printable characters",
            cure="Save the file as plain text",
        )
        return []
    documents = [d for d in found if d.value is not None]
    if not documents and len(problems) == before:
        problems.add(
            Place(file=str(path)),
            found="an empty file",
            allowed="at least one YAML document",
            cure="Write it, or name another file",
        )
    return documents


def _text(path: Path, named_at: Place | None) -> str:
    place, here = named_at or Place(file=str(path)), Place(file=str(path))
    allowed = "a YAML file that can be read"
    try:
        if not path.exists():
            if named_at is None:
                raise _Unreadable(place, "no such file", allowed, "Correct the path")
            cure = "Correct the path; it is relative to the scenario"
            raise _Unreadable(place, f"no file {path}", allowed, cure)
        if not path.is_file():
            what = "a directory" if path.is_dir() else "not a regular file"
            raise _Unreadable(place, f"{path}: {what}", allowed, "Name a file")
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _Unreadable(place, f"{path}: {reason}", allowed, "Make the file readable") from error
    if len(raw) > MAX_BYTES:
        cure = "Split it into several files"
        raise _Unreadable(here, "a file of more than 4 MiB", "at most 4 MiB", cure)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = Place(file=str(path), line=raw.count(b"\n", 0, error.start) + 1)
        found = f"the byte 0x{raw[error.start]:02x}, which is not UTF-8"
        raise _Unreadable(line, found, "UTF-8 text", "Save the file as UTF-8") from error


class _Unreadable(Exception):  # noqa: N818 - a signal within this module
    """Why nothing of a file is read: found, allowed and cure as a problem has them."""

    def __init__(self, place: Place, found: str, allowed: str, cure: str) -> None:
        super().__init__(found)
        self.place, self.found, self.allowed, self.cure = place, found, allowed, cure


def _too_much(file: str, line: int) -> _Unreadable:
    """Return the refusal of more values or levels than any real file has."""
    return _Unreadable(
        Place(file=file, line=line),
        "values nested too deep, or too many of them",
        f"{MAX_DEPTH} levels and {MAX_VALUES} values, with aliases written out",
        "Flatten it, or split it into several files",
    )


def _count(text: str, file: str) -> None:
    """Make sure that it is safe to compose: events are counted, which needs no stack."""
    depth = 0
    for values, event in enumerate(yaml.parse(text, Loader=_LOADER)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH or values > 2 * MAX_VALUES:
            raise _too_much(file, event.start_mark.line + 1 if event.start_mark else 1)


class _Reader:
    """Turns one composed document into plain values, noting lines and problems."""

    def __init__(self, file: str, problems: Problems) -> None:
        self.file = file
        self.problems = problems
        self.lines: dict[FieldPath, int] = {}
        self.values = 0

    def document(self, root: Node) -> Document:
        value = self._value(root, ())
        return Document(file=self.file, value=value, lines=self.lines)

    def _place(self, node: Node, path: FieldPath) -> Place:
        return Place(file=self.file, line=node.start_mark.line + 1, field=field_name(path))

    def _value(self, node: Node, path: FieldPath) -> Any:
        self.values += 1
        if self.values > MAX_VALUES or len(path) > MAX_DEPTH:  # aliases, some of them in a circle
            raise _too_much(self.file, node.start_mark.line + 1)
        self.lines.setdefault(path, node.start_mark.line + 1)
        match node:
            case MappingNode():
                return self._mapping(node, path)
            case SequenceNode():
                return [self._value(item, (*path, i)) for i, item in enumerate(node.value)]
            case ScalarNode():
                return self._scalar(node, path)
            case _:
                raise TypeError(node)

    def _mapping(self, node: MappingNode, path: FieldPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        key_lines: dict[str, int] = {}
        merges: list[Node] = []
        for key_node, value_node in node.value:
            if key_node.tag == f"{_TAG}merge":
                merges.append(value_node)
                continue
            key = self._key(key_node, path)
            if key is None:
                continue
            line = key_node.start_mark.line + 1
            if key in key_lines:
                self.problems.add(
                    self._place(key_node, (*path, key)),
                    found=f"the key {shown(key)} again; it first stands on line {key_lines[key]}",
                    allowed="each key once",
                    cure="Remove one of the two",
                )
                continue
            key_lines[key] = line
            self.lines[(*path, key)] = line
            found[key] = self._value(value_node, (*path, key))
        for key_node, value_node in self._merged(merges, path):
            key = self._key(key_node, path)
            if key is not None and key not in found:
                found[key] = self._value(value_node, (*path, key))
        return found

    def _merged(self, merges: list[Node], path: FieldPath) -> Iterator[tuple[Node, Node]]:
        for merge in merges:
            sources = merge.value if isinstance(merge, SequenceNode) else [merge]
            for source in sources:
                if isinstance(source, MappingNode):
                    yield from source.value
                else:
                    self.problems.add(
                        self._place(source, path),
                        found="a merge (<<) of something that is no mapping",
                        allowed="a mapping, or a list of mappings",
                        cure="Merge an anchor of a mapping",
                    )

    def _key(self, node: Node, path: FieldPath) -> str | None:
        if isinstance(node, ScalarNode) and node.tag == f"{_TAG}str":
            return str(node.value)
        text = node.value if isinstance(node, ScalarNode) else "a list or mapping"
        kind = node.tag.removeprefix(_TAG)
        self.problems.add(
            self._place(node, path),
            found=f"the key {text}, which YAML reads as {kind}",
            allowed="keys that are text",
            cure=f'Put it in quotes: "{text}"',
        )
        return None

    def _scalar(self, node: ScalarNode, path: FieldPath) -> Any:
        text = str(node.value)
        match node.tag.removeprefix(_TAG):
            case "str" | "timestamp" | "value":
                return text
            case "int" | "float" if ":" in text:
                return text
            case "null":
                return None
            case "bool":
                return _CONSTRUCTOR.construct_yaml_bool(node)
            case "int" | "float" as kind:
                return self._number(node, kind, path)
            case other:
                self.problems.add(
                    self._place(node, path),
                    found=f"the tag {other}",
                    allowed="plain YAML without tags",
                    cure="Remove the tag",
                )
                return None

    def _number(self, node: ScalarNode, kind: str, path: FieldPath) -> Any:
        number: float = math.nan
        with suppress(ValueError):
            if kind == "int":
                whole = _CONSTRUCTOR.construct_yaml_int(node)
                if abs(whole) < MAX_WHOLE:
                    return whole
            else:
                number = _CONSTRUCTOR.construct_yaml_float(node)
        if math.isfinite(number):
            return number
        self.problems.add(
            self._place(node, path),
            found=f"{shown(str(node.value))}, which is no finite number of 64 bits",
            allowed="an ordinary number",
            cure="Write another number, or put it in quotes to make it text",
        )
        return None
