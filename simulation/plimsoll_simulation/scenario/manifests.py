"""Reads ordinary Kubernetes manifests: what a drill's cluster holds at time 0.

The files are checked as strictly as an API server would check what a drill reads of them, since a
field that is misspelt would otherwise be a drill of something else. Objects come back as plain
JSON with the defaults that Kubernetes would fill in (`kinds.py`). Charts and `kubectl get` write more
than a drill plays: what changes none of its pods is left out and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, override

from plimsoll_simulation.scenario.kinds import KINDS, MODELS, Namespace
from plimsoll_simulation.scenario.object_fields import KubernetesObject
from plimsoll_simulation.scenario.problems import Place, Problems, listed, nearest, rename, shown
from plimsoll_simulation.scenario.validation import validate
from plimsoll_simulation.scenario.yamlfiles import Document, read_documents

CLUSTER_SCOPED = frozenset(
    {
        "CSINode",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "PriorityClass",
        "RuntimeClass",
        "ValidatingWebhookConfiguration",
        "PersistentVolume",
        "StorageClass",
    }
)
WORKLOADS = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""What can be scaled, and is measured."""
_MAKERS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job"})
"""Kinds whose controllers make in a drill what they own."""
_HOOK = "helm.sh/hook"
"""On an object, annotation: Helm makes it beside a release, such as a test of it."""
_MISSPELT = 0.88
"""A kind that is so much alike to a known one is that one: DeamonSet, and not ServiceAccount."""
_NAMESPACES_OF_KUBERNETES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One object, and where it stands."""

    kind: str
    namespace: str
    """Empty for kinds without a namespace."""
    name: str
    body: dict[str, Any] = field(repr=False)
    """The object as plain JSON, with defaults. Copy it before changing it."""
    document: Document = field(repr=False, compare=False)

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        return self.kind, self.namespace, self.name

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.document.place()

    @property
    def sent(self) -> dict[str, Any]:
        """The object as `kubectl apply` sends it: a count that it does not say is left alone."""
        spec = self.body.get("spec", {})
        if "replicas" not in spec or "replicas" in self.document.value["spec"]:
            return self.body
        return {**self.body, "spec": {k: v for k, v in spec.items() if k != "replicas"}}

    @override
    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{self.name}"


def read_manifests(
    files: Iterable[Path], problems: Problems, *, named_at: Iterable[Place] = ()
) -> tuple[Manifest, ...]:
    """Return the objects of these files, in their order; what is wrong goes to `problems`.

    Namespaces that objects use and no manifest declares are added in front.

    Args:
        files: manifests, of one cluster or of one `apply`.
        problems: where to note what is wrong.
        named_at: for each file the place that names it.
    """
    found: dict[tuple[str, str, str], Manifest] = {}
    places = list(named_at)
    for number, file in enumerate(files):
        named = places[number] if number < len(places) else None
        for document in read_documents(file, problems, named_at=named):
            for item in _items(document):
                if why := _why_left_out(item.value):
                    problems.left_out[why] += 1
                    continue
                manifest = _manifest(_named(item, found), problems)
                if manifest is not None:
                    _add(manifest, found, problems)
    return (*_namespaces(found), *found.values())


def _items(document: Document) -> Iterator[Document]:
    """Yield the objects of a document: `kubectl get -o yaml` writes a List, and an API server a PodList."""
    value = document.value
    kind = value.get("kind") if isinstance(value, dict) else None
    if (
        isinstance(kind, str)
        and kind.endswith("List")
        and isinstance(items := value.get("items"), list)
    ):
        of = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
        for i in range(len(items)):
            item = document.part("items", i)
            each = item.value
            yield replace(item, value={**of, **each}) if isinstance(each, dict) else item
    else:
        yield document


def _why_left_out(value: Any) -> str | None:
    """Return what an object is, in words, where a drill has no use for it; None where it is read, or wrong."""
    if not isinstance(value, dict) or not isinstance(kind := value.get("kind"), str) or not kind:
        return None
    metadata = value["metadata"] if isinstance(value.get("metadata"), dict) else {}
    group = str(value.get("apiVersion") or "").rpartition("/")[0]
    if "." in group and not group.endswith(".k8s.io"):
        return f"{kind} of {group}"
    if kind not in KINDS:
        return None if nearest(kind, KINDS, alike=_MISSPELT) else kind
    if _HOOK in (metadata.get("annotations") or ()):
        return f"{kind} with the annotation {_HOOK}"
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, dict) and owner.get("controller") and owner.get("kind") in _MAKERS:
            return f"{kind} that a {owner['kind']} makes"
    return None


def _named(document: Document, found: Iterable[tuple[str, str, str]]) -> Document:
    """Return an object with a name: one that has only `generateName` is numbered, so that each run has the same."""
    value = document.value
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict) or metadata.get("name") or not metadata.get("generateName"):
        return document
    taken = {name for _, _, name in found}
    names = (f"{metadata['generateName']}{n}" for n in count(1))
    name = next(name for name in names if name not in taken)
    return replace(document, value={**value, "metadata": {**metadata, "name": name}})


def _manifest(document: Document, problems: Problems) -> Manifest | None:
    value = document.value
    if not isinstance(value, dict):
        problems.add(
            document.place(),
            found=shown(value),
            allowed="a Kubernetes object",
            cure="Write apiVersion, kind and metadata",
        )
        return None
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        _unknown_kind(document, kind, problems)
        return None
    sound = value.get("apiVersion") == KINDS[kind]
    if not sound:
        problems.add(
            document.place("apiVersion"),
            found=shown(value.get("apiVersion")),
            allowed=f"{KINDS[kind]} for a {kind}",
            cure=f"Write apiVersion: {KINDS[kind]}",
        )
    declared = validate(MODELS[kind], document, problems)
    if declared is None or not sound:
        return None
    body = _json(declared)
    metadata = body["metadata"]
    if kind in CLUSTER_SCOPED:
        metadata.pop("namespace", None)
    else:
        metadata.setdefault("namespace", "default")
    return Manifest(
        kind=kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        body=body,
        document=document,
    )


def _json(declared: KubernetesObject) -> dict[str, Any]:
    """Return an object with the defaults that were filled in."""
    return declared.model_dump(mode="json", by_alias=True, exclude_none=True)


def _unknown_kind(document: Document, kind: Any, problems: Problems) -> None:
    if isinstance(kind, str):
        found = f"the kind {shown(kind)}, which no drill reads"
        cure = rename(kind, KINDS, "Take it out")
    else:
        found, cure = shown(kind), "Write the kind of the object"
    problems.add(document.place("kind"), found=found, allowed=listed(KINDS), cure=cure)


def _add(
    manifest: Manifest, found: dict[tuple[str, str, str], Manifest], problems: Problems
) -> None:
    first = found.setdefault(manifest.key, manifest)
    if first is not manifest:
        problems.add(
            manifest.document.place("metadata", "name"),
            found=f"{manifest} again; it first stands at {first.place}",
            allowed="each kind, namespace and name once",
            cure="Rename or remove one of the two",
        )


def _namespaces(found: dict[tuple[str, str, str], Manifest]) -> Iterator[Manifest]:
    declared = {name for kind, _, name in found if kind == "Namespace"}
    used = {m.namespace: m for m in reversed(found.values()) if m.namespace}
    for name in sorted(used.keys() - declared - _NAMESPACES_OF_KUBERNETES):
        named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        body, document = _json(Namespace.model_validate(named)), used[name].document
        yield Manifest(kind="Namespace", namespace="", name=name, body=body, document=document)
