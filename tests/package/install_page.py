"""docs/install.md, and the pages that its parameters lead to, as a list of commands; `aws` commands as calls of botocore."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import botocore.session
import jmespath  # type: ignore[import-untyped] # botocore brings it; it has no stubs
from botocore import xform_name
from botocore.model import ListShape, Shape, StringShape, StructureShape

from tests.package.template import ROOT

PAGE: Final = ROOT / "docs" / "install.md"
PAGES: Final = (
    PAGE,
    *(ROOT / "docs/operate" / f"{name}.md" for name in ("networks", "concurrency")),
)
PLIMSOLL: Final = ".venv/bin/plimsoll"
SAM: Final = ".tools/sam/bin/sam"
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_GLOBAL: Final = {"query", "output", "region", "profile"}
"""Options of the AWS CLI itself."""
_RENAMED: Final = {("sns", "subscribe", "notification-endpoint"): "endpoint"}
"""Options that the AWS CLI calls otherwise than the API: `endpoint` would be the CLI's own."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the page."""

    text: str

    @property
    def words(self) -> list[str]:
        """The command as a shell splits it."""
        return shlex.split(self.text)


def text() -> str:
    """Return the pages, one after the other."""
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def code_blocks() -> list[tuple[str, str]]:
    """Return the pages' blocks of code: (language, text)."""
    return _FENCE.findall(text())


def commands() -> list[Command]:
    """Return the commands in the order of the page."""
    lines = [
        line for language, block in code_blocks() if language == "sh" for line in _joined(block)
    ]
    return [Command(line) for line in lines]


def _joined(block: str) -> Iterator[str]:
    for line in block.replace("\\\n", " ").splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def beginning(*words: str) -> list[Command]:
    """Return the commands that begin with these words."""
    return [c for c in commands() if c.words[: len(words)] == list(words)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An `aws` command as a call."""

    service: str
    method: str
    parameters: Mapping[str, Any]


class WrongCommandError(Exception):
    """The AWS CLI would refuse it."""


def call_of(words: Sequence[str]) -> Call:
    """Read an `aws` command by botocore's model of its service.

    Raises:
        WrongCommandError: a service, operation, waiter, option or value that does not exist, or a
            required option that is missing.
    """
    session = botocore.session.get_session()
    _, service, operation, *rest = words
    if service not in session.get_available_services():
        raise WrongCommandError(f"there is no service {service}")
    model = session.get_service_model(service)
    waits = operation == "wait"
    if waits:
        operation, *rest = rest
        waiters = session.get_waiter_model(service)
        found = {xform_name(name, "-"): name for name in waiters.waiter_names}
        if operation not in found:
            raise WrongCommandError(f"{service} waits for no {operation}")
        name = waiters.get_waiter(found[operation]).operation
    else:
        names = {xform_name(name, "-"): name for name in model.operation_names}
        if operation not in names:
            raise WrongCommandError(f"{service} has no operation {operation}")
        name = names[operation]
    shape = model.operation_model(name).input_shape
    given = dict(_options(rest))
    parameters = _parameters(service, operation, given, shape)
    missing = _required(shape) - set(parameters)
    if missing and not waits:
        raise WrongCommandError(f"{service} {operation} needs {', '.join(sorted(missing))}")
    return Call(service=service, method=xform_name(name), parameters=parameters)


def _required(shape: StructureShape | None) -> set[str]:
    """Return what must be given; a token against doing it twice is made by the client."""
    if shape is None:
        return set()
    return {
        name
        for name in shape.required_members
        if not shape.members[name].metadata.get("idempotencyToken")
    }


def _options(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    name = ""
    values: list[str] = []
    for word in words:
        if word.startswith("--"):
            if name:
                yield name, values
            name, values = word.removeprefix("--"), []
        elif name:
            values.append(word)
        else:
            raise WrongCommandError(f"{word} belongs to no option")
    if name:
        yield name, values


def _parameters(
    service: str, operation: str, given: Mapping[str, list[str]], shape: StructureShape | None
) -> dict[str, Any]:
    members = {xform_name(m, "-"): m for m in (shape.members if shape else ())}
    found: dict[str, Any] = {}
    for option, values in given.items():
        if option in _GLOBAL:
            if option == "query":
                jmespath.compile(values[0])
            continue
        known = members.get(_RENAMED.get((service, operation, option), option))
        negated = members.get(option.removeprefix("no-"))
        if known is None and negated and shape and shape.members[negated].type_name == "boolean":
            found[negated] = False
            continue
        if known is None or shape is None:
            raise WrongCommandError(f"{service} {operation} has no option --{option}")
        found[known] = _value(shape.members[known], values)
    return found


def _value(shape: Shape, values: list[str]) -> Any:
    if isinstance(shape, ListShape):
        return [_value(shape.member, [value]) for value in values]
    [text] = values
    if isinstance(shape, StructureShape):
        return _structure(shape, text)
    if text.startswith("file://"):
        return text
    if isinstance(shape, StringShape) and shape.enum and text not in shape.enum:
        raise WrongCommandError(f"{text} is none of {', '.join(shape.enum)}")
    match shape.type_name:
        case "integer" | "long":
            return int(text)
        case "boolean":
            return text == "true"
        case _:
            return text


def _structure(shape: StructureShape, text: str) -> dict[str, Any]:
    """Read the CLI's shorthand: a=b,c=d and c=[{e=f}]."""
    found: dict[str, Any] = {}
    for name, nested, plain in re.findall(r"(\w+)=(?:\[\{(.*?)\}\]|([^,\[]*))(?:,|$)", text):
        if name not in shape.members:
            raise WrongCommandError(f"there is no {name} in {text}")
        member = shape.members[name]
        found[name] = _value(member, [nested or plain])
    if not found:
        raise WrongCommandError(f"{text} has no fields")
    return found


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the one table whose first column has that heading."""
    found = re.findall(
        rf"^\| {re.escape(heading)} \|.*\n\|[-| ]+\n((?:\|.*\n)+)", text(), re.MULTILINE
    )
    if len(found) != 1:
        raise LookupError(f"{len(found)} tables of the pages begin with {heading!r}")
    return [[c.strip() for c in line.strip("|").split("|")] for line in found[0].splitlines()]
