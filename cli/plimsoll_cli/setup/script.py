"""A plan as a script for a shell, which holds the manifests themselves and needs no checkout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import yaml

from plimsoll_cli.setup.steps import Apply, Step

_END: Final = "END_OF_MANIFESTS"


def script_of(title: str, steps: Sequence[Step]) -> str:
    """Return the script that does what is not done yet, and stops at the first command that fails.

    Args:
        title: a line about the cluster.
        steps: the plan.
    """
    return "\n".join(["#!/bin/sh", f"# {title}", "set -eu", *_lines(steps), ""])


def _lines(steps: Sequence[Step]) -> Iterator[str]:
    for number, step in enumerate(steps, start=1):
        yield ""
        yield f"# {number}. {'already: ' if step.done else ''}{step.what}: {step.why}"
        if step.done:
            continue
        if isinstance(step.action, Apply):
            command, _, _ = step.command.rpartition(" -k ")
            yield f"{command} -f - <<'{_END}'"
            yield yaml.safe_dump_all(step.action.objects, sort_keys=False) + _END
        else:
            yield step.command
