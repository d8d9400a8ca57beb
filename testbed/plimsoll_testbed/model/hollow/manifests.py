"""Where a manifest belongs."""

from __future__ import annotations

from plimsoll.domain.errors import BadInput
from plimsoll_testbed.model.hollow.edits import Json
from plimsoll_testbed.model.hollow.resources import BY_KIND


def path_of(manifest: Json) -> tuple[str, str]:
    """Return the path of a manifest's collection and its name; no namespace means `default`.

    Raises:
        BadInput: its kind is not one that a hollow cluster keeps, or it has no name.
    """
    kind, meta = manifest.get("kind", ""), manifest.get("metadata") or {}
    line = BY_KIND.get(kind)
    if line is None:
        raise BadInput(f"kind {kind!r} is not known here; known are {', '.join(sorted(BY_KIND))}")
    if not meta.get("name"):
        raise BadInput(f"a {kind} without metadata.name")
    root = f"/apis/{line.api_version}" if line.group else f"/api/{line.version}"
    if not line.namespaced:
        return f"{root}/{line.plural}", str(meta["name"])
    namespace = meta.get("namespace") or "default"
    return f"{root}/namespaces/{namespace}/{line.plural}", str(meta["name"])
