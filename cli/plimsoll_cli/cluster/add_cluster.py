"""`plimsoll clusters add`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from plimsoll.adapters.clusters import check_endpoint
from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.domain.errors import BadInput, Conflict
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll_cli.cluster.add_by_context import add_by_context, registered_as
from plimsoll_cli.cluster.cluster_setup import OTHER_ACCOUNT, ClusterSetup
from plimsoll_cli.cluster.first_look import first_look
from plimsoll_cli.environment import Deployed
from plimsoll_cli.kubeconfig_options import kubeconfig_option
from plimsoll_cli.options import environment_of, stack_option
from plimsoll_cli.setup.gitops import files_of, next_step, write
from plimsoll_cli.setup.identity import is_registered, taken
from plimsoll_cli.setup.manifests import NO_OVERLAY
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
@click.option(
    "--context",
    metavar="NAME",
    help="Also apply the manifests and grant access, with your rights, in the cluster of this context.",
)
@kubeconfig_option(
    "With --context: use this kubeconfig. [default: $KUBECONFIG, else ~/.kube/config]"
)
@click.option(
    "--overlay",
    "overlays",
    type=click.Choice([*OVERLAYS, NO_OVERLAY]),
    multiple=True,
    default=["deletions"],
    show_default=True,
    help="With --context or --gitops: apply this overlay too. It gives the right to delete pods at their eviction "
    "deadline (deletions), to make the guard's budgets (guard), or to keep the policy of install-policy up to date "
    "(injection). Repeat it for several.",
)
@click.option(
    "--grow",
    "grown",
    multiple=True,
    metavar="GROUP",
    help="With --context: let Plimsoll grow this node group. Repeat it for several.",
)
@click.option("--dry-run", is_flag=True, help="With --context: print the steps, and write nothing.")
@click.option("--yes", is_flag=True, help="With --context: skip the confirmation.")
@click.option(
    "--print",
    "printed",
    is_flag=True,
    help="With --context: print the steps as a shell script, and write nothing.",
)
@click.option(
    "--gitops",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Only write the manifests into this folder, for Argo CD or Flux.",
)
@click.option("--repository", metavar="URL", help="With --gitops: the repository that holds DIR.")
@click.option(
    "--path", metavar="PATH", help="With --gitops: where the repository holds it. [default: DIR]"
)
@click.option(
    "--revision",
    default="main",
    show_default=True,
    metavar="BRANCH",
    help="With --gitops: the branch of the repository.",
)
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
    context: str | None,
    kubeconfig: Path | None,
    overlays: tuple[str, ...],
    grown: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    printed: bool,
    gitops: Path | None,
    repository: str | None,
    path: str | None,
    revision: str,
    stack: str,
) -> None:
    """Register a cluster in the mode observe.

    With --context the command does all that a cluster needs: it applies the manifests, lets the roles of the stack
    in, tags node groups that may grow, and registers the cluster. It shows the steps, asks once, and ends with what
    the doctor and a rehearsal say. A step that was done before is found done, so you can give the command again
    after a failure, or with a newer version. A registered cluster need not be described again, and keeps its mode and
    policy.

    With --gitops it writes files, and changes nothing in the cluster or in AWS.
    """
    _check_options(ctx, context=context is not None, gitops=gitops is not None)
    chosen = _overlays(overlays)
    if gitops is not None:
        files = _files(gitops, chosen, repository, path, revision)
        write(gitops, files)
        say(f"{len(files)} files are written to {gitops}. {next_step(gitops, name, chosen, stack)}")
        return
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
    if context is None:
        _register(deployed, cluster)
        return
    administered = environment.administered(kubeconfig, context)
    if not eks and endpoint is None and region is None:
        cluster = registered_as(cluster, deployed, administered)
    setup = ClusterSetup(deployed=deployed, administered=administered, cluster=cluster)
    if add_by_context(setup, chosen, grown, dry_run=dry_run, printed=printed, yes=yes):
        first_look(ctx, deployed.stack, name)
    elif not (dry_run or printed):
        ctx.exit(1)


def _check_options(ctx: click.Context, *, context: bool, gitops: bool) -> None:
    """Refuse options that have no effect.

    Raises:
        UsageError: there is one.
    """
    given = {
        param.name: param.opts[0]
        for param in ctx.command.params
        if param.name and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
    }
    of_files = {"repository", "path", "revision"}
    of_context = {"kubeconfig", "grown", "dry_run", "yes", "printed"}
    for name, option in given.items():
        if name in of_context and not context:
            raise click.UsageError(f"{option} needs --context")
        if name in of_files and not gitops:
            raise click.UsageError(f"{option} needs --gitops")
        if name == "overlays" and not (context or gitops):
            raise click.UsageError(f"{option} needs --context or --gitops")
    if context and gitops:
        raise click.UsageError("give --gitops first, and --context once the files are synced")
    if context and "role" in given:
        raise click.UsageError(OTHER_ACCOUNT)
    if context and sum(name in given for name in ("dry_run", "yes", "printed")) > 1:
        raise click.UsageError("give one of --dry-run, --print and --yes")


def _overlays(given: Sequence[str]) -> Sequence[str]:
    if NO_OVERLAY in given and len(given) > 1:
        raise click.UsageError(f"--overlay {NO_OVERLAY}: give no other overlay")
    return [overlay for overlay in OVERLAYS if overlay in given]


def _files(
    folder: Path, overlays: Sequence[str], repository: str | None, path: str | None, revision: str
) -> Mapping[str, str]:
    if repository is None:
        raise click.UsageError("--gitops needs --repository URL")
    if path is None and folder.is_absolute():
        raise click.UsageError("--gitops: say with --path where the repository holds the folder")
    return files_of(
        overlays, repository=repository, path=path or folder.as_posix(), revision=revision
    )


def _register(deployed: Deployed, cluster: Cluster) -> None:
    name, stack = cluster.name, deployed.stack
    doctor = stack.command("doctor", "--cluster", name)
    lacks = f"This names what it lacks, with the cures: {doctor}"
    try:
        deployed.registry.add(cluster)
    except Conflict as error:
        if not is_registered(deployed.registry.get(name), cluster):
            raise taken(cluster, stack) from error
        raise BadInput(f"{name} is registered already. {lacks}") from error
    act = stack.command("clusters", "set", name, "--mode", "act")
    say(f"{name} is registered in the mode observe. {lacks}")
    say(f"When the reports are what you want: {act}")


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
