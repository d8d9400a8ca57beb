"""What is said of a cluster right after it was added: the doctor's verdict, and the first line of a rehearsal.

Both are asked as a person asks them, by their commands: these load much that adding a cluster does not need.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Final

import click

from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.stack import Stack
from plimsoll_cli.terminal import say

_STATES: Final = ("ok", "info", "fail", "skipped")
_OPEN: Final = ("fail", "skipped")


def first_look(ctx: click.Context, stack: Stack, cluster: str) -> None:
    """Print both. The cluster is added whatever they say, so neither ends the command."""
    options = ("--cluster", cluster, "--stack", stack.name)
    try:
        findings = json.loads(_answer(ctx, "doctor", *options, "--output", "json"))["findings"]
    except PlimsollError as error:
        say(f"doctor: not asked: {error}")
    else:
        for line in verdict(findings):
            say(line)
    try:
        foretold = _answer(ctx, "rehearse", *options).partition("\n")[0]
    except PlimsollError as error:
        foretold = f"not done: {error}"
    say(f"rehearsal: {foretold}")
    both = [stack.command(name, "--cluster", cluster) for name in ("doctor", "rehearse")]
    say(f"For all of it: {', '.join(both)}")


def verdict(findings: Sequence[Mapping[str, str | None]]) -> Iterator[str]:
    """Yield how many findings of the doctor have which state, and those that need somebody."""
    counts = Counter(finding["state"] for finding in findings)
    yield "doctor: " + ", ".join(f"{counts[state]} {state}" for state in _STATES)
    for finding in findings:
        if finding["state"] in _OPEN:
            yield f"  {finding['state']} {finding['check']}: {finding['says']}"
            if finding["cure"] is not None:
                yield f"  -> {finding['cure']}"


def _answer(ctx: click.Context, name: str, *words: str) -> str:
    """Return what another command prints on standard output.

    Raises:
        PlimsollError: it cannot be carried out.
    """
    root = ctx.find_root().command
    command = root.get_command(ctx, name) if isinstance(root, click.Group) else None
    assert command is not None  # noqa: S101 - one of the table of `plimsoll`
    said = io.StringIO()
    with redirect_stdout(said):
        command.main([*words], name, standalone_mode=False, obj=ctx.obj)
    return said.getvalue()
