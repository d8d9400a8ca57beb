"""`plimsoll agent`: manifests of the optimisation service's agent, and a run by hand."""

from __future__ import annotations

import signal
from base64 import b64encode
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import click
import yaml

from plimsoll.adapters.clock import SystemClock
from plimsoll.adapters.kubernetes.kubeconfig import load
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_agent.config import Config
from plimsoll_agent.output import Output
from plimsoll_agent.service import check_address
from plimsoll_agent.wiring import put_together
from plimsoll_agent.wiring import run as run_agent
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.terminal import say

EXAMPLES: Final = """\b
Examples:
  plimsoll agent install --print --service https://api.example.com/prod \\
    --image registry.example.com/plimsoll-agent:0.3.0 --join-token TOKEN | kubectl apply -f -
  plimsoll agent run --service http://127.0.0.1:4566/prod --context harbor --spool /tmp/spool

\b
Exit status:
  0  the manifests were printed, or the agent was stopped
  2  an argument is wrong, or the cluster or the service cannot be reached
"""


@click.group(epilog=EXAMPLES)
def agent() -> None:
    """Install or run the agent, which reads a cluster for the optimisation service."""


@agent.command(epilog=EXAMPLES)
@click.option("--print", "printed", is_flag=True, help="Print the manifests. [required]")
@click.option("--service", required=True, metavar="URL", help="Set the address of the service.")
@click.option(
    "--image",
    required=True,
    metavar="IMAGE",
    help="Run this image, built from infra/agent/Containerfile.",
)
@click.option(
    "--join-token",
    metavar="TOKEN",
    help="Enrol the cluster with this token of `plimsoll tenants invite`. Without it, the agent keeps its key.",
)
@click.option(
    "--gpu-metrics",
    default="",
    metavar="SOURCE",
    help="Read GPUs from this NAMESPACE/SERVICE of dcgm-exporter, or from the Prometheus at this address.",
)
def install(
    printed: bool, service: str, image: str, join_token: str | None, gpu_metrics: str
) -> None:
    """Print the manifests of an agent that reads, and writes nothing.

    Apply the output with the rights of an administrator. The overlay infra/agent/act grants the right to
    act, and the ConfigMap plimsoll-agent-policy limits it.
    """
    if not printed:
        raise click.UsageError("give --print, and apply the output with kubectl apply -f -")
    check_address(service)
    found = manifests(service, image, join_token, gpu_metrics)
    say(yaml.safe_dump_all(found, sort_keys=False), nl=False)


def manifests(
    service: str, image: str, join_token: str | None, gpu_metrics: str = ""
) -> Iterator[dict[str, Any]]:
    """Yield the manifests of an agent that reads."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    folder = files("plimsoll_agent").joinpath("manifests")
    for name in yaml.safe_load(folder.joinpath("kustomization.yaml").read_text())["resources"]:
        for manifest in yaml.safe_load_all(folder.joinpath(name).read_text(encoding="utf-8")):
            if manifest["kind"] == "Deployment":
                (container,) = manifest["spec"]["template"]["spec"]["containers"]
                container["image"] = image
                settings = {"PLIMSOLL_SERVICE": service, "PLIMSOLL_GPU_METRICS": gpu_metrics}
                for variable in container["env"]:
                    variable["value"] = settings.get(variable["name"], variable["value"])
            if manifest["kind"] == "Secret" and join_token is not None:
                manifest["data"] = {"join-token": b64encode(join_token.encode()).decode()}
            yield manifest


@agent.command(epilog=EXAMPLES)
@click.option("--service", required=True, metavar="URL", help="Set the address of the service.")
@kubeconfig_options
@click.option(
    "--spool",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Keep unsent snapshots in this folder.",
)
@click.option(
    "--gpu-metrics",
    default="",
    metavar="SOURCE",
    help="Read GPUs from this NAMESPACE/SERVICE of dcgm-exporter, or from the Prometheus at this address.",
)
@click.option(
    "--metrics-port",
    type=int,
    default=0,
    help="Serve metrics for Prometheus on this port. [default: a free port]",
)
def run(  # noqa: PLR0913, PLR0917 - the options of the command
    service: str,
    context: str | None,
    kubeconfig: Path | None,
    spool: Path,
    gpu_metrics: str,
    metrics_port: int,
) -> None:
    """Run the agent on this machine with the rights of a kubeconfig, for trials and rigs.

    Apply the manifests of `plimsoll agent install` first, and scale their Deployment to 0.
    """
    clock = SystemClock()
    output = Output(clock)
    transport, _ = load(kubeconfig, context)
    config = Config(
        service=service,
        spool=spool,
        spool_bytes=64 * 2**20,
        metrics_port=metrics_port,
        gpu_metrics=gpu_metrics,
    )
    loops = put_together(transport, config, clock, output)
    signal.signal(signal.SIGTERM, lambda *_: loops.stop())
    run_agent(loops, output, metrics_port)
