"""`plimsoll clusters`: the clusters of a deployed stack, their modes and policies."""

from __future__ import annotations

from typing import Final

import click

from plimsoll_cli.cluster.add_cluster import add
from plimsoll_cli.cluster.list_clusters import list_
from plimsoll_cli.cluster.remove_cluster import remove
from plimsoll_cli.cluster.set_cluster import set_
from plimsoll_cli.cluster.template import template

EXAMPLES: Final = """\b
Examples:
  plimsoll clusters add harbor --context harbor --dry-run
  plimsoll clusters add harbor --context harbor --grow on-demand
  plimsoll clusters add harbor --context harbor --print
  plimsoll clusters add harbor --gitops clusters/harbor --repository https://git.example.com/platform.git
  plimsoll clusters add harbor
  plimsoll clusters add lab --endpoint https://10.0.0.1:6443 --ca ca.pem --secret plimsoll/lab
  plimsoll clusters add quay --role arn:aws:iam::210987654321:role/plimsoll-spoke-us-east-1 --external-id KEY
  plimsoll clusters list --output json
  plimsoll clusters list --wide
  plimsoll clusters set harbor --mode act
  plimsoll clusters set harbor --mode act --act-in staging --act-in web
  plimsoll clusters set harbor --min-on-demand 30%
  plimsoll clusters set harbor --on rebalance-recommendation=cordon --nodes-per-hour 2
  plimsoll clusters set harbor --maintenance-window "sat,sun 22:00-04:00"
  plimsoll clusters set harbor --agent a-d12436e2cf24b1d86001dfd9
  plimsoll clusters set quay --external-id KEY
  plimsoll clusters remove lab --dry-run
  plimsoll clusters remove lab
  plimsoll clusters remove harbor --context harbor
  plimsoll clusters template spoke > spoke.yaml

\b
Exit status:
  0  done
  1  you did not confirm, a step failed, or an interruption is still open in the cluster
  2  an argument is wrong, or the stack or the cluster cannot be reached
"""


@click.group(epilog=EXAMPLES)
def clusters() -> None:
    """Manage the clusters of a stack.

    A cluster starts in the mode observe: Plimsoll plans and reports, and writes nothing.
    """


for command in (add, list_, set_, remove, template):
    command.epilog = EXAMPLES
    clusters.add_command(command)
