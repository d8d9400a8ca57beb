"""`plimsoll tenants`: access of agents and people to the optimisation service."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from io import StringIO
from pathlib import Path
from secrets import token_urlsafe
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

import click
import msgspec

from plimsoll.adapters.aws_errors import translated
from plimsoll.adapters.clock import SystemClock
from plimsoll_cli.options import Output, console, output_option, print_answer, table
from plimsoll_cli.service.options import service_option
from plimsoll_cli.service.people import bind, people, sign_out, tokens, unbind
from plimsoll_cli.stack import Stack, describe
from plimsoll_cli.terminal import say
from plimsoll_service.adapters.audit import DynamoAudit
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.adapters.signers import signer_of
from plimsoll_service.adapters.tenant_archive import TenantArchive
from plimsoll_service.domain.access import JOIN_LIFE, Invitation, Role, checked_name
from plimsoll_service.services.access import digest_of
from plimsoll_service.services.audit import operators_entry
from plimsoll_service.wire.access import agents_join_token
from plimsoll_service.wire.audit import Action, AuditEntry

EXAMPLES: Final = """\b
Examples:
  plimsoll tenants invite acme --cluster shop
  plimsoll tenants invite acme --person ann --minutes 10
  plimsoll tenants revoke a-d12436e2cf24b1d86001dfd9
  plimsoll tenants audit acme --csv > audit.csv
  plimsoll tenants export acme --to acme.zip
  plimsoll tenants remove acme

\b
Exit status:
  0  the command succeeded
  2  an argument is wrong, or the stack cannot be reached
"""

_COLUMNS: Final = ("at", "who", "role", "action", "object", "version", "outcome", "reason")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_LONGEST: Final = int(JOIN_LIFE.total_seconds() // 60)


@click.group(epilog=EXAMPLES)
def tenants() -> None:
    """Invite agents and people to the optimisation service, revoke them, and export, audit or remove tenants.

    You need rights to the service's tables, its bucket and the public key of instructions. The API has
    no call for it.
    """


@tenants.command(epilog=EXAMPLES)
@click.argument("tenant")
@click.option("--cluster", metavar="NAME", help="Invite the agent of a cluster.")
@click.option("--person", metavar="NAME", help="Invite a person.")
@click.option(
    "--minutes",
    type=click.IntRange(1, _LONGEST),
    default=_LONGEST,
    show_default=True,
    help="Let the token expire after this many minutes.",
)
@service_option
def invite(tenant: str, cluster: str | None, person: str | None, minutes: int, stack: str) -> None:
    """Print a join token, valid once and for one key.

    The token is stored nowhere. If you invite the same name again, the new token replaces the key. A
    token made before the name was enrolled, replaced or revoked is not valid any more.
    """
    if (cluster is None) == (person is None):
        raise click.UsageError("give either --cluster or --person")
    invitation = Invitation(
        tenant=checked_name(tenant, "the tenant"),
        role=Role.PERSON if cluster is None else Role.AGENT,
        name=checked_name(cluster or person or "", "the name"),
        expires=SystemClock().now() + timedelta(minutes=minutes),
    )
    aws = ServiceAws()
    found = describe(aws, stack)
    token = token_urlsafe(32)
    if invitation.role is Role.AGENT:
        signer = signer_of(aws, found.output("InstructionKey"), SystemClock())
        token = agents_join_token(token, signer.public_key())
    # Recorded before it is done, as all here: what failed in between is in the log rather than missing.
    _record(aws, found, tenant, Action.INVITE, f"members/{invitation.subject}", invitation.name)
    members = DynamoMembers(aws=aws, table=found.output("MembersTable"))
    members.invite(digest_of(token), invitation)
    say(token)
    say(
        f"{invitation.name} of {tenant} may join as {invitation.subject} until "
        f"{invitation.expires:%H:%M} UTC",
        err=True,
    )


@tenants.command(epilog=EXAMPLES)
@click.argument("subject")
@service_option
def revoke(subject: str, stack: str) -> None:
    """Revoke the access of SUBJECT from its next request on, with its unused join tokens."""
    aws = ServiceAws()
    found = describe(aws, stack)
    members = DynamoMembers(aws=aws, table=found.output("MembersTable"))
    member = members.get(subject)
    if member is not None:  # else nobody has it, and no tenant's log is concerned
        _record(aws, found, member.tenant, Action.REVOKE, f"members/{subject}", member.name)
    members.revoke(subject, SystemClock().now())
    say(f"{subject} has no access from its next request on")


@tenants.command(epilog=EXAMPLES)
@click.argument("tenant")
@click.option(
    "--to",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="Write a zip archive here.",
)
@service_option
def export(tenant: str, file: Path, stack: str) -> None:
    """Write all data of TENANT into an archive that only you can read.

    It holds members, documents, snapshots and the audit log.
    """
    aws = ServiceAws()
    found = describe(aws, stack)
    archive = _archive(aws, found, tenant)
    _record(aws, found, tenant, Action.EXPORT, f"tenants/{tenant}")
    written = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(written, "wb") as stream, ZipFile(stream, "w", ZIP_DEFLATED) as to:
        say(f"{archive.export(to)} files in {file}")


@tenants.command(epilog=EXAMPLES)
@click.argument("tenant")
@click.confirmation_option(prompt="Revoke all members and delete all data of this tenant?")
@service_option
def remove(tenant: str, stack: str) -> None:
    """Revoke all members of TENANT and delete its data, for good.

    Run it again after five days: until then the queues may hold messages of the tenant. Recovery copies
    of the tables keep its rows for 35 days. The audit log stays for 400 days.
    """
    aws = ServiceAws()
    found = describe(aws, stack)
    archive = _archive(aws, found, tenant)
    _record(aws, found, tenant, Action.REMOVE, f"tenants/{tenant}")
    deleted = archive.remove(SystemClock().now())
    say(f"{deleted} rows and objects of {tenant} deleted")


@tenants.command(epilog=EXAMPLES)
@click.argument("tenant")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@output_option
@service_option
def audit(tenant: str, as_csv: bool, output: Output, stack: str) -> None:
    """Print the audit log of TENANT, newest first: who did or tried what, for 400 days.

    Admins of the tenant read the same at /v1/audit of the service.
    """
    aws = ServiceAws()
    log = _log(aws, describe(aws, stack), checked_name(tenant, "the tenant"))
    rows = [msgspec.to_builtins(entry) for _, entry in log.list()]
    if as_csv:
        _print_csv(rows)
    elif output != "table":
        print_answer(rows, output)
    else:
        shown = table(*(name.upper() for name in _COLUMNS))
        for row in rows:
            shown.add_row(*(str(row[name]) for name in _COLUMNS))
        console().print(shown)


def _print_csv(rows: Iterable[Mapping[str, object]]) -> None:
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(AuditEntry.__struct_fields__)
    for row in rows:
        # A spreadsheet runs what begins like a formula, and people choose these texts.
        cells = (str(row[name]) for name in AuditEntry.__struct_fields__)
        writer.writerow(f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in cells)
    say(text.getvalue(), nl=False)


def _record(  # noqa: PLR0913, PLR0917 - where, and the parts of a row
    aws: ServiceAws, found: Stack, tenant: str, action: Action, object_: str, reason: str = ""
) -> None:
    """Append to the audit log of a tenant what the caller is about to do."""
    with translated("ask who you are"):
        arn = aws.sts.get_caller_identity()["Arn"]
    now = SystemClock().now()
    entry = operators_entry(arn, action, object_, now=now, reason=reason)
    _log(aws, found, tenant).append(entry)


def _log(aws: ServiceAws, found: Stack, tenant: str) -> DynamoAudit:
    return DynamoAudit(aws=aws, table=found.output("AuditTable"), tenant=tenant)


def _archive(aws: ServiceAws, found: Stack, tenant: str) -> TenantArchive:
    return TenantArchive(
        aws=aws,
        members=found.output("MembersTable"),
        people=found.output("PeopleTable"),
        documents=found.output("DocumentsTable"),
        audit=found.output("AuditTable"),
        bucket=found.output("SnapshotsBucket"),
        tenant=checked_name(tenant, "the tenant"),
    )


for _command in (bind, unbind, people, sign_out, tokens):
    tenants.add_command(_command)
