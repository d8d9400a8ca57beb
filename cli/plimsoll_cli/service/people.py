"""`plimsoll tenants bind`, `unbind`, `people`, `sign-out` and `tokens`: access by the issuer and by tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import click
import msgspec

from plimsoll.adapters.clock import SystemClock
from plimsoll.domain.errors import BadInput, NotFound
from plimsoll_cli.options import Output, console, output_option, print_answer, table
from plimsoll_cli.service.options import service_option
from plimsoll_cli.stack import describe
from plimsoll_cli.terminal import printable, say
from plimsoll_service.adapters.audit import DynamoAudit
from plimsoll_service.adapters.aws import ServiceAws
from plimsoll_service.adapters.people_table import PeopleTable
from plimsoll_service.domain.access import (
    MOST_GROUP_CHARACTERS,
    MOST_TOKEN_LIFE,
    Binding,
    Grant,
    Invitation,
    PersonRole,
    Role,
    checked_grant,
    checked_name,
)
from plimsoll_service.services.audit import operators_entry
from plimsoll_service.services.people import people_of
from plimsoll_service.services.sessions import Sessions
from plimsoll_service.wire.audit import Action
from plimsoll_service.wire.people import Limits, People

EXAMPLES = """\b
Examples:
  plimsoll tenants bind acme sre --role operator
  plimsoll tenants bind acme web --role viewer --cluster shop
  plimsoll tenants unbind acme web
  plimsoll tenants people acme
  plimsoll tenants sign-out acme u-d12436e2cf24b1d86001dfd9
  plimsoll tenants tokens create acme ci --role viewer --days 30
  plimsoll tenants tokens revoke acme t-0f3c

\b
Exit status:
  0  the command succeeded
  2  an argument is wrong, or the stack cannot be reached
"""
cluster_option = click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="NAME",
    help="Limit the role to the cluster of this name; repeatable. [default: the whole tenant]",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Operator:
    """The stack's people of one tenant, and who writes down what is done."""

    sessions: Sessions
    audit: DynamoAudit
    arn: str

    def records(self, action: Action, path: str) -> None:
        """Append to the audit log of the tenant what the caller does."""
        self.audit.append(operators_entry(self.arn, action, path, now=SystemClock().now()))


def _operator(tenant: str, stack: str) -> _Operator:
    aws = ServiceAws()
    found = describe(aws, stack)
    return _Operator(
        sessions=Sessions(store=PeopleTable(aws=aws, table=found.output("PeopleTable"))),
        audit=DynamoAudit(
            aws=aws, table=found.output("AuditTable"), tenant=checked_name(tenant, "the tenant")
        ),
        arn=aws.sts.get_caller_identity()["Arn"],
    )


@click.command(epilog=EXAMPLES)
@click.argument("tenant")
@click.argument("group")
@click.option(
    "--role",
    type=click.Choice([role.value for role in PersonRole]),
    required=True,
    help="Give this role.",
)
@cluster_option
@service_option
def bind(tenant: str, group: str, role: str, clusters: tuple[str, ...], stack: str) -> None:
    """Bind a GROUP of the issuer to TENANT.

    Its people get the role from their next request on. Binding a group again replaces its role.
    """
    operator = _operator(tenant, stack)
    if not 0 < len(group) <= MOST_GROUP_CHARACTERS or not group.isprintable():
        raise BadInput(f"a group has 1 to {MOST_GROUP_CHARACTERS} printable characters")
    grant = _grant(tenant, role, clusters)
    operator.records(Action.BIND, f"bindings/{group}")
    operator.sessions.store.bind(Binding(tenant=tenant, group=group, grant=grant))
    say(f"people of {group} are {role} of {tenant}{_where(clusters)}")


@click.command(epilog=EXAMPLES)
@click.argument("tenant")
@click.argument("group")
@service_option
def unbind(tenant: str, group: str, stack: str) -> None:
    """Unbind a GROUP of the issuer from TENANT. Its sessions end at their next request."""
    operator = _operator(tenant, stack)
    if group not in {binding.group for binding in operator.sessions.store.bindings(tenant)}:
        raise NotFound(f"{group[:64]} is not bound to {tenant}: `plimsoll tenants people` lists")
    operator.records(Action.UNBIND, f"bindings/{group}")
    operator.sessions.store.unbind(tenant, group)
    say(f"{group} is not bound to {tenant} any more")


@click.command(epilog=EXAMPLES)
@click.argument("tenant")
@service_option
@output_option
def people(tenant: str, stack: str, output: Output) -> None:
    """List the bound groups, the sessions and the API tokens of TENANT."""
    found = people_of(_operator(tenant, stack).sessions, tenant, SystemClock().now())
    if output != "table":
        print_answer(msgspec.to_builtins(found), output)
    else:
        _show(found)


@click.command("sign-out", epilog=EXAMPLES)
@click.argument("tenant")
@click.argument("person")
@service_option
def sign_out(tenant: str, person: str, stack: str) -> None:
    """End all sessions of PERSON in TENANT.

    The person can sign in again while one of their groups is bound: change the group at the issuer.
    """
    operator = _operator(tenant, stack)
    operator.records(Action.REVOKE, f"people/{person}")
    ended = operator.sessions.end_all(tenant, person)
    say(f"{ended} sessions of {person} ended")


@click.group(epilog=EXAMPLES)
def tokens() -> None:
    """Create and revoke API tokens of programs; `plimsoll tenants people` lists them."""


@tokens.command(epilog=EXAMPLES)
@click.argument("tenant")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([PersonRole.VIEWER.value, PersonRole.OPERATOR.value]),
    required=True,
    help="Give this role.",
)
@click.option(
    "--days",
    type=click.IntRange(1, MOST_TOKEN_LIFE.days),
    default=90,
    show_default=True,
    help="Let the token expire after this many days.",
)
@cluster_option
@service_option
def create(  # noqa: PLR0913, PLR0917 - the options of the command
    tenant: str, name: str, role: str, days: int, clusters: tuple[str, ...], stack: str
) -> None:
    """Print a new API token. It is shown this once: a program sends it as `Authorization: Bearer`."""
    operator = _operator(tenant, stack)
    bearer, token = operator.sessions.make_token(
        tenant,
        name,
        _grant(tenant, role, clusters),
        made_by=operator.arn.rpartition(":")[2],
        life=timedelta(days=days),
        now=SystemClock().now(),
    )
    operator.records(Action.CREATE_TOKEN, f"tokens/{token.id}")
    say(bearer.text)
    say(
        f"{token.id} is {role} of {tenant}{_where(clusters)} until {token.expires:%Y-%m-%d}",
        err=True,
    )


@tokens.command("revoke", epilog=EXAMPLES)
@click.argument("tenant")
@click.argument("token")
@service_option
def revoke_token(tenant: str, token: str, stack: str) -> None:
    """Revoke a TOKEN of TENANT by its id, from its next request on."""
    operator = _operator(tenant, stack)
    if not token.startswith("t-") or not operator.sessions.end(tenant, token):
        raise NotFound(f"{tenant} has no token {token[:64]}: `plimsoll tenants people` lists them")
    operator.records(Action.REVOKE_TOKEN, f"tokens/{token}")
    say(f"{token} is revoked")


def _grant(tenant: str, role: str, clusters: Iterable[str]) -> Grant:
    """Return the grant of a role on clusters, which need not be enrolled yet: their ids follow from the names."""
    now = SystemClock().now()
    ids = [
        Invitation(
            tenant=checked_name(tenant, "the tenant"),
            role=Role.AGENT,
            name=checked_name(name, "the cluster"),
            expires=now,
        ).subject
        for name in clusters
    ]
    return checked_grant(PersonRole(role), ids)


def _where(clusters: tuple[str, ...]) -> str:
    return f" on {', '.join(clusters)}" if clusters else ""


def _show(found: People) -> None:
    to = console()
    groups = table("group", "role", "clusters")
    for binding in found.bindings:
        groups.add_row(printable(binding.group), binding.grant.role, _clusters(binding.grant))
    sessions = table("session", "person", "name", "groups", "last used")
    for session in found.sessions:
        sessions.add_row(
            session.id,
            session.person,
            printable(session.name),
            printable(", ".join(session.groups)),
            f"{session.seen:%m-%d %H:%M}",
        )
    made = table("token", "name", "role", "clusters", "made by", "expires", "last used")
    for token in found.tokens:
        made.add_row(
            token.id,
            token.name,
            token.grant.role,
            _clusters(token.grant),
            printable(token.made_by),
            f"{token.expires:%Y-%m-%d}",
            "never" if token.seen is None else f"{token.seen:%Y-%m-%d}",
        )
    for rows in (groups, sessions, made):
        to.print(rows)


def _clusters(limits: Limits) -> str:
    return "all" if limits.clusters is None else ", ".join(limits.clusters)
