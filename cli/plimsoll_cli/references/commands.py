"""docs/reference/cli.md: every command with its options, examples and exit status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import cleandoc

import click

from plimsoll_cli import SECTIONS
from plimsoll_cli.references.markdown import page, table, text

_ABOUT = (
    "This page lists every command and option of `plimsoll`, as `plimsoll COMMAND --help` prints them. A command that reads a "
    "stack or a cluster uses your own AWS credentials and kubeconfig. Examples and exit status of a group hold for its commands."
)


def render(main: click.Command) -> str:
    """Return the page."""
    found = [*_commands(click.Context(main, info_name="plimsoll"))]
    return page("Commands", _ABOUT, *_index(found), *map(_section, found))


def _index(found: Sequence[click.Context]) -> Iterator[str]:
    """Yield a table of the commands of each section."""
    for section, names in SECTIONS.items():
        rows = [
            (_link(each), text(each.command.get_short_help_str(200)))
            for each in found
            if {*each.command_path.split()[1:2]} & {*names}
        ]
        yield f"**{section}**\n\n{table(('command', 'what it does'), rows)}"


def _commands(context: click.Context) -> Iterator[click.Context]:
    """Yield a command and all below it, groups before their commands."""
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if command is not None and not command.hidden:
                yield from _commands(click.Context(command, info_name=name, parent=context))


def _link(context: click.Context) -> str:
    return f"[`{context.command_path}`](#{context.command_path.replace(' ', '-')})"


def _section(context: click.Context) -> str:
    command, above = context.command, context.parent
    records = [param.get_help_record(context) for param in command.get_params(context)]
    rows = [(f"`{n}`", text(about)) for n, about in filter(None, records) if "--help" not in n]
    epilog = command.epilog if above is None or command.epilog != above.command.epilog else None
    return "\n\n".join(
        [
            f"## {context.command_path}",
            f"```\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```",
            *(text(part) for part in _prose(command.help or "").split("\n\n")),
            *([table(("option", "meaning"), rows)] if rows else []),
            *([f"```\n{_prose(epilog)}\n```"] if epilog else []),
        ]
    )


def _prose(said: str) -> str:
    r"""Return a help text without click's mark `\b`, which keeps a paragraph as it is."""
    return "\n".join(line for line in cleandoc(said).splitlines() if line.strip() != "\b").strip()
