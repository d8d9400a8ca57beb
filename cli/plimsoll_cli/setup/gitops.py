"""The manifests as files of a repository, with the objects of Argo CD and Flux that point to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import NAMESPACE
from plimsoll_cli.setup.manifests import KUSTOMIZATION, NO_OVERLAY, sources_of
from plimsoll_cli.stack import command

NAME: Final = "plimsoll"
"""Of the objects, and of what they sync."""
_SYNC_INTERVAL: Final = "10m"
_FOLDER: Final = "cluster"
"""The folder of the files of `infra/cluster`, beside the top kustomization."""


def files_of(
    overlays: Sequence[str], *, repository: str, path: str, revision: str
) -> Mapping[str, str]:
    """Return the files by their paths below the folder.

    Args:
        overlays: those beside the base.
        repository: the URL from which Argo CD or Flux reads.
        path: the folder inside the repository.
        revision: the branch.
    """
    found = {
        f"{_FOLDER}/{name}": text
        for overlay in (None, *overlays)
        for name, text in sources_of(overlay)
    }
    top = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [_FOLDER, *(f"{_FOLDER}/{overlay}" for overlay in overlays)],
    }
    return found | {
        KUSTOMIZATION: _yaml(top),
        "argocd.yaml": _yaml(_application(repository, path, revision)),
        "flux.yaml": _yaml(*_flux(repository, path, revision)),
    }


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder, which is made where it is not there.

    Raises:
        BadInput: one of them cannot be written.
    """
    for name, text in files.items():
        file = folder / name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise BadInput(f"--gitops {file}: {error.strerror}") from error


def next_step(folder: Path, name: str, overlays: Sequence[str], stack: str) -> str:
    """Return what to do with the files of a cluster, with the command that does what they do not.

    Args:
        folder: where they are.
        name: of the cluster.
        overlays: those beside the base.
        stack: the name of the stack.
    """
    chosen = [word for overlay in overlays or [NO_OVERLAY] for word in ("--overlay", overlay)]
    rest = command(stack, "clusters", "add", name, "--context", "CONTEXT", *chosen)
    return (
        f"Commit and push them, then apply {folder / 'argocd.yaml'} or {folder / 'flux.yaml'} to the cluster. Once the "
        f"objects are there, this finds them and does the rest: {rest}"
    )


def _application(repository: str, path: str, revision: str) -> Mapping[str, Any]:
    """Return Argo CD's object: https://argo-cd.readthedocs.io/en/stable/operator-manual/application.yaml."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": NAME, "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": repository, "path": path, "targetRevision": revision},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True},
                # The policies are larger than the annotation of a client-side apply is for.
                "syncOptions": ["ServerSideApply=true"],
            },
        },
    }


def _flux(repository: str, path: str, revision: str) -> Sequence[Mapping[str, Any]]:
    """Return Flux's objects: https://fluxcd.io/flux/components/kustomize/kustomizations/."""
    metadata = {"name": NAME, "namespace": "flux-system"}
    return (
        {
            "apiVersion": "source.toolkit.fluxcd.io/v1",
            "kind": "GitRepository",
            "metadata": metadata,
            "spec": {"interval": _SYNC_INTERVAL, "url": repository, "ref": {"branch": revision}},
        },
        {
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            "kind": "Kustomization",
            "metadata": metadata,
            "spec": {
                "interval": _SYNC_INTERVAL,
                "path": f"./{path}",
                "prune": True,
                "wait": True,
                "sourceRef": {"kind": "GitRepository", "name": NAME},
            },
        },
    )


def _yaml(*objects: Mapping[str, Any]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False)
