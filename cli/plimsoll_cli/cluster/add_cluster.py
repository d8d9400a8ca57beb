"""`plimsoll clusters add`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from plimsoll.adapters.clusters import check_endpoint
from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.domain.errors import BadInput, Conflict
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll_cli.cluster.cluster_setup import OTHER_ACCOUNT, ClusterSetup, listed
from plimsoll_cli.cluster.first_look import first_look
from plimsoll_cli.environment import Deployed
from plimsoll_cli.kubeconfig_options import kubeconfig_option
from plimsoll_cli.options import environment_of, stack_option
from plimsoll_cli.setup.gitops import files_of, write
from plimsoll_cli.setup.plan import is_registered, plan_add, unproven
from plimsoll_cli.setup.script import script_of
from plimsoll_cli.terminal import say

NO_OVERLAY: Final = "none"
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
    help="With --context or --gitops: apply this folder of infra/cluster too. Repeat it for several.",
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
    after a failure, or with a newer version.

    With --gitops it writes files, and changes nothing in the cluster or in AWS.
    """
    _check_options(ctx, context=context is not None, gitops=gitops is not None)
    chosen = _overlays(overlays)
    if gitops is not None:
        _write_files(gitops, chosen, repository, path, revision)
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
    setup = ClusterSetup(
        deployed=deployed,
        administered=environment.administered(kubeconfig, context),
        cluster=cluster,
    )
    if _set_up(setup, chosen, grown, dry_run=dry_run, printed=printed, yes=yes):
        first_look(ctx, stack, name)
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


def _write_files(
    folder: Path, overlays: Sequence[str], repository: str | None, path: str | None, revision: str
) -> None:
    if repository is None:
        raise click.UsageError("--gitops needs --repository URL")
    if path is None and folder.is_absolute():
        raise click.UsageError("--gitops: say with --path where the repository holds the folder")
    files = files_of(
        overlays, repository=repository, path=path or folder.as_posix(), revision=revision
    )
    write(folder, files)
    say(
        f"{len(files)} files are written to {folder}. Commit and push them, then apply argocd.yaml or flux.yaml to the "
        "cluster. Once the objects are there, give the command again with --context instead of --gitops: it finds "
        "them and does the rest."
    )


def _register(deployed: Deployed, cluster: Cluster) -> None:
    try:
        deployed.registry.add(cluster)
    except Conflict as error:
        raise _taken(cluster.name, str(error)) from error
    say(
        f"{cluster.name} is registered in the mode observe. Grant the rights of infra/cluster to the "
        f"identity of Plimsoll, and read the reports. Then: plimsoll clusters set {cluster.name} --mode act"
    )


def _taken(name: str, why: str) -> BadInput:
    return BadInput(
        f"{why}: choose another name, or remove that cluster first (plimsoll clusters remove {name})"
    )


def _set_up(  # noqa: PLR0913 - the options
    setup: ClusterSetup,
    overlays: Sequence[str],
    grown: Sequence[str],
    *,
    dry_run: bool,
    printed: bool,
    yes: bool,
) -> bool:
    """Show the steps, ask, and do them; return whether all are done."""
    cluster = setup.cluster
    there = setup.deployed.registry.get(cluster.name)
    if there is not None and not is_registered(there, cluster):
        raise _taken(cluster.name, f"another cluster is registered as {cluster.name} already")
    eks = cluster.kind is ClusterKind.EKS
    if eks:
        setup.check_identity()
    objects = setup.administered.objects
    seen = setup.seen([None, *overlays], objects.holds, grown=grown, eks=eks)
    steps = plan_add(setup.place(), seen, _registration(setup))
    if printed:
        say(script_of(setup.title(), steps), nl=False)
        return False
    say(setup.title())
    for line in listed(steps):
        say(line)
    if seen.untagged:
        say(
            f"Plimsoll may not grow these node groups: {', '.join(seen.untagged)} (--grow NAME allows it)"
        )
    doubt = unproven(cluster, setup.administered.server)
    if doubt is not None:
        say(doubt)
    if dry_run:
        say("Nothing was written.")
        return False
    return setup.carried_out(steps, yes=yes)


def _registration(setup: ClusterSetup) -> str:
    """Return the command that only registers the cluster; a CA certificate is named as a file of its own."""
    cluster, stack = setup.cluster, setup.deployed.stack
    words = ["plimsoll", "clusters", "add", cluster.name]
    if cluster.endpoint is not None:
        words += ["--endpoint", cluster.endpoint]
        words += ["--ca", "ca.pem"] if cluster.ca is not None else []
        words += ["--secret", cluster.secret] if cluster.secret is not None else []
    words += ["--region", cluster.region] if cluster.region != stack.region else []
    return shlex.join([*words, "--stack", stack.name])


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
