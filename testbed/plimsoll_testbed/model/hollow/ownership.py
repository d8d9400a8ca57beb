"""Who manages `spec.replicas`: managedFields, kept for this one field.

The real server tracks every field. A drain asks one thing of it: whether GitOps or somebody else
owns the count of a workload, so that is what is kept.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
"""

from __future__ import annotations

from datetime import datetime

from plimsoll_testbed.model.hollow.edits import Json, look
from plimsoll_testbed.model.hollow.stamps import stamp

_REPLICAS: Json = {"f:spec": {"f:replicas": {}}}


def managed(
    obj: Json, before: Json | None, *, manager: str, now: datetime, subresource: str = ""
) -> Json:
    """Return the object with its managers brought up to date; a manager takes what it changes."""
    replicas = look(obj, "spec", "replicas")
    if before is None and obj["metadata"].get("managedFields"):
        return obj
    if before is not None and replicas == look(before, "spec", "replicas"):
        return obj
    entry: Json = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": obj.get("apiVersion", ""),
        "time": stamp(now),
        "fieldsType": "FieldsV1",
        "fieldsV1": _REPLICAS if replicas is not None else {"f:spec": {}},
    }
    if subresource:
        entry["subresource"] = subresource
    kept = []
    for other in look(before or {}, "metadata", "managedFields", default=()):
        if (other["manager"], other.get("subresource", "")) == (manager, subresource):
            continue
        if look(other, "fieldsV1", "f:spec", "f:replicas") is not None:
            other = {**other, "fieldsV1": {"f:spec": {}}}  # noqa: PLW2901 - the entry without it
        kept.append(other)
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [*kept, entry]}}


def manager_of(field_manager: str | None, agent: str) -> str:
    """Return the name a write is recorded under: the query's, else the client's program."""
    return field_manager or agent.partition("/")[0] or "unknown"
