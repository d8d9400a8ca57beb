"""The files of `examples/gpu-tenancy`: their objects, and the nodes of their drill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.domain.kubernetes import ZONE
from tests.support.fake_clusters import Json

FOLDER: Final = Path(__file__).parents[2] / "examples" / "gpu-tenancy"
POOL: Final = "example.com/gpu-pool"
SLICE: Final = "nvidia.com/mig-1g.10gb"


def objects(name: str) -> list[Any]:
    """Return the documents of a file."""
    return list(yaml.safe_load_all((FOLDER / f"{name}.yaml").read_text()))


def groups() -> list[Any]:
    """Return the node groups of the drill."""
    found: list[Any] = objects("drill")[0]["spec"]["clusters"][0]["nodeGroups"]
    return found


def nodes() -> Iterator[Json]:
    """Yield the nodes of the drill at its start."""
    for group in groups():
        for number in range(group["size"]):
            name = f"{group['name']}-{number + 1}"
            zone = group["zones"][number % len(group["zones"])]
            yield {
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/hostname": name, ZONE: zone, **group["labels"]},
                },
                "spec": {
                    "taints": group["taints"],
                    "providerID": f"aws:///{zone}/i-{sum(name.encode()):017x}",
                },
                "status": {"allocatable": {k: str(v) for k, v in group["allocatable"].items()}},
            }


def on(job: Json, **changes: Any) -> Json:
    """Return a Job with another name, and other fields of its pods' spec."""
    name, template = changes.pop("name"), job["spec"]["template"]
    changed = {**template, "spec": {**template["spec"], **changes}}
    return {
        **job,
        "metadata": {**job["metadata"], "name": name},
        "spec": {**job["spec"], "template": changed},
    }


def asking(resource: str, count: int = 1) -> list[Json]:
    """Return the containers of a pod that asks for so many of a resource."""
    return [{"name": "main", "image": "x", "resources": {"limits": {resource: str(count)}}}]
