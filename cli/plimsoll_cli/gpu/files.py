"""Manifests that `plimsoll gpu` writes for you to commit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, override

import yaml

from plimsoll_service.domain.gpu import (
    ClassFit,
    DoNotSplit,
    Owner,
    Schedule,
    Slice,
)

CONTAINER: Final = "CONTAINER"
"""Stands for the name of the container, which no document holds."""
LONGEST_SCHEDULE: Final = 54
"""Characters of a ScaledObject's name: that of its HorizontalPodAutoscaler is a label of at most 63."""
_DAY: Final = 24


def write(folder: Path, found: Mapping[str, str]) -> None:
    """Write files by name, and make the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")


def scaled_object(owner: Owner, schedule: Schedule) -> str:
    """Return a KEDA ScaledObject that keeps an owner at zero in the hours that are off.

    https://keda.sh/docs/latest/scalers/cron/
    """
    days: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for begin, end in schedule.on():
        day = begin // _DAY
        days[begin % _DAY, end % _DAY, end // _DAY - day].append(day)
    triggers = [
        {
            "type": "cron",
            "metadata": {
                "timezone": "Etc/UTC",
                "start": _cron(begin, on),
                "end": _cron(end, [day + later for day in on]),
                "desiredReplicas": str(schedule.replicas),
            },
        }
        for (begin, end, later), on in sorted(days.items())
    ]
    manifest = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": _schedule_name(owner), "namespace": owner.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": owner.kind, "name": owner.name},
            "minReplicaCount": 0,
            "maxReplicaCount": schedule.replicas,
            "triggers": triggers,
        },
    }
    return f"# {schedule.reason}\n# Remove another autoscaler of the workload first.\n" + _yaml(
        manifest
    )


def _schedule_name(owner: Owner) -> str:
    """Return a name so short that KEDA can put `keda-hpa-` before it.

    https://github.com/kedacore/keda/blob/main/apis/keda/v1alpha1/scaledobject_webhook.go
    """
    name = f"{owner.name}-gpu-hours"
    if len(name) <= LONGEST_SCHEDULE:
        return name
    return f"gpu-hours-{sha256(f'{owner.kind}/{owner.name}'.encode()).hexdigest()[:12]}"


def patch(of: ClassFit, container: str) -> str:
    """Return the patch of the pod template that asks for what is advised; empty: nothing changes."""
    size = of.size
    if isinstance(size, DoNotSplit):
        return ""
    if of.mechanism == "kai":
        return _fraction(of, container)
    if isinstance(size, Slice) and of.mechanism == "dra":
        return _claiming(of, container, size)
    name = f"mig-{size.profile.name}" if isinstance(size, Slice) else "gpu.shared"
    resource = f"nvidia.com/{name}"
    if resource == of.resource:
        return ""
    limits = {of.resource: None, resource: 1}
    return _yaml(_template({}, {"limits": limits, "requests": limits}, container))


def claim(of: ClassFit) -> str:
    """Return the ResourceClaimTemplate of a slice, for NVIDIA's DRA driver; empty: none is needed.

    Its spec cannot be changed, so another profile has another name.
    """
    size = of.size
    if of.mechanism != "dra" or not isinstance(size, Slice):
        return ""
    profile = f"device.attributes['gpu.nvidia.com'].profile == '{size.profile.name}'"
    device = {"deviceClassName": "mig.nvidia.com", "selectors": [{"cel": {"expression": profile}}]}
    return _yaml(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": _claim_name(of, size), "namespace": of.of.namespace},
            "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": device}]}}},
        }
    )


def _claiming(of: ClassFit, container: str, size: Slice) -> str:
    gone = {of.resource: None}
    resources = {"claims": [{"name": "gpu"}], "limits": gone, "requests": gone}
    named = {"name": "gpu", "resourceClaimTemplateName": _claim_name(of, size)}
    return _yaml(_template({"resourceClaims": [named]}, resources, container))


def _claim_name(of: ClassFit, size: Slice) -> str:
    return f"{of.of.owner}-{size.profile.name}"


def _fraction(of: ClassFit, container: str) -> str:
    """Return the patch that asks KAI for memory, which it does not isolate.

    https://github.com/kai-scheduler/KAI-Scheduler/tree/main/docs/gpu-sharing
    """
    gone = {of.resource: None}
    found = _template(
        {"schedulerName": "kai-scheduler"}, {"limits": gone, "requests": gone}, container
    )
    found["spec"]["template"]["metadata"] = {"annotations": {"gpu-memory": str(of.need_mib)}}
    return _yaml(found)


def _template(spec: Mapping[str, Any], resources: Mapping[str, Any], container: str) -> Any:
    containers = [{"name": container, "resources": resources}]
    return {"spec": {"template": {"spec": {**spec, "containers": containers}}}}


def _cron(hour: int, days: list[int]) -> str:
    """Return an hour of some days as cron writes it; 0 is Monday here, and Sunday there."""
    on = sorted((day + 1) % 7 for day in days)
    return f"0 {hour} * * {'*' if len(on) == 7 else ','.join(map(str, on))}"  # noqa: PLR2004 - all


class _Dumper(yaml.SafeDumper):
    """Writes a value as often as it occurs, and no alias."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(manifest: Any) -> str:
    return yaml.dump(manifest, Dumper=_Dumper, sort_keys=False)
