"""`plimsoll plan snippet`: the lines of a manifest that keep a workload's on-demand floor."""

from __future__ import annotations

from typing import Any, Final

import click
import yaml

from plimsoll.domain.kubernetes import (
    CAPACITY_LABELS,
    POD_TEMPLATE_HASH,
    REVISION_HASH,
    OwnerKind,
    Selector,
    Workload,
)
from plimsoll.domain.placement import (
    ON_DEMAND,
    SINGLE_REPLICA,
    FloorConstraint,
    OnDemandFloor,
    label_key,
    plan_placement,
)
from plimsoll_cli.options import Choice, cluster_options, environment_of
from plimsoll_cli.plan.read_cluster import facts_of, layouts_of, observed, status_of
from plimsoll_cli.terminal import say

EXAMPLES: Final = """\b
Examples:
  plimsoll plan snippet shop/web --context harbor
  plimsoll plan snippet shop/web --context harbor --form kustomize > floor.yaml

\b
Exit status:
  0  the lines were printed
  2  the workload has no floor, or the cluster cannot be reached
"""


@click.command(epilog=EXAMPLES)
@click.argument("workload", metavar="NAMESPACE/NAME")
@click.option(
    "--form",
    type=click.Choice(["manifest", "kustomize", "helm"]),
    default="manifest",
    show_default=True,
    help="Print lines of the pod's spec, a patch for Kustomize, or values for a Helm chart.",
)
@cluster_options
@click.pass_context
def snippet(
    ctx: click.Context,
    workload: str,
    form: str,
    choice: Choice,
) -> None:
    """Print the spread constraint or the affinity that keeps a workload's on-demand floor.

    Put the lines into the pod's spec. They use node labels that placement writes, so commit them only
    where placement runs: a pod with the constraint needs a node with the label.
    """
    environment = environment_of(ctx)
    (api, seen), now = observed(environment, choice), environment.clock.now()
    facts = facts_of(environment, choice, api, now)
    chosen = layouts_of(environment, choice, facts, seen, {})
    found = plan_placement(seen, now, namespaces=facts.floors, chosen=chosen)
    floor = status_of(found, workload).floor
    lines = pod_spec(seen.workload[floor.workload], floor)
    say(f"# {floor.reason}")
    say(yaml.safe_dump(_wrapped(lines, floor, form), sort_keys=False), nl=False)


def pod_spec(workload: Workload, floor: OnDemandFloor) -> dict[str, Any]:
    """Return the fields of a pod's spec that keep a floor."""
    if floor.way is FloorConstraint.AFFINITY:
        wanted = {"key": CAPACITY_LABELS[0], "operator": "In", "values": [ON_DEMAND]}
        terms = [{"matchExpressions": [wanted]}]
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        return {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}}
    stateful = floor.workload.kind == OwnerKind.STATEFUL_SET
    constraint = {
        "maxSkew": 1,
        "topologyKey": label_key(floor.layout),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _selector(workload.selector),
        "matchLabelKeys": [REVISION_HASH if stateful else POD_TEMPLATE_HASH],
        "nodeTaintsPolicy": "Honor",
    }
    lines: dict[str, Any] = {"topologySpreadConstraints": [constraint]}
    if floor.layout == SINGLE_REPLICA:  # the constraint says where it may go, and this where first
        wanted = {"key": label_key(SINGLE_REPLICA), "operator": "NotIn", "values": [ON_DEMAND]}
        preference = {"weight": 100, "preference": {"matchExpressions": [wanted]}}
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        lines["affinity"] = {"nodeAffinity": {preferred: [preference]}}
    return lines


def _selector(selector: Selector) -> dict[str, Any]:
    expressions = [
        {"key": r.key, "operator": r.operator, **({"values": list(r.values)} if r.values else {})}
        for r in selector.requirements
    ]
    labels = {"matchLabels": dict(selector.labels)} if selector.labels else {}
    return labels | ({"matchExpressions": expressions} if expressions else {})


def _wrapped(lines: dict[str, Any], floor: OnDemandFloor, form: str) -> dict[str, Any]:
    if form != "kustomize":
        return lines
    ref = floor.workload
    return {
        "apiVersion": "apps/v1",
        "kind": ref.kind,
        "metadata": {"name": ref.name, "namespace": ref.namespace},
        "spec": {"template": {"spec": lines}},
    }
