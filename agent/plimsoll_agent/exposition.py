"""The text format of metrics, as dcgm-exporter writes it, read in a time that is bounded by its length.

Tenants may forge it. The parser of prometheus_client takes 9 s of processor for one label of 1 MiB.
https://prometheus.io/docs/instrumenting/exposition_formats/#text-format-details
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from math import nan
from typing import Final

from plimsoll.domain.errors import Temporary
from plimsoll_agent.gpu_samples import Series
from plimsoll_service.wire.gpu import COUNTERS

MOST_SERIES: Final = 4096
"""Of one answer."""
LONGEST_LINE: Final = 4096
"""Characters of one series: 16 labels of the longest text that counts."""
_NAMES: Final = tuple(f"{name}{after}" for name in COUNTERS for after in "{ ")
_NAME: Final = r"[a-zA-Z_:][\w:]*+"
_TEXT: Final = r'"((?:[^"\\]++|\\.)*+)"'
_LABEL: Final = re.compile(rf"[ \t]*+({_NAME})[ \t]*+=[ \t]*+{_TEXT}[ \t]*+", re.ASCII)
_LINE: Final = re.compile(
    rf"({_NAME})[ \t]*+(?:{{((?:{_LABEL.pattern}(?:,|(?=}})))*+)[ \t]*+}})?+[ \t]*+([^\s_]++)(?:[ \t]++-?[0-9]++)?+[ \t]*+\r?",
    re.ASCII,
)
"""All quantifiers are possessive: no part gives back what it took, so the time grows with the length alone."""
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final[Mapping[str, str]] = {"n": "\n", "\\": "\\", '"': '"'}


def series_of(body: bytes) -> Iterator[Series]:
    """Yield the series of the metrics that are read, out of the text format.

    Of a line that is too long only the metric is told.

    Raises:
        Temporary: it is no such text.
    """
    try:
        # A line that nobody reads is never made an object of.
        lines = (line for line in body.decode().split("\n") if line.startswith(_NAMES))
        for line in islice(lines, MOST_SERIES):
            yield _series(line)
    except ValueError as error:
        raise Temporary(f"an exporter's answer cannot be read: {str(error)[:200]}") from None


def _series(line: str) -> Series:
    """Return the series of a line.

    Raises:
        ValueError: it is none.
    """
    if len(line) > LONGEST_LINE:
        return Series(metric=re.split("[{ ]", line, maxsplit=1)[0], labels={}, value=nan)
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"{line[:100]} is no series")
    metric, told, value = found[1], found[2] or "", found[5]
    said = _LABEL.findall(told)
    labels = {name: _ESCAPED.sub(_unescaped, text) for name, text in said}
    if len(labels) < len(said):
        raise ValueError(f"{line[:100]} has a label twice")
    return Series(metric=metric, labels=labels, value=float(value))


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[1], found[0])
