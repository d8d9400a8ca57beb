"""How commands print: everything but JSON and YAML passes `printable`, whoever wrote it.

Names, reasons and errors come from clusters, from agents and from the service. Among them may be sequences that a
terminal obeys: they set its clipboard or title, move the cursor, or turn text around.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import click

_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1, but for tabs and ends of lines
    "\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, or turning text around
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """Return a text without characters that a terminal obeys or does not show."""
    return _CONTROL.sub("", text)


def first_of(texts: Sequence[str], most: int | None) -> str:
    """Return so many of some texts, None: all, and how many more there are."""
    more = len(texts) - len(texts[:most])
    return ", ".join(texts[:most]) + (f" and {more} more" if more else "")


def say(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text, on standard error if `err`, and without a new line after it if not `nl`."""
    click.echo(printable(str(text)), err=err, nl=nl)


def ask(question: str) -> None:
    """Ask whether to go on; anything but yes ends the command."""
    click.confirm(printable(question), abort=True)
