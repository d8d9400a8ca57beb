"""Files that steer NVIDIA's mig-manager, Karpenter and Bottlerocket to a plan, and the others of a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import GPU, INSTANCE_TYPE, MIG_SLICES
from plimsoll_cli.gpu.apply_files import (
    CONFIG_KEY,
    GRANTS,
    PLAN,
    apply_plan,
    changes,
    grants,
    text_of,
)
from plimsoll_cli.gpu.fleet_file import Fleet
from plimsoll_service.domain.gpu import (
    CARDS,
    WHOLE_GPU,
    FleetPlan,
    Layout,
    geometries_of,
    layout_name,
    mig_config,
    pair_layouts,
    supply,
)
from plimsoll_service.wire.gpu_plan import MIG_CONFIG

CONFIGURATION: Final = "plimsoll-mig-config"
"""The ConfigMap for mig-manager."""
TAINT: Final = "nvidia.com/mig.config"
LONGEST: Final = 63
"""Characters of a NodePool's name, which is also a label."""
_KNOWN_TO_BOTTLEROCKET: Final = frozenset({"a100", "h100", "h200"})
_OPERATOR: Final = "gpu-operator"
_NO_NAME: Final = re.compile(r"[^a-z0-9-]+")

_LABELS: Final = """\
# Label a node only when it is cordoned and no pod on it holds a GPU: mig-manager evicts none.
#   kubectl apply --server-side --force-conflicts --field-manager plimsoll-gpu -f labels.yaml
"""
_CONFIG: Final = f"""\
# mig-manager reads it once ClusterPolicy has spec.mig.strategy "mixed" and
# spec.migManager.config.name "{CONFIGURATION}".
"""
_KARPENTER: Final = """\
# A NodePool for each layout, split at boot. Set nodeClassRef to your own EC2NodeClass.
# The NodeOverlay (feature gate NodeOverlay, not in EKS Auto Mode) adds the slices to the whole GPUs that
# EC2 reports; the taint keeps pods away that ask for whole GPUs. Let pods that ask for slices tolerate it,
# and the operands of the GPU Operator (daemonsets.tolerations).
"""
_BOTTLEROCKET: Final = """\
# User data of an EC2NodeClass or launch template. Bottlerocket gives all GPUs of a node the same profile.
"""


def write_files(
    folder: Path, plans: Mapping[str, FleetPlan], fleet: Fleet, *, all_pairs: bool
) -> list[Path]:
    """Write the files of a plan into a folder, which is created.

    Args:
        folder: where to.
        plans: by GPU model.
        fleet: the nodes that there are.
        all_pairs: whether the ConfigMap holds every pair of geometries, not only those in use.

    Raises:
        BadInput: a file cannot be written.
    """
    layouts = config_map(plans, all_pairs=all_pairs)
    plan = apply_plan(plans, fleet.uids, layouts)
    texts = {
        "labels.yaml": _LABELS + _yaml([labels(plans)]),
        "mig-config.yaml": _CONFIG + _yaml([layouts]),
        PLAN: text_of(plan),
        GRANTS: grants(
            {
                name
                for node in plan.nodes
                for name in (node.value, fleet.labelled.get(node.name))
                if name
            }
        ),
        "karpenter.yaml": _KARPENTER + _yaml(karpenter(plans)),
        "bottlerocket.toml": _BOTTLEROCKET + "\n".join(bottlerocket(plans)) + "\n",
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--files {folder}: {error.strerror}") from error
    return [folder / name for name in texts]


def labels(plans: Mapping[str, FleetPlan]) -> dict[str, Any]:
    """Return the label of each node that changes, as a list that kubectl applies."""
    items = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {MIG_CONFIG: layout_name(geometries, after)}},
        }
        for name, geometries, after in changes(plans)
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def config_map(plans: Mapping[str, FleetPlan], *, all_pairs: bool) -> dict[str, Any]:
    """Return the ConfigMap of mig-manager with the layouts of a plan, in the format of mig-parted."""
    configs: dict[str, Any] = {"all-disabled": [{"devices": "all", "mig-enabled": False}]}
    for model, layouts in _layouts(plans).items():
        geometries = geometries_of(CARDS[model])
        wanted = set(layouts)
        if all_pairs:
            used = {geometry for layout in layouts for geometry in layout}
            plain = {g for g in geometries.maximal if not _doubled(model, g)} | used
            for gpus in {len(layout) for layout in layouts}:
                wanted |= {*pair_layouts(sorted(plain), gpus)}
        configs |= {
            layout_name(geometries, layout): mig_config(geometries, layout)
            for layout in sorted(wanted)
        }
    text = yaml.safe_dump({"version": "v1", "mig-configs": configs}, sort_keys=False)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIGURATION, "namespace": _OPERATOR},
        "data": {CONFIG_KEY: text},
    }


def karpenter(plans: Mapping[str, FleetPlan]) -> Iterator[dict[str, Any]]:
    """Yield a NodePool and a NodeOverlay for each layout of a card that is on EC2."""
    for model, layouts in _layouts(plans).items():
        geometries = geometries_of(CARDS[model])
        for layout, nodes in layouts.items():
            types = [t for t, n in CARDS[model].instance_types.items() if n == len(layout)]
            given = geometries.by_name(supply(layout))
            if not types or set(given) == {WHOLE_GPU}:
                continue
            label = layout_name(geometries, layout)
            card = model.partition("-")[0].lower()
            name = _NO_NAME.sub("-", f"gpu-{card}-{label}".lower())[:LONGEST].rstrip("-")
            taint = {"key": TAINT, "value": label, "effect": "NoSchedule"}
            instances = {"key": INSTANCE_TYPE, "operator": "In", "values": types}
            node_class = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
            yield {
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "metadata": {"name": name},
                "spec": {
                    "limits": {GPU: nodes * len(layout)},
                    "template": {
                        "metadata": {"labels": {MIG_CONFIG: label}},
                        "spec": {
                            "nodeClassRef": node_class,
                            "requirements": [instances],
                            "taints": [taint],
                        },
                    },
                },
            }
            yield {
                "apiVersion": "karpenter.sh/v1alpha1",
                "kind": "NodeOverlay",
                "metadata": {"name": name},
                "spec": {
                    "requirements": [
                        {"key": "karpenter.sh/nodepool", "operator": "In", "values": [name]},
                    ],
                    "capacity": {
                        f"{MIG_SLICES}{profile}": str(number)
                        for profile, number in given.items()
                        if profile != WHOLE_GPU
                    },
                },
            }


def bottlerocket(plans: Mapping[str, FleetPlan]) -> Iterator[str]:
    """Yield the settings of each layout, or why Bottlerocket cannot make it."""
    for model, layouts in _layouts(plans).items():
        geometries = geometries_of(CARDS[model])
        card = model.partition("-")[0].lower()
        memory = geometries.names[-1].partition(".")[2]
        for layout, nodes in layouts.items():
            yield f"\n# {nodes} nodes of {model}: {layout_name(geometries, layout)}"
            profiles = {name for geometry in layout for name in geometries.by_name(geometry)}
            if card not in _KNOWN_TO_BOTTLEROCKET:
                yield "# Bottlerocket has no settings for this GPU: use the GPU Operator."
            elif profiles == {WHOLE_GPU}:
                yield "# MIG stays off: no settings."
            elif len(set(layout)) > 1 or len(profiles) > 1:
                yield "# Bottlerocket cannot mix profiles: use the GPU Operator."
            else:
                yield "[settings.kubelet-device-plugins.nvidia]"
                yield 'device-partitioning-strategy = "mig"'
                yield "[settings.kubelet-device-plugins.nvidia.mig.profile]"
                yield f'"{card}.{memory}" = "{profiles.pop()}"'


def _layouts(plans: Mapping[str, FleetPlan]) -> dict[str, dict[Layout, int]]:
    """Return how many nodes have each layout, by model; only of cards that MIG splits."""
    found: dict[str, dict[Layout, int]] = {}
    for model, plan in plans.items():
        if CARDS[model].profiles:
            used = found[model] = {}
            for node in plan.nodes:
                if node.after is not None:
                    used[node.after] = used.get(node.after, 0) + 1
    return found


def _doubled(model: str, geometry: tuple[int, ...]) -> bool:
    """Whether a geometry has the 1g of double memory, which doubles the number of geometries."""
    card = CARDS[model]
    profiles = (None, *card.profiles.values())
    return any(
        number and profile is not None and profile.memory > profile.compute == 1
        for profile, number in zip(profiles, geometry, strict=True)
    )


def _yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)
