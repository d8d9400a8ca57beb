"""YAML and JSON that people write: a key that stands twice in one object is refused, since only one of the two counts."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, override

import yaml

from plimsoll.domain.errors import BadInput


class _Loader(yaml.SafeLoader):
    """Reads plain values, and refuses keys that stand twice."""

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            line = key.start_mark.line + 1
            if key.value in lines:
                raise BadInput(
                    f"line {line}: the key {key.value} stands there twice, first in line {lines[key.value]}:"
                    " leave one of them out"
                )
            lines[key.value] = line
        return super().construct_mapping(node, deep=deep)


def read_documents(file: Path) -> list[Any]:
    """Return the documents of a file that are not empty.

    Raises:
        BadInput: it is not YAML, or a key stands twice in it; the line is named.
    """
    try:
        text = file.read_text(encoding="utf-8")
        return [each for each in yaml.load_all(text, Loader=_Loader) if each]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: is not YAML: {error}") from error
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from error
