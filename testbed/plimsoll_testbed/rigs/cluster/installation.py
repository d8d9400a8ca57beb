"""What an owner applies to a cluster so that Plimsoll may work on it: the manifests of `infra/cluster`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.adapters.kubernetes.transport import Response, Transport
from plimsoll.domain.errors import Refused
from plimsoll_simulation.rigs.rig_cluster import OWNER

KUSTOMIZATION: Final = "kustomization.yaml"
_OK: Final = 200
_CREATED: Final = 201


def install(api: Transport, folder: Path) -> None:
    """Apply the manifests that a folder's kustomization names, in its order.

    Raises:
        Refused: one of them was refused, or its kind is not known to this version of Kubernetes.
    """
    for file, obj in _objects(folder):
        apply(api, obj, source=str(file))


def apply(api: Transport, obj: Mapping[str, Any], *, source: str) -> None:
    """Apply one object.

    Args:
        api: of somebody who may.
        obj: with apiVersion, kind and name.
        source: where it stands, for the error.

    Raises:
        Refused: it was refused, or its kind is not known to this version of Kubernetes.
    """
    name = obj["metadata"]["name"]
    path = f"{_collection(api, obj, source)}/{name}"
    answer = api.call(
        "PATCH",
        path,
        query={"fieldManager": OWNER},
        body=obj,
        content_type="application/apply-patch+yaml",  # JSON is YAML too
    )
    if answer.status not in {_OK, _CREATED}:
        raise Refused(f"{source}: {obj['kind']} {name} was refused: {_why(answer)}")


def _objects(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    kustomization = yaml.safe_load((folder / KUSTOMIZATION).read_text(encoding="utf-8"))
    for name in kustomization["resources"]:
        file = folder / name
        for obj in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if obj is not None:
                yield file, obj


def _collection(api: Transport, obj: Mapping[str, Any], source: str) -> str:
    """Return the path of an object's collection, which only discovery knows for every kind."""
    version = obj["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    answer = api.call("GET", root)
    known = answer.body.get("resources", ()) if answer.status == _OK else ()
    for resource in known:
        if resource["kind"] == obj["kind"] and "/" not in resource["name"]:
            namespace = obj["metadata"].get("namespace")
            middle = f"/namespaces/{namespace}" if resource["namespaced"] else ""
            return f"{root}{middle}/{resource['name']}"
    raise Refused(
        f"{source}: this version of Kubernetes knows no {obj['kind']} of {version}; before 1.30 apply "
        "infra/cluster-rbac-only"
    )


def _why(answer: Response) -> str:
    return str(answer.body["message"] if isinstance(answer.body, dict) else answer.body)
