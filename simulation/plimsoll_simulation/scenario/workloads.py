"""Workloads in manifests of drills: what makes pods from a template, and the claims of its pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal, override

from pydantic import Field

from plimsoll.adapters.kubernetes.objects import parse_selector
from plimsoll.domain.kubernetes import matches, resolve_count
from plimsoll_simulation.declared import Contradiction, Declared, repeated
from plimsoll_simulation.scenario.object_fields import (
    Amount,
    Amounts,
    KubernetesObject,
    LabelSelector,
    ObjectFields,
    PodsOrShare,
    Rolling,
    Whole,
    among,
)
from plimsoll_simulation.scenario.pods import PREFIX, NamedPodMetadata, PodSpec, PodTemplate
from plimsoll_simulation.scenario.problems import listed, shown


class Templated(ObjectFields, defer_build=True):
    """A spec with the template of its pods."""

    template: PodTemplate

    @property
    def kind(self) -> str:
        """The kind whose spec this is."""
        return type(self).__name__.removesuffix("Spec")

    @property
    def restart_policies(self) -> Sequence[str]:
        """What its pods may say; only a Job's pods end."""
        return ("Always",)

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        pod, allowed = self.template.spec, self.restart_policies
        if pod.restart_policy not in allowed:
            given = "restart_policy" in pod.model_fields_set
            yield Contradiction(
                path=("template", "spec", "restartPolicy"),
                found=shown(pod.restart_policy) if given else "nothing",
                allowed=f"{listed(allowed)} in a {self.kind}",
                cure=f"Write restartPolicy: {allowed[-1]}",
            )


class Selecting(Templated):
    """A spec that says by labels which pods are its own."""

    selector: LabelSelector
    min_ready_seconds: Whole = 0

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        yield from super().contradictions()
        labels = self.template.metadata.labels
        selector = self.selector.model_dump(mode="json", by_alias=True, exclude_none=True)
        if not self.selector.match_labels and not self.selector.match_expressions:
            yield Contradiction(
                path=("selector",),
                found="an empty selector",
                allowed="a selector that names labels of the template",
                cure="Add matchLabels",
            )
        elif not matches(parse_selector(selector), labels):
            yield Contradiction(
                path=("selector",),
                found=f"a selector that does not match the labels of the template, {shown(labels)}",
                allowed=f"a selector that takes the {self.kind}'s own pods",
                cure="Make selector and spec.template.metadata.labels agree",
            )


class Workload(KubernetesObject):
    """An object whose pods are made from a template."""

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        for key in self.metadata.annotations:
            if key.startswith(PREFIX):
                yield Contradiction(
                    path=("metadata", "annotations", key),
                    found=f"{key} on the object",
                    allowed="it on the pod template",
                    cure="Move it to spec.template.metadata.annotations",
                )


def _if_rolling[R: Declared](settings: type[R]) -> Callable[[dict[str, Any]], R | None]:
    """Return what gives the default settings of a rolling update, where the type is one."""
    return lambda data: settings() if data.get("type") == "RollingUpdate" else None


class DeploymentRolling(ObjectFields):
    max_unavailable: PodsOrShare = "25%"
    max_surge: PodsOrShare = "25%"


class DeploymentStrategy(ObjectFields):
    type: Literal["RollingUpdate", "Recreate"] = "RollingUpdate"
    rolling_update: DeploymentRolling | None = Field(default_factory=_if_rolling(DeploymentRolling))

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        rolling = self.rolling_update
        if self.type == "Recreate" and rolling is not None:
            yield Contradiction(
                path=("rollingUpdate",),
                found="rollingUpdate with the type Recreate",
                allowed="rollingUpdate with the type RollingUpdate only",
                cure="Remove one of the two",
            )
        elif rolling is not None and not any(
            resolve_count(value, 100, round_up=True)
            for value in (rolling.max_unavailable, rolling.max_surge)
        ):
            yield Contradiction(
                path=("rollingUpdate",),
                found="maxUnavailable and maxSurge both 0",
                allowed="at least one of them above 0, or no rollout could ever begin",
                cure="Raise maxSurge",
            )


class DeploymentSpec(Selecting):
    replicas: Whole = 1
    strategy: DeploymentStrategy = DeploymentStrategy()
    revision_history_limit: Whole = 10
    progress_deadline_seconds: Whole = 600
    paused: bool | None = None


class Deployment(Workload):
    spec: DeploymentSpec


class ReplicaSetSpec(Selecting):
    replicas: Whole = 1


class ReplicaSet(Workload):
    spec: ReplicaSetSpec


class StatefulSetRolling(ObjectFields):
    partition: Whole = 0
    max_unavailable: PodsOrShare | None = None


class StatefulSetStrategy(ObjectFields):
    type: Rolling = "RollingUpdate"
    rolling_update: StatefulSetRolling | None = Field(
        default_factory=_if_rolling(StatefulSetRolling)
    )


class ClaimRequests(ObjectFields, extra="allow"):
    __pydantic_extra__: dict[str, Amount]
    storage: Amount


class ClaimResources(ObjectFields):
    requests: ClaimRequests
    limits: Amounts | None = None


class ClaimSpec(ObjectFields, extra="allow"):
    __pydantic_extra__: dict[Annotated[str, among("dataSource dataSourceRef")], Any]
    access_modes: Annotated[
        tuple[Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany", "ReadWriteMany"], ...],
        Field(min_length=1),
    ]
    resources: ClaimResources
    storage_class_name: str | None = None
    volume_name: str | None = None
    volume_mode: Literal["Filesystem", "Block"] = "Filesystem"
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(KubernetesObject):
    spec: ClaimSpec


class ClaimTemplate(PersistentVolumeClaim):
    api_version: str = "v1"
    kind: str = "PersistentVolumeClaim"


class ClaimRetention(ObjectFields):
    when_deleted: Literal["Retain", "Delete"] = "Retain"
    when_scaled: Literal["Retain", "Delete"] = "Retain"


class Ordinals(ObjectFields):
    start: Whole | None = None


class StatefulSetSpec(Selecting):
    replicas: Whole = 1
    service_name: str | None = None
    pod_management_policy: Literal["OrderedReady", "Parallel"] = "OrderedReady"
    update_strategy: StatefulSetStrategy = StatefulSetStrategy()
    volume_claim_templates: tuple[ClaimTemplate, ...] | None = None
    revision_history_limit: Whole = 10
    persistent_volume_claim_retention_policy: ClaimRetention = ClaimRetention()
    ordinals: Ordinals | None = None

    @override
    def contradictions(self) -> Iterator[Contradiction]:
        yield from super().contradictions()
        names = [claim.metadata.name for claim in self.volume_claim_templates or ()]
        yield from repeated("volumeClaimTemplates", names, "claim", "metadata")


class StatefulSet(Workload):
    spec: StatefulSetSpec


class DaemonSetRolling(ObjectFields):
    max_unavailable: PodsOrShare = 1
    max_surge: PodsOrShare = 0


class DaemonSetStrategy(ObjectFields):
    type: Rolling = "RollingUpdate"
    rolling_update: DaemonSetRolling | None = Field(default_factory=_if_rolling(DaemonSetRolling))


class DaemonSetSpec(Selecting):
    update_strategy: DaemonSetStrategy = DaemonSetStrategy()
    revision_history_limit: Whole = 10


class DaemonSet(Workload):
    spec: DaemonSetSpec


class JobSpec(Templated, extra="allow"):
    __pydantic_extra__: dict[
        Annotated[
            str,
            among(
                "backoffLimitPerIndex managedBy maxFailedIndexes podFailurePolicy "
                "podReplacementPolicy successPolicy"
            ),
        ],
        Any,
    ]
    parallelism: Whole = 1
    completions: Whole = Field(default_factory=lambda data: data.get("parallelism", 1))
    """Without it a Job is done when one pod says so. Here none ever does: all go on side by side."""
    backoff_limit: Whole = 6
    active_deadline_seconds: Whole | None = None
    ttl_seconds_after_finished: Whole | None = None
    completion_mode: Literal["NonIndexed", "Indexed"] = "NonIndexed"
    suspend: bool = False

    @property
    @override
    def restart_policies(self) -> Sequence[str]:
        return "OnFailure", "Never"


class Job(Workload):
    spec: JobSpec


class Pod(KubernetesObject):
    metadata: NamedPodMetadata
    spec: PodSpec
