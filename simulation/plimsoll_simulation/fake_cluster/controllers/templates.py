"""Pods out of templates, and the hash that tells one template from another.

The hash differs from the real one (an FNV of a Go dump), which nobody may rely on; what matters is
that equal templates have equal hashes and others do not.
"""

from __future__ import annotations

import json
from hashlib import sha256

from plimsoll_simulation.fake_cluster.conditions import reference
from plimsoll_simulation.fake_cluster.edits import Json
from plimsoll_simulation.fake_cluster.identities import readable


def template_hash(template: Json) -> str:
    """Return ten characters that stand for a template."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    return readable(int(sha256(text.encode()).hexdigest()[:15], 16))


def pod_of(owner: Json, *, labels: dict[str, str] | None = None, suffix: str = "") -> Json:
    """Return a pod of an owner's template, whose spec it shares; without a suffix it has no name.

    Source: k8s.io/kubernetes/pkg/controller, GetPodFromTemplate.
    """
    template = owner["spec"]["template"]
    meta = template.get("metadata") or {}
    made: Json = {
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(meta.get("labels") or {}), **(labels or {})},
        "ownerReferences": [reference(owner)],
    }
    if suffix:
        prefix = f"{owner['metadata']['name']}-"
        made |= {"generateName": prefix, "name": f"{prefix}{suffix}"}
    made |= {field: meta[field] for field in ("annotations", "finalizers") if meta.get(field)}
    return {"metadata": made, "spec": template.get("spec") or {}}
