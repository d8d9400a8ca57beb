"""Which of the APIs that Plimsoll reads and writes a cluster serves, and in which versions.

Each release of Kubernetes may end old versions of an API:
https://kubernetes.io/docs/reference/using-api/deprecation-guide/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from plimsoll.adapters.kubernetes.calls import (
    GET_FLOW_SCHEMA,
    LIST_POD_GROUPS,
    LIST_ROLLOUTS,
    OVERLAYS,
)
from plimsoll.adapters.nodegroups import CALLS, KINDS
from plimsoll.services.ports import Workers

type Ask = Callable[[str], Mapping[str, Any] | None]
"""Returns what a path of discovery answers; None: there is nothing there."""

_NOT_NEEDED: Final = {GET_FLOW_SCHEMA, *OVERLAYS["injection"]}
"""Other checks tell of these: an older cluster works without them."""
_OPTIONAL: Final = {
    (call.group, call.resource)
    for call in (
        LIST_ROLLOUTS,
        LIST_POD_GROUPS,
        *(c for kind in KINDS.values() for c in kind.calls),
    )
}
"""Groups and resources that a cluster need not have: of other programs, or for its owner to turn on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """Resources that are not served in the version in which Plimsoll knows them."""

    group: str
    version: str
    resources: Sequence[str]
    instead: Sequence[str]
    """The versions in which the group serves any of them; empty: none."""

    @property
    def api(self) -> str:
        """The group with its version, as in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


def needed() -> Mapping[tuple[str, str], Sequence[str]]:
    """Return group and version -> the resources that Plimsoll reads or writes in it."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for call in CALLS:
        if call not in _NOT_NEEDED:
            found.setdefault((call.group, call.version), {})[call.resource] = None
    return {api: tuple(resources) for api, resources in found.items()}


def unserved(ask: Ask, workers: Workers) -> Iterator[Unserved]:
    """Yield what is needed and not served. What is optional is missed only where another version serves it."""
    apis = needed()
    paths = [f"/apis/{group}/{version}" if group else f"/api/{version}" for group, version in apis]
    answers = workers.run([partial(ask, path) for path in paths])
    for ((group, version), resources), answer in zip(apis.items(), answers, strict=True):
        if isinstance(answer, Exception):
            raise answer
        missing = [name for name in resources if name not in _names(answer)]
        if not missing:
            continue
        there = (group and ask(f"/apis/{group}")) or {}
        others = [each["version"] for each in there.get("versions") or ()]
        instead = [v for v in others if _names(ask(f"/apis/{group}/{v}")) & {*missing}]
        if not instead:
            missing = [name for name in missing if (group, name) not in _OPTIONAL]
        if missing:
            yield Unserved(group=group, version=version, resources=missing, instead=instead)


def _names(page: Mapping[str, Any] | None) -> frozenset[str]:
    return frozenset(each["name"] for each in (page or {}).get("resources") or ())
