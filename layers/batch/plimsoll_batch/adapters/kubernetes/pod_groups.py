"""The PodGroup of a gang as it is written. Those of others are known by the missing label, and are left alone."""

from __future__ import annotations

from typing import Any

from plimsoll.adapters.kubernetes.objects import parse_pod_group
from plimsoll.adapters.kubernetes.requests import Json
from plimsoll.domain.errors import Conflict, Refused
from plimsoll_batch.domain import names
from plimsoll_batch.domain.jobs import BARE_POD, GangPodGroup


def pod_group_of(group: GangPodGroup) -> dict[str, Any]:
    """Return the object that is made."""
    priority = {"priorityClassName": group.priority_class} if group.priority_class else {}
    return {
        "metadata": {
            "name": group.ref.name,
            "labels": {names.GANG: group.gang},
            "ownerReferences": _owners(group),
        },
        "spec": {"schedulingPolicy": {"gang": {"minCount": group.min_count}}, **priority},
    }


def change_of(group: GangPodGroup, there: Json) -> dict[str, Any] | None:
    """Return what is to be patched of the object that is there; None where it is right, or somebody else's.

    Raises:
        Refused: that of somebody else needs more pods at once than the gang gives it.
        Conflict: it is being deleted.
    """
    meta, known = there["metadata"], parse_pod_group(there)
    if (meta.get("labels") or {}).get(names.GANG) != group.gang:
        if known.min_count is not None and known.min_count > group.min_count:
            raise Refused(
                f"{group.ref}, which somebody else made, needs {known.min_count} pods at once, and the gang "
                f"starts {group.min_count}: lower its minCount, or delete it"
            )
        return None
    if meta.get("deletionTimestamp"):
        raise Conflict(f"{group.ref} is being deleted")
    owners = _owners(group)
    there_already = {owner["uid"] for owner in meta.get("ownerReferences") or ()}
    if known.min_count == group.min_count and there_already == {each["uid"] for each in owners}:
        return None
    return {
        "metadata": {
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
            "ownerReferences": owners,
        },
        "spec": {"schedulingPolicy": {"gang": {"minCount": group.min_count}}},
    }


def _owners(group: GangPodGroup) -> list[Json]:
    """Return references that let it go with its last owner, and make none of them its controller."""
    return [
        {
            "apiVersion": "v1" if owner.bare else "batch/v1",
            "kind": BARE_POD if owner.bare else "Job",
            "name": owner.ref.name,
            "uid": owner.uid,
        }
        for owner in sorted(group.owners, key=lambda each: each.ref.name)
    ]
