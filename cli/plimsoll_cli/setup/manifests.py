"""The manifests of `infra/cluster`, which are data of this package: what `kubectl apply -k` applies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

import yaml

type Manifest = Mapping[str, Any]

BASE: Final = "infra/cluster"
NO_OVERLAY: Final = "none"
"""The value of `--overlay` for the base alone."""
KUSTOMIZATION: Final = "kustomization.yaml"


def folder_of(overlay: str | None) -> str:
    """Return the folder in the checkout that holds the manifests of an overlay, or the base."""
    return BASE if overlay is None else f"{BASE}/{overlay}"


def objects_of(overlay: str | None) -> tuple[Manifest, ...]:
    """Return the objects of the base or of an overlay in the order of its kustomization, with its labels."""
    folder = _data(overlay)
    kustomization = yaml.safe_load(_text(folder, KUSTOMIZATION))
    labels = {k: v for each in kustomization["labels"] for k, v in each["pairs"].items()}
    return tuple(
        _labelled(obj, labels)
        for name in kustomization["resources"]
        for obj in yaml.safe_load_all(_text(folder, name))
        if obj is not None
    )


def sources_of(overlay: str | None) -> Iterator[tuple[str, str]]:
    """Yield the files that kustomize reads, each with its path below the base's folder and its text."""
    folder, below = _data(overlay), "" if overlay is None else f"{overlay}/"
    text = _text(folder, KUSTOMIZATION)
    yield f"{below}{KUSTOMIZATION}", text
    for name in yaml.safe_load(text)["resources"]:
        yield f"{below}{name}", _text(folder, name)


def named(obj: Manifest) -> str:
    """Return how an object is named in messages, as in `Role plimsoll/plimsoll`."""
    namespace = obj["metadata"].get("namespace")
    return f"{obj['kind']} {f'{namespace}/' if namespace else ''}{obj['metadata']['name']}"


def _data(overlay: str | None) -> Traversable:
    root = files("plimsoll_cli").joinpath("manifests/cluster")
    return root if overlay is None else root.joinpath(overlay)


def _text(folder: Traversable, name: str) -> str:
    return folder.joinpath(name).read_text(encoding="utf-8")


def _labelled(obj: Manifest, labels: Mapping[str, str]) -> Manifest:
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}
