"""`plimsoll completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

from plimsoll.domain.errors import BadInput
from plimsoll_cli.terminal import say

SHELLS: Final = ("bash", "zsh", "fish")
EXAMPLES: Final = """\b
Examples:
  source <(plimsoll completion bash)
  plimsoll completion zsh > "${fpath[1]}/_plimsoll"
  plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish

\b
Exit status:
  0  the script was printed
  2  the shell is not one of these
"""


@click.command(epilog=EXAMPLES)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell."""
    found = get_completion_class(shell)
    if found is None:
        raise BadInput(f"click completes nothing in {shell}")
    script = found(ctx.find_root().command, {}, "plimsoll", "_PLIMSOLL_COMPLETE").source()
    say(script)
