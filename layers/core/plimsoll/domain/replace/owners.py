"""Who else writes a workload's replica count."""

from __future__ import annotations

from typing import Final

from plimsoll.domain.workloads import Workload

GITOPS: Final = (
    "argocd",
    "argo-cd",
    "kustomize-controller",
    "helm-controller",
    "flux",
    "fleet",
    "config-sync",
)
"""How the field managers of the common GitOps tools begin."""


def count_owner(workload: Workload) -> str | None:
    """Return who would undo a changed replica count, in words; None when nobody would."""
    if workload.scaler is not None:
        return f"HorizontalPodAutoscaler {workload.scaler} owns its replicas"
    for manager in workload.managers:
        if manager.lower().startswith(GITOPS):
            return f"{manager} owns its replicas"
    return None
