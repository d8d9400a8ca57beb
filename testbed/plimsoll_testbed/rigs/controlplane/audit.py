"""What an API server was asked, and by whom: it says so itself, in its audit log.

Source: https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

METHODS: Final[Mapping[str, str]] = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
}
"""Kubernetes' verb -> HTTP's."""


class Audit:
    """The audit of some users; nobody else's requests are noted.

    Args:
        users: their names.
        folder: of the control plane.
    """

    def __init__(self, users: Sequence[str], folder: Path) -> None:
        self._policy = folder / "audit-policy.json"
        self._log = folder / "logs" / "audit.log"
        rules = [{"level": "Metadata", "users": list(users)}, {"level": "None"}]
        self._policy.write_text(
            json.dumps(
                {
                    "apiVersion": "audit.k8s.io/v1",
                    "kind": "Policy",
                    "omitStages": ["RequestReceived", "ResponseStarted"],
                    "rules": rules if users else rules[1:],
                }
            ),
            encoding="utf-8",
        )

    @property
    def flags(self) -> Sequence[str]:
        """What kube-apiserver has to be told."""
        return (f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}")

    def calls(self, since: datetime) -> Counter[str]:
        """Return how many requests there were since then, by HTTP method."""
        return Counter(
            METHODS[entry["verb"]]
            for entry in self._entries()
            if datetime.fromisoformat(entry["requestReceivedTimestamp"]) >= since
        )

    def written(self) -> frozenset[str]:
        """Return what was written, or refused to be, as in a role: `pods/eviction`."""
        return frozenset(
            "/".join(filter(None, (ref["resource"], ref.get("subresource"))))
            for entry in self._entries()
            if METHODS[entry["verb"]] != "GET" and (ref := entry["objectRef"])
        )

    def _entries(self) -> Iterator[dict[str, Any]]:
        if self._log.exists():
            yield from map(json.loads, self._log.read_text(encoding="utf-8").splitlines())
