"""`plimsoll tenants`: who gets into the optimisation service, and who does no longer."""

from __future__ import annotations

from datetime import timedelta
from secrets import token_urlsafe
from typing import Final

import click

from plimsoll.adapters.clock import SystemClock
from plimsoll_cli.options import Decorator
from plimsoll_cli.stack import describe
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.members import DynamoMembers
from plimsoll_service.domain.principals import JOIN_LIFE, Invitation, Role, checked_name
from plimsoll_service.services.access import digest_of

EXAMPLES: Final = """\b
Examples:
  plimsoll tenants invite acme --cluster shop
  plimsoll tenants invite acme --person ann --minutes 10
  plimsoll tenants revoke a-d12436e2cf24b1d86001dfd9

\b
Exit status:
  0  it was done
  2  something given is wrong, or the stack cannot be reached
"""

service_option: Final[Decorator] = click.option(
    "--stack",
    envvar="PLIMSOLL_SERVICE_STACK",
    default="plimsoll-service",
    show_default=True,
    show_envvar=True,
    help="The stack of the optimisation service, in the region of your AWS settings.",
)
_LONGEST: Final = int(JOIN_LIFE.total_seconds() // 60)


@click.group(epilog=EXAMPLES, short_help="Let agents and people into the optimisation service.")
def tenants() -> None:
    """Let agents and people into the optimisation service, and put them out.

    You need the right to write its table of members. Nobody else can invite: the API has no call
    for it.
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
    help="How long the token is good for.",
)
@service_option
def invite(tenant: str, cluster: str | None, person: str | None, minutes: int, stack: str) -> None:
    """Print a join token: good for one key, and once. It is shown now, and stored nowhere.

    Inviting again gives a token by which the key is replaced.
    """
    if (cluster is None) == (person is None):
        raise click.UsageError("give --cluster or --person")
    invitation = Invitation(
        tenant=checked_name(tenant, "the tenant"),
        role=Role.PERSON if cluster is None else Role.AGENT,
        name=checked_name(cluster or person or "", "the name"),
        expires=SystemClock().now() + timedelta(minutes=minutes),
    )
    token = token_urlsafe(32)
    _members(stack).invite(digest_of(token), invitation)
    click.echo(token)
    click.echo(
        f"{invitation.name} of {tenant} may join as {invitation.subject} until "
        f"{invitation.expires:%H:%M} UTC",
        err=True,
    )


@tenants.command(epilog=EXAMPLES)
@click.argument("subject")
@service_option
def revoke(subject: str, stack: str) -> None:
    """Put out whoever is SUBJECT: within 30 seconds no request of theirs is taken."""
    _members(stack).revoke(subject)
    click.echo(f"{subject} is out within 30 seconds")


def _members(stack: str) -> DynamoMembers:
    aws = ServiceAws()
    return DynamoMembers(aws=aws, table=describe(aws, stack).output("MembersTable"))
