"""`plimsoll gpu apply`: give a plan of layouts to `plimsoll-gpu` of a cluster, and follow what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Final

import click
import msgspec

from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.kubernetes.calls import Call
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.domain.errors import BadInput, MissingRights, NotFound, Temporary
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll.services.ports import Clock
from plimsoll_agent.calls import GET_CONFIG, GET_GPU_PLAN
from plimsoll_agent.gpu_begin import against_config
from plimsoll_cli.gpu.apply_files import ACCOUNT, GRANTS, PLAN, text_of
from plimsoll_cli.gpu.node_progress import NodeProgress, progress_of
from plimsoll_cli.kubeconfig_options import kubeconfig_options
from plimsoll_cli.options import console, environment_of, table
from plimsoll_cli.terminal import say
from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.gpu_plan import (
    CONFIG_MAP,
    GRANTED,
    KEY,
    MOST_NODES,
    GpuPlan,
    parse_plan,
)

EXAMPLES: Final = """\b
Examples:
  plimsoll gpu apply plan
  plimsoll gpu apply plan --go --nodes-per-hour 2
  plimsoll gpu apply --pause

\b
Exit status:
  0  every node has its layout, or nothing speaks against the plan, or it is paused
  1  a node is refused, was stopped, or stays cordoned until you look
  2  an argument or a file is wrong, or the cluster refuses or cannot be reached
"""
LOOK_SECONDS: Final = 15.0
_PATCH: Final = Call(verb="patch", resource="configmaps")
_CREATE: Final = Call(verb="create", resource="configmaps")
_REVIEWS: Final = "authorization.k8s.io"
_MAY: Final = Call(verb="create", group=_REVIEWS, resource="subjectaccessreviews")


@click.command("apply", epilog=EXAMPLES)
@click.argument(
    "folder",
    metavar="[PLANFOLDER]",
    required=False,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@kubeconfig_options
@click.option(
    "--go", is_flag=True, help="Write the plan into the cluster, and follow it to its end."
)
@click.option("--pause", is_flag=True, help="Begin no further node of the plan in the cluster.")
@click.option(
    "--nodes-per-hour",
    type=click.IntRange(1, MOST_NODES),
    metavar="NUMBER",
    help="Begin at most so many nodes within an hour. [default: as in the plan, which is 1]",
)
@click.pass_context
def apply(  # noqa: PLR0913, PLR0917 - the options of the command
    ctx: click.Context,
    folder: Path | None,
    kubeconfig: Path | None,
    context: str | None,
    go: bool,
    pause: bool,
    nodes_per_hour: int | None,
) -> None:
    """Have the layouts of a plan applied, node after node, by the Deployment of infra/agent/gpu-apply.

    PLANFOLDER is that of `plimsoll gpu geometry --files`. Without --go the command changes nothing, and says of
    each node what would be done, or why not. If you stop it, the change goes on.
    """
    if pause is (folder is not None) or (pause and go):
        raise click.UsageError("give either the folder of a plan or --pause")
    environment = environment_of(ctx)
    _, api = environment.by_kubeconfig(kubeconfig, context)
    there = _text(api.requests, GET_GPU_PLAN, NAMESPACE, CONFIG_MAP, KEY)
    if folder is None:
        if there is None:
            raise BadInput(
                f"the cluster has no ConfigMap {NAMESPACE}/{CONFIG_MAP}: nothing to pause"
            )
        # Paused, not deleted: without the plan the agent would undo the change of a node that it is emptying.
        _write(api.requests, msgspec.structs.replace(_parsed(CONFIG_MAP, there), paused=True))
        say("paused: the nodes that were begun are brought to an end")
        return
    plan = _read(folder / PLAN)
    plan = msgspec.structs.replace(plan, nodes_per_hour=nodes_per_hour or plan.nodes_per_hour)
    if there not in {None, text_of(plan)}:
        lines = (there or "").splitlines(), text_of(plan).splitlines()
        for line in unified_diff(*lines, "in the cluster", str(folder / PLAN), lineterm=""):
            say(line)
    source = plan.config
    layouts = _text(api.requests, GET_CONFIG, source.namespace, source.name, source.key)
    if (why := against_config(source, layouts)) is not None and go:
        raise BadInput(f"{why}, or kubectl apply -f {folder / 'mig-config.yaml'}")
    if not go:
        rows = progress_of(plan, layouts, api.observe(), environment.clock.now())
        notes = [*([] if why is None else [why]), *_missing(api.requests, rows, folder)]
        _show(rows, notes)
        ctx.exit(
            1 if notes or any(row.kind in {"refused", "stopped", "alert"} for row in rows) else 0
        )
    if there != text_of(plan):
        _write(api.requests, plan)
    ctx.exit(_follow(api, plan, layouts, environment.clock))


def _read(file: Path) -> GpuPlan:
    try:
        return _parsed(str(file), file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: {error}: write it by `plimsoll gpu geometry --files`") from error


def _parsed(where: str, text: str) -> GpuPlan:
    try:
        return parse_plan(text)
    except Malformed as error:
        raise BadInput(f"{where}: {error}") from error


def _text(requests: Requests, call: Call, namespace: str, name: str, key: str) -> str | None:
    """Return what stands under a key of a ConfigMap; None: it is not there."""
    try:
        data: Mapping[str, str] = (
            requests.send(call, namespace=namespace, name=name).get("data") or {}
        )
    except NotFound:
        return None
    return data.get(key)


def _write(requests: Requests, plan: GpuPlan) -> None:
    body = {"metadata": {"name": CONFIG_MAP}, "data": {KEY: text_of(plan)}}
    try:
        requests.send(_PATCH, namespace=NAMESPACE, name=CONFIG_MAP, body=body)
    except NotFound:
        requests.send(_CREATE, namespace=NAMESPACE, name=CONFIG_MAP, body=body)


def _missing(requests: Requests, rows: Sequence[NodeProgress], folder: Path) -> Sequence[str]:
    """Return what the owner has not granted yet, as far as the asker may know."""
    (group, resource, verb), user = GRANTED, f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
    missing = []
    open_ = [row for row in rows if row.kind != "done"]
    for name in sorted({name for row in open_ for name in (row.label, row.planned) if name}):
        asked = {"group": group, "resource": resource, "verb": verb, "name": name}
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}"]
        spec = {"user": user, "groups": groups, "resourceAttributes": asked}
        body = {"apiVersion": f"{_REVIEWS}/v1", "kind": "SubjectAccessReview", "spec": spec}
        try:
            answer = requests.send(_MAY, body=body)
        except MissingRights:
            say(f"note: you may not ask whether {ACCOUNT} may use {name}", err=True)
            continue
        if not (answer.get("status") or {}).get("allowed"):
            missing.append(f"{ACCOUNT} may not use {name}: kubectl apply -f {folder / GRANTS}")
    return missing


def _show(rows: Sequence[NodeProgress], notes: Sequence[str]) -> None:
    out, found = console(), table("NODE", "NOW", "PLANNED", "WHAT")
    for row in rows:
        found.add_row(row.name, row.label, row.planned, str(row))
    out.print(found)
    for note in notes:
        out.print(f"note: {note}")


def _follow(api: KubernetesCluster, plan: GpuPlan, layouts: str | None, clock: Clock) -> int:
    """Tell of each node as it changes; return the exit status."""
    told: dict[str, str] = {}
    while True:
        try:
            rows = progress_of(plan, layouts, api.observe(), clock.now())
        except Temporary as error:
            say(f"{clock.now():%H:%M:%S} tried again: {error}", err=True)
            clock.sleep(LOOK_SECONDS)
            continue
        for row in rows:
            if told.get(row.name) != str(row):
                say(f"{clock.now():%H:%M:%S} {row.name}: {row}")
                told[row.name] = str(row)
        kinds = {row.kind for row in rows}
        if "alert" in kinds or kinds <= {"done", "stopped"}:
            done = sum(row.kind == "done" for row in rows)
            say(f"{done} of {len(rows)} nodes have their layout")
            return 0 if done == len(rows) else 1
        clock.sleep(LOOK_SECONDS)
