"""From a path to what it names.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from plimsoll_simulation.fake_cluster.resources import BY_PATH, Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request is about."""

    resource: Resource
    namespace: str | None = None
    """None: cluster-wide, or all namespaces."""
    name: str | None = None
    subresource: str | None = None


@lru_cache(maxsize=8192)
def target_of(path: str) -> Target | None:
    """Return what a path names; None where nothing is served."""
    parts = [unquote(p) for p in path.strip("/").split("/")]
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    match rest:
        # `namespaces/x` and `namespaces/x/status` are about the namespace itself.
        case ["namespaces", namespace, plural, *inner] if plural not in {"status", "finalize"}:
            namespaced = True
        case [plural, *inner]:
            namespace, namespaced = "", False
        case _:
            return None
    resource = BY_PATH.get((group, version, plural))
    most = 2
    if resource is None or len(inner) > most or (namespaced and not resource.namespaced):
        return None
    if inner and resource.namespaced and not namespaced:
        return None
    return Target(
        resource=resource,
        namespace=namespace if namespaced else None,
        name=inner[0] if inner else None,
        subresource=inner[1] if len(inner) > 1 else None,
    )
