"""`plimsoll instructions`: what the service signed for a cluster, and whether a file is as it was signed."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from plimsoll.domain.errors import BadInput
from plimsoll_agent.identity import PinnedKey
from plimsoll_agent.service import Service
from plimsoll_cli.options import (
    Output,
    console,
    environment_of,
    output_option,
    print_answer,
    table,
)
from plimsoll_cli.service.advice import cluster_option, cluster_path, folder_option
from plimsoll_cli.service.login import logged_in, pinned_at_login
from plimsoll_cli.terminal import say
from plimsoll_service.wire.documents import Malformed, decode
from plimsoll_service.wire.instruction_log import (
    InstructionRow,
    InstructionRows,
    SignedRow,
    faults,
)

EXAMPLES: Final = """\b
Examples:
  plimsoll instructions list --cluster harbor
  plimsoll instructions show 1793361600 --cluster harbor > instruction.json
  plimsoll instructions verify instruction.json
  plimsoll instructions verify instruction.json --key arn:aws:kms:REGION:ACCOUNT:key/ID:BASE64

\b
Exit status:
  0  the command succeeded; the file is as it was signed
  1  the file is not as it was signed
  2  an argument is wrong, or the service refuses or cannot be reached
"""
_DER: Final = bytes.fromhex("302a300506032b6570032100")
"""What stands before the 32 bytes of an Ed25519 key in the form that KMS returns (RFC 8410)."""
_MOST_FILE_BYTES: Final = 2**20


@click.group(epilog=EXAMPLES)
def instructions() -> None:
    """List the instructions that the service signed for a cluster, and check them offline."""


@instructions.command("list", epilog=EXAMPLES)
@cluster_option
@folder_option
@output_option
@click.pass_context
def list_(ctx: click.Context, cluster: str | None, folder: Path, output: Output) -> None:
    """List what was signed in the last 400 days, newest first, and what became of it."""
    service = logged_in(folder, environment_of(ctx).clock)
    found = _all(service, f"{cluster_path(service, cluster)}/instruction-log")
    if output != "table":
        print_answer(msgspec.to_builtins(found), output)
        return
    shown = table("NUMBER", "ISSUED", "WHAT", "FOR", "OUTCOME", "BECAUSE")
    for each in found:
        shown.add_row(
            str(each.number),
            f"{each.issued_at:%Y-%m-%d %H:%M:%S}",
            f"{each.kind} {each.target}",
            each.id,
            each.outcome,
            each.reason,
        )
    console().print(shown)


@instructions.command(epilog=EXAMPLES)
@click.argument("number", type=click.IntRange(1))
@cluster_option
@folder_option
@click.pass_context
def show(ctx: click.Context, number: int, cluster: str | None, folder: Path) -> None:
    """Print an instruction as JSON, with the bytes that were signed."""
    service = logged_in(folder, environment_of(ctx).clock)
    path = f"{cluster_path(service, cluster)}/instruction-log/{number}"
    found = service.call("GET", path, SignedRow)
    say(msgspec.json.format(msgspec.json.encode(found, order="sorted")).decode())


@instructions.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--key",
    "keys",
    metavar="ID:KEY",
    multiple=True,
    help="Trust this public key, base64 of its 32 bytes or of KMS's form. [default: those of your login]",
)
@folder_option
@click.pass_context
def verify(ctx: click.Context, file: Path, keys: Sequence[str], folder: Path) -> None:
    """Check FILE, which `show` printed, against the public key of instructions. It asks nobody.

    Your login pinned the key that the service named then. To trust AWS instead of the service, get it by
    `aws kms get-public-key --key-id ID --query PublicKey --output text`, and give it with --key. Agents name
    theirs in the Secret plimsoll-agent-key.
    """
    pinned = dict(map(_key, keys)) if keys else _pinned(folder)
    if file.stat().st_size > _MOST_FILE_BYTES:
        raise BadInput(f"{file} has more than {_MOST_FILE_BYTES} bytes: it is no instruction")
    try:
        row = decode(file.read_bytes(), SignedRow)
    except Malformed as error:
        raise BadInput(f"{file} is no instruction as `show` prints it: {error}") from error
    wrong = list(faults(row, pinned, PinnedKey))
    for each in wrong:
        say(f"{file}: {each}")
    if wrong:
        ctx.exit(1)
    say(
        f"{file}: instruction {row.number}, {row.kind} {row.target}, was signed by {row.key_id} "
        f"at {row.issued_at:%Y-%m-%d %H:%M:%S} UTC; outcome and reason are the service's word"
    )


def _all(service: Service, path: str) -> Sequence[InstructionRow]:
    """Return the rows of all pages."""
    found: list[InstructionRow] = []
    query = "limit=200"
    while True:
        page = service.call("GET", path, InstructionRows, query=query)
        found += page.items
        if page.next is None:
            return found
        query = f"after={page.next}&limit=200"


def _pinned(folder: Path) -> Mapping[str, PinnedKey]:
    found = pinned_at_login(folder)
    if not found:
        raise BadInput("your login names no key of instructions: give one with --key ID:KEY")
    return {each.key_id: PinnedKey(each.public_key) for each in found}


def _key(text: str) -> tuple[str, PinnedKey]:
    """Return a key as it is named on the command line: `ID:KEY`. The id may have colons."""
    id_, _, encoded = text.rpartition(":")
    try:
        raw = b64decode(encoded, validate=True).removeprefix(_DER)
        return id_, PinnedKey(raw)
    except (NoBase64, ValueError) as error:
        raise BadInput(f"{text[:80]!r} is no ID:KEY with an Ed25519 key in base64") from error
