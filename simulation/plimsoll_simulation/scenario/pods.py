"""Pods as manifests of drills may write them, and what their annotations say of how they behave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, override

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.domain.errors import BadInput
from plimsoll.domain.kubernetes import parse_duration
from plimsoll_simulation.declared import Contradiction, Label, Name, repeated
from plimsoll_simulation.durations import EXAMPLES
from plimsoll_simulation.fake_cluster.pod_annotations import (
    NEVER_READY,
    RESIZE,
    RUN,
    STARTUP,
    STOP,
    USAGE,
)
from plimsoll_simulation.scenario.object_fields import (
    Amounts,
    Effect,
    LabelSelector,
    Metadata,
    ObjectFields,
    Positive,
    Strings,
    Whole,
    among,
)
from plimsoll_simulation.scenario.problems import listed, rename, shown

PREFIX: Final = "drill.plimsoll.dev/"


class ContainerResources(ObjectFields, extra="allow"):
    """A limit without a request is the request too."""

    __pydantic_extra__: dict[Annotated[str, among("claims")], Any]
    limits: Amounts | None = None
    requests: Amounts = Field(default_factory=dict, validate_default=True)

    @field_validator("requests")
    @classmethod
    def _limited(cls, requests: Amounts, info: ValidationInfo) -> Amounts:
        return {**(info.data.get("limits") or {}), **requests}


class Container(ObjectFields, extra="allow"):
    __pydantic_extra__: dict[
        Annotated[
            str,
            among(
                "args command env envFrom imagePullPolicy lifecycle livenessProbe ports "
                "readinessProbe resizePolicy restartPolicy restartPolicyRules securityContext "
                "startupProbe stdin stdinOnce terminationMessagePath terminationMessagePolicy tty "
                "volumeDevices volumeMounts workingDir"
            ),
        ],
        Any,
    ]
    name: Label
    image: Annotated[str, Field(min_length=1)]
    resources: ContainerResources = Field(
        default_factory=lambda: ContainerResources.model_validate({})
    )


class Affinity(ObjectFields):
    node_affinity: dict[str, Any] | None = None
    pod_affinity: dict[str, Any] | None = None
    pod_anti_affinity: dict[str, Any] | None = None


class Toleration(ObjectFields):
    key: str | None = None
    operator: Literal["Exists", "Equal", "Lt", "Gt"] = "Equal"
    value: str | None = None
    effect: Effect | None = None
    toleration_seconds: int | None = None


class SpreadConstraint(ObjectFields):
    max_skew: Positive
    topology_key: str
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None
    min_domains: Positive | None = None
    match_label_keys: tuple[str, ...] | None = None
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    node_taints_policy: Literal["Honor", "Ignore"] | None = None


class ClaimOfVolume(ObjectFields):
    claim_name: Name
    read_only: bool | None = None


class Volume(ObjectFields, extra="allow"):
    name: Label
    persistent_volume_claim: ClaimOfVolume | None = None


class PodSpec(ObjectFields, extra="allow"):
    __pydantic_extra__: dict[
        Annotated[
            str,
            among(
                "activeDeadlineSeconds automountServiceAccountToken dnsConfig enableServiceLinks "
                "ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname "
                "hostnameOverride imagePullSecrets nodeName os overhead preemptionPolicy "
                "readinessGates resourceClaims resources runtimeClassName schedulingGates "
                "schedulingGroup serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace "
                "subdomain"
            ),
        ],
        Any,
    ]
    containers: Annotated[tuple[Container, ...], Field(min_length=1)]
    init_containers: tuple[Container, ...] | None = None
    termination_grace_period_seconds: Whole = 30
    node_selector: Strings | None = None
    restart_policy: Literal["Always", "OnFailure", "Never"] = "Always"
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    volumes: tuple[Volume, ...] | None = None
    dns_policy: Any = "ClusterFirst"
    scheduler_name: Any = "default-scheduler"
    security_context: Any = Field(default_factory=dict)

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        yield from repeated("containers", [each.name for each in self.containers], "container")


class PodMetadata(ObjectFields, extra="allow"):
    """Metadata of a pod or a template, whose annotations may say how the pod behaves."""

    labels: Strings = Field(default_factory=dict)
    annotations: Strings = Field(default_factory=dict)

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        for key, value in self.annotations.items():
            if key.startswith(PREFIX):
                yield from _behaviour(key, value)


class NamedPodMetadata(Metadata, PodMetadata):
    """Metadata of a bare pod."""


class PodTemplate(ObjectFields):
    metadata: PodMetadata = PodMetadata()
    spec: PodSpec


def _behaviour(key: str, value: str) -> Iterator[Contradiction]:
    path, known = ("annotations", key), (STARTUP, STOP, NEVER_READY, RUN, USAGE, RESIZE)
    if key not in known:
        yield Contradiction(
            path=path,
            found=f"the unknown annotation {key}",
            allowed=listed(known),
            cure=rename(key, known, "Remove it"),
        )
    elif key == USAGE:
        if not re.fullmatch("[0-9]{1,4}%", value):
            yield Contradiction(
                path=path, found=shown(value), allowed="a share such as 70%", cure="Write one"
            )
    elif key == RESIZE:
        if not re.fullmatch("[0-9]{1,6}m?", value):
            yield Contradiction(
                path=path, found=shown(value), allowed="CPU such as 700m", cure="Write some"
            )
    elif key == NEVER_READY:
        if value not in {"true", "false"}:
            yield Contradiction(
                path=path, found=shown(value), allowed='"true" or "false"', cure='Write "true"'
            )
    else:
        try:
            parse_duration(value)
        except BadInput:
            yield Contradiction(
                path=path, found=shown(value), allowed=EXAMPLES, cure="Write a duration"
            )
