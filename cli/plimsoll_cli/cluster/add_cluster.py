"""`plimsoll clusters add`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import click

from plimsoll.adapters.clusters import check_endpoint
from plimsoll.domain.errors import BadInput, Conflict
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll_cli.options import environment_of, stack_option
from plimsoll_cli.terminal import say

_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,128}")


@click.command()
@click.argument("name")
@click.option("--eks", is_flag=True, help="Register the EKS cluster of this name. [default]")
@click.option(
    "--endpoint",
    metavar="URL",
    help="Register another cluster by the address of its API, https://HOST:PORT.",
)
@click.option(
    "--ca",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --endpoint: trust this CA certificate, in PEM.",
)
@click.option(
    "--secret",
    metavar="ARN_OR_NAME",
    help="With --endpoint: read the token from this secret in Secrets Manager, named plimsoll/….",
)
@click.option(
    "--region", metavar="REGION", help="Set the region of the cluster. [default: the stack's]"
)
@click.option(
    "--role",
    metavar="ARN",
    help="Assume this role, made by infra/spoke.yaml, for a cluster in another account.",
)
@click.option("--external-id", metavar="TEXT", help="With --role: send this external id.")
@stack_option
@click.pass_context
def add(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    name: str,
    eks: bool,
    endpoint: str | None,
    ca: Path | None,
    secret: str | None,
    region: str | None,
    role: str | None,
    external_id: str | None,
    stack: str,
) -> None:
    """Register a cluster in the mode observe."""
    if eks and endpoint is not None:
        raise click.UsageError("give either --eks or --endpoint")
    if endpoint is None and (ca is not None or secret is not None):
        raise click.UsageError("--ca and --secret need --endpoint; an EKS cluster needs neither")
    check_role(role, external_id)
    certificate = None if ca is None else _certificate(ca)
    environment = environment_of(ctx)
    deployed = environment.deployed(stack)
    cluster = Cluster(
        name=name,
        kind=ClusterKind.EKS if endpoint is None else ClusterKind.ENDPOINT,
        region=region or deployed.stack.region,
        endpoint=endpoint,
        ca=certificate,
        secret=secret,
        role=role,
        external_id=external_id,
        added=environment.clock.now(),
    )
    if endpoint is not None:
        check_endpoint(cluster)
    try:
        deployed.registry.add(cluster)
    except Conflict as error:
        raise BadInput(
            f"{error}: choose another name, or remove that cluster first "
            f"(plimsoll clusters remove {name})"
        ) from error
    say(
        f"{name} is registered in the mode observe. Grant the rights of infra/cluster to the "
        f"identity of Plimsoll, and read the reports. Then: plimsoll clusters set {name} --mode act"
    )


def check_role(role: str | None, external_id: str | None) -> None:
    """Refuse a role without an external id, and the reverse.

    Raises:
        UsageError: only one of the two is there.
        BadInput: the role is no ARN of a role.
    """
    if (role is None) != (external_id is None):
        raise click.UsageError("give --role and --external-id together")
    if role is not None and not _ROLE.fullmatch(role):
        raise BadInput(f"--role {role}: give an ARN such as arn:aws:iam::123456789012:role/NAME")


def _certificate(file: Path) -> str:
    try:
        text = file.read_text(encoding="ascii")
    except OSError as error:
        raise BadInput(f"--ca {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"--ca {file}: the file is binary; convert it to PEM") from error
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise BadInput(f"--ca {file}: the file holds no certificate (-----BEGIN CERTIFICATE-----)")
    return text
