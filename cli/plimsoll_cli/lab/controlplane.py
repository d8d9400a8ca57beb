"""`plimsoll controlplane`: a real Kubernetes control plane on this machine, for drills and trials.

Standard output carries only text for a shell or a script; messages go to standard error.
"""

from __future__ import annotations

from dataclasses import asdict

import click

from plimsoll_cli.options import Output, output_option, print_answer
from plimsoll_cli.terminal import say
from plimsoll_testbed.rigs.controlplane import background, binaries
from plimsoll_testbed.rigs.controlplane.modules import DEFAULT, versions
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
    default=DEFAULT,
    envvar="PLIMSOLL_KUBERNETES",
    show_default=True,
    help="Use this minor version; `status` lists the pinned ones.",
)


@click.group(epilog=EXAMPLES)
def controlplane() -> None:
    """Run a Kubernetes control plane on this machine, with simulated nodes and pods.

    Plimsoll builds etcd, kube-apiserver, kube-controller-manager and kube-scheduler from source once, or
    takes them from the folder PLIMSOLL_CONTROL_PLANE.
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
    """Build the programs once, and print their folder.

    The first build takes five to ten minutes on two cores.
    """
    programs = binaries.find(version)
    say(programs["kube-apiserver"].parent)


@controlplane.command(
    epilog="""\b
Examples:
  plimsoll controlplane up
  eval "$(plimsoll controlplane up --kubernetes 1.34)"
"""
)
@version_option
def up(version: str) -> None:
    """Start a control plane in the background, and print the KUBECONFIG line for kubectl.

    If a control plane runs already, the command prints its line again.
    """
    binaries.find(version)  # a build takes minutes, and is to be seen
    found = background.start(version, Workbench.of_this_process())
    say(
        f"Kubernetes {found.version} runs at {found.url} (process {found.pid}, logs in {found.log})",
        err=True,
    )
    say(f"export KUBECONFIG={found.kubeconfig}")


@controlplane.command(
    epilog="""\b
Examples:
  plimsoll controlplane down
"""
)
def down() -> None:
    """Stop the control plane that `up` started."""
    found = background.place(Workbench.of_this_process()).stop()
    said = (
        "no control plane runs"
        if found is None
        else f"stopped Kubernetes {found.version} at {found.url}"
    )
    say(said, err=True)


@controlplane.command(
    epilog="""\b
Examples:
  plimsoll controlplane status
  plimsoll controlplane status --output json

\b
Exit status:
  0  a control plane runs
  1  no control plane runs
"""
)
@output_option
def status(output: Output) -> None:
    """Show the running control plane and the pinned versions."""
    bench = Workbench.of_this_process()
    found = background.place(bench).running()
    built = {version: binaries.ready(version, bench=bench) for version in versions()}
    if output != "table":
        print_answer({"running": None if found is None else asdict(found), "built": built}, output)
    else:
        say(
            "no control plane runs"
            if found is None
            else f"Kubernetes {found.version} runs at {found.url} (process {found.pid})"
        )
        for version, there in built.items():
            say(f"{version}  {'built' if there else 'not built yet'}")
    if found is None:
        raise click.exceptions.Exit(1)
