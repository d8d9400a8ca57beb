"""`plimsoll controlplane`: a real Kubernetes control plane on this machine, for drills and to try.

Standard output carries what a shell or a script wants, and nothing else; everything for people goes
to standard error.
"""

from __future__ import annotations

from dataclasses import asdict

import click

from plimsoll_cli.options import json_option, print_json
from plimsoll_testbed.rigs.controlplane import background, binaries
from plimsoll_testbed.rigs.controlplane.modules import NEWEST, versions
from plimsoll_testbed.rigs.workbench import Workbench

EXAMPLES = """\b
Examples:
  plimsoll controlplane build
  eval "$(plimsoll controlplane up)" && kubectl get nodes
  plimsoll controlplane down
"""

version_option = click.option(
    "--kubernetes",
    "version",
    metavar="MINOR",
    default=NEWEST,
    show_default=True,
    help="A minor version that is pinned; `status` lists them.",
)


@click.group(epilog=EXAMPLES)
def controlplane() -> None:
    """Run a real Kubernetes control plane on this machine.

    etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with simulated nodes and pods.
    The programs are built from source once, or taken from the folder PLIMSOLL_CONTROL_PLANE.
    """


@controlplane.command(
    epilog="""\b
Examples:
  plimsoll controlplane build
  plimsoll controlplane build --kubernetes 1.34
"""
)
@version_option
def build(version: str) -> None:
    """Build its programs, where that was not done yet.

    Takes five to ten minutes on two cores the first time; prints the folder that they are in.
    """
    programs = binaries.find(version)
    click.echo(programs["kube-apiserver"].parent)


@controlplane.command(
    epilog="""\b
Examples:
  plimsoll controlplane up
  eval "$(plimsoll controlplane up --kubernetes 1.34)"
"""
)
@version_option
def up(version: str) -> None:
    """Start it in the background; print the line that lets kubectl find it.

    When it runs already, the line is printed again.
    """
    binaries.find(version)  # a build takes minutes, and is to be seen
    found = background.start(version, Workbench.of_this_process())
    click.echo(
        f"Kubernetes {found.version} runs at {found.url} (process {found.pid}, logs in {found.log})",
        err=True,
    )
    click.echo(f"export KUBECONFIG={found.kubeconfig}")


@controlplane.command(
    epilog="""\b
Examples:
  plimsoll controlplane down
"""
)
def down() -> None:
    """Stop what `up` started, and nothing else."""
    found = background.place(Workbench.of_this_process()).stop()
    said = "nothing runs" if found is None else f"stopped Kubernetes {found.version} at {found.url}"
    click.echo(said, err=True)


@controlplane.command(
    epilog="""\b
Examples:
  plimsoll controlplane status
  plimsoll controlplane status --json

\b
Exit status:
  0  one runs
  1  none runs
"""
)
@json_option
def status(as_json: bool) -> None:
    """Say whether one runs, and which versions there are."""
    bench = Workbench.of_this_process()
    found = background.place(bench).running()
    built = {version: binaries.ready(version, bench=bench) for version in versions()}
    if as_json:
        print_json({"running": None if found is None else asdict(found), "built": built})
    else:
        click.echo(
            "nothing runs"
            if found is None
            else f"Kubernetes {found.version} runs at {found.url} (process {found.pid})"
        )
        for version, there in built.items():
            click.echo(f"{version}  {'built' if there else 'not built yet'}")
    if found is None:
        raise click.exceptions.Exit(1)
