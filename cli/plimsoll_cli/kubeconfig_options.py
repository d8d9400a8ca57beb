"""The options that choose a cluster by a kubeconfig: apart, since a command that takes them may reach no cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def kubeconfig_option[F: Callable[..., Any]](says: str) -> Callable[[F], F]:
    """Return the option `kubeconfig` with this help."""
    return click.option("--kubeconfig", type=click.Path(path_type=Path), metavar="FILE", help=says)


def kubeconfig_options[F: Callable[..., Any]](command: F) -> F:
    """Add the options that choose a cluster by a kubeconfig alone: `context` and `kubeconfig`."""
    for option in (
        kubeconfig_option("Use this kubeconfig. [default: $KUBECONFIG, else ~/.kube/config]"),
        click.option(
            "--context", metavar="NAME", help="Use this context. [default: the current one]"
        ),
    ):
        command = option(command)
    return command
