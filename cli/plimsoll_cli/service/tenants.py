"""`plimsoll tenants`: access of agents and people to the optimisation service."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from secrets import token_urlsafe
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile

import click

from plimsoll.adapters.clock import SystemClock
from plimsoll_cli.service.options import service_option
from plimsoll_cli.service.people import bind, people, sign_out, tokens, unbind
from plimsoll_cli.stack import describe
from plimsoll_cli.terminal import say
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.adapters.signers import signer_of
from plimsoll_service.adapters.tenant_archive import TenantArchive
from plimsoll_service.domain.access import JOIN_LIFE, Invitation, Role, checked_name
from plimsoll_service.services.access import digest_of
from plimsoll_service.wire.access import agents_join_token

EXAMPLES: Final = """\b
Examples:
  plimsoll tenants invite acme --cluster shop
  plimsoll tenants invite acme --person ann --minutes 10
  plimsoll tenants revoke a-d12436e2cf24b1d86001dfd9
  plimsoll tenants export acme --to acme.zip
  plimsoll tenants remove acme

\b
Exit status:
  0  the command succeeded
  2  an argument is wrong, or the stack cannot be reached
"""

_LONGEST: Final = int(JOIN_LIFE.total_seconds() // 60)


@click.group(epilog=EXAMPLES)
def tenants() -> None:
    """Invite agents and people to the optimisation service, revoke them, and export or remove tenants.

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
    _members(stack).invite(digest_of(token), invitation)
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
    _members(stack).revoke(subject, SystemClock().now())
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
    """Write all data of TENANT into an archive that only you can read: members, documents and snapshots."""
    archive = _archive(tenant, stack)
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
    of the tables keep its rows for 35 days.
    """
    deleted = _archive(tenant, stack).remove(SystemClock().now())
    say(f"{deleted} rows and objects of {tenant} deleted")


def _archive(tenant: str, stack: str) -> TenantArchive:
    aws = ServiceAws()
    found = describe(aws, stack)
    return TenantArchive(
        aws=aws,
        members=found.output("MembersTable"),
        people=found.output("PeopleTable"),
        documents=found.output("DocumentsTable"),
        bucket=found.output("SnapshotsBucket"),
        tenant=checked_name(tenant, "the tenant"),
    )


def _members(stack: str) -> DynamoMembers:
    aws = ServiceAws()
    return DynamoMembers(aws=aws, table=describe(aws, stack).output("MembersTable"))


for _command in (bind, unbind, people, sign_out, tokens):
    tenants.add_command(_command)
