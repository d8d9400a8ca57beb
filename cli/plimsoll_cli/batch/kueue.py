"""Objects of Kueue read as a file of queues: ResourceFlavors, Cohorts, ClusterQueues and LocalQueues.

What has no counterpart is refused by name. What a person has to do beside the file is returned as notes.

https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta1/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from plimsoll.domain.errors import BadInput
from plimsoll_batch.adapters.documents import Strict, told, validated
from plimsoll_batch.adapters.queues_file import Quantity, TaintEntry, TolerationEntry
from plimsoll_batch.domain import names

GROUP: Final = "kueue.x-k8s.io/"
type Json = dict[str, Any]


class _Metadata(Strict):
    """What the API server added is not read."""

    model_config = ConfigDict(extra="ignore")
    name: str
    namespace: str = "default"


class _Quota(Strict):
    name: str
    nominal_quota: Quantity
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class _FlavorQuotas(Strict):
    name: str
    resources: list[_Quota]


class _Group(Strict):
    covered_resources: list[str]
    flavors: list[_FlavorQuotas]


class _FairSharing(Strict):
    weight: Quantity = "1"


class _FlavorSpec(Strict):
    node_labels: dict[str, str] = Field(default_factory=dict)
    node_taints: list[TaintEntry] = Field(default_factory=list)
    tolerations: list[TolerationEntry] = Field(default_factory=list)


class _CohortSpec(Strict):
    parent: str | None = None
    parent_name: str | None = None
    resource_groups: list[_Group] = Field(default_factory=list)
    fair_sharing: _FairSharing | None = None


class _Borrow(Strict):
    policy: Literal["Never", "LowerPriority"] = "Never"
    max_priority_threshold: int | None = None


class _Preemption(Strict):
    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: _Borrow | None = None


class _Fungibility(Strict):
    when_can_borrow: Literal["Borrow", "MayStopSearch", "TryNextFlavor"] = "Borrow"
    when_can_preempt: Literal["Preempt", "MayStopSearch", "TryNextFlavor"] = "TryNextFlavor"


class _Selector(Strict):
    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: list[dict[str, Any]] = Field(default_factory=list)


class _QueueSpec(Strict):
    cohort: str | None = None
    cohort_name: str | None = None
    queueing_strategy: str = "BestEffortFIFO"
    namespace_selector: _Selector | None = None
    resource_groups: list[_Group] = Field(default_factory=list)
    preemption: _Preemption = _Preemption()
    flavor_fungibility: _Fungibility = _Fungibility()
    stop_policy: Literal["None", "Hold", "HoldAndDrain"] = "None"
    fair_sharing: _FairSharing | None = None


class _LocalSpec(Strict):
    cluster_queue: str
    stop_policy: Literal["None"] = "None"
    fair_sharing: None = None


class _Object[S](Strict):
    api_version: Annotated[str, Field(pattern=rf"^{GROUP}v[0-9a-z]+$")]
    kind: str
    metadata: _Metadata
    spec: S
    status: Any = None


@dataclass(slots=True, kw_only=True)
class Converted:
    """A file of queues, and what has to be done beside it."""

    file: Json = field(default_factory=lambda: {"flavors": [], "cohorts": [], "queues": []})
    notes: list[str] = field(default_factory=list)


def is_kueue(documents: Sequence[Any]) -> bool:
    """Whether any document is an object of Kueue."""
    return any(
        isinstance(each, dict) and str(each.get("apiVersion", "")).startswith(GROUP)
        for each in flat(documents)
    )


def flat(documents: Sequence[Any]) -> list[Any]:
    """Return documents with those of lists, as `kubectl get` prints them, one by one."""
    found: list[Any] = []
    for each in documents:
        items = each.get("items") if isinstance(each, dict) and each.get("kind") == "List" else None
        found += items if isinstance(items, list) else [each]
    return found


def converted(documents: Sequence[Any]) -> Converted:
    """Return objects of Kueue as a file of queues.

    Raises:
        BadInput: something of them has no counterpart; all of it is named.
    """
    found, problems = Converted(), list[str]()
    for number, each in enumerate(flat(documents)):
        kind = each.get("kind") if isinstance(each, dict) else None
        convert = _KINDS.get(str(kind))
        if convert is None:
            problems.append(
                f"document {number}: beside objects of Kueue only {', '.join(_KINDS)} can stand"
            )
            continue
        try:
            convert(each, found)
        except BadInput as error:
            name = (each.get("metadata") or {}).get("name", number)
            problems += [f"{kind} {name}: {line}" for line in str(error).splitlines()]
    if problems:
        raise BadInput(told(problems))
    there = {cohort["name"] for cohort in found.file["cohorts"]}
    above = [q.get("cohort") for q in found.file["queues"]]
    above += [cohort.get("parent") for cohort in found.file["cohorts"]]
    # Kueue makes the cohorts that others name.
    found.file["cohorts"] += [{"name": n} for n in dict.fromkeys(above) if n and n not in there]
    return found


def _flavor(document: Json, found: Converted) -> None:
    read = validated(_Object[_FlavorSpec], {"spec": {}, **document})
    said: Json = {"name": read.metadata.name}
    spec = read.spec.model_dump(by_alias=True, exclude_defaults=True)
    if "nodeTaints" in spec:
        spec["taints"] = spec.pop("nodeTaints")
    found.file["flavors"].append(said | spec)


def _cohort(document: Json, found: Converted) -> None:
    read = validated(_Object[_CohortSpec], {"spec": {}, **document})
    spec = read.spec
    said = {"name": read.metadata.name, "parent": spec.parent_name or spec.parent}
    found.file["cohorts"].append(_said(said | _shared(spec, read.metadata.name, found)))


def _queue(document: Json, found: Converted) -> None:
    read = validated(_Object[_QueueSpec], document)
    spec, name = read.spec, read.metadata.name
    may, flavors = spec.preemption, spec.flavor_fungibility
    preemption = {
        "withinQueue": may.within_cluster_queue,
        "reclaimWithinCohort": may.reclaim_within_cohort,
        "borrowWithinCohort": may.borrow_within_cohort
        and may.borrow_within_cohort.model_dump(by_alias=True, exclude_defaults=True),
    }
    said = {
        "name": name,
        "cohort": spec.cohort_name or spec.cohort,
        "access": _access(spec, name, found),
        "order": spec.queueing_strategy,
        "preemption": {k: v for k, v in preemption.items() if v and v != "Never"},
        "whenCanBorrow": flavors.when_can_borrow.replace("MayStopSearch", "Borrow"),
        "whenCanPreempt": flavors.when_can_preempt.replace("MayStopSearch", "Preempt"),
        "stopped": spec.stop_policy != "None",
    }
    defaults = {
        "access": "all",
        "order": "BestEffortFIFO",
        "whenCanBorrow": "Borrow",
        "whenCanPreempt": "TryNextFlavor",
    }
    if spec.stop_policy == "HoldAndDrain":
        found.notes.append(
            f"queue {name}: stopped lets running gangs end; end them with `plimsoll jobs suspend`"
        )
    said |= _shared(spec, name, found)
    found.file["queues"].append(_said({k: v for k, v in said.items() if v != defaults.get(k)}))


def _local(document: Json, found: Converted) -> None:
    read = validated(_Object[_LocalSpec], document)
    name, namespace = read.metadata.name, read.metadata.namespace
    queue = read.spec.cluster_queue
    found.notes.append(
        f"LocalQueue {namespace}/{name}: kubectl label namespace {namespace} {names.GRANT}{queue}=true;"
        f" its Jobs get the label {names.QUEUE}={queue} in place of kueue.x-k8s.io/queue-name={name}"
    )


def _access(spec: _QueueSpec, name: str, found: Converted) -> str:
    selector = spec.namespace_selector
    if selector is not None and not (selector.match_labels or selector.match_expressions):
        return "all"
    wanted = "NAMESPACE"
    if selector is not None and not selector.match_expressions:
        pairs = ",".join(f"{key}={value}" for key, value in selector.match_labels.items())
        wanted = f"-l {pairs}"
    found.notes.append(
        f"queue {name}: its namespaceSelector becomes a label of each namespace that may use it:"
        f" kubectl label namespace {wanted} {names.GRANT}{name}=true"
    )
    return "labelled"


def _shared(spec: _CohortSpec | _QueueSpec, name: str, found: Converted) -> Json:
    if spec.fair_sharing is not None:
        found.notes.append(
            f"{name}: its weight counts where the root of its tree has order: dominant-resource-share"
        )
    return {
        "weight": None if spec.fair_sharing is None else spec.fair_sharing.weight,
        "resourceGroups": [_group(group) for group in spec.resource_groups],
    }


def _group(group: _Group) -> Json:
    covered = set(group.covered_resources)
    flavors = []
    for flavor in group.flavors:
        there = {quota.name for quota in flavor.resources}
        if there != covered:
            listed = ", ".join(sorted(there ^ covered))
            raise BadInput(
                f"flavor {flavor.name}: coveredResources and its quotas differ in {listed}"
            )
        quotas = {quota.name: _quota(quota) for quota in flavor.resources}
        flavors.append({"name": flavor.name, "resources": quotas})
    return {"flavors": flavors}


def _quota(quota: _Quota) -> Mapping[str, str]:
    said = {
        "nominal": quota.nominal_quota,
        "borrowingLimit": quota.borrowing_limit,
        "lendingLimit": quota.lending_limit,
    }
    return {key: value for key, value in said.items() if value is not None}


def _said(fields: Json) -> Json:
    """Return the fields that say anything."""
    return {key: value for key, value in fields.items() if value}


_KINDS: Final = {
    "ResourceFlavor": _flavor,
    "Cohort": _cohort,
    "ClusterQueue": _queue,
    "LocalQueue": _local,
}
