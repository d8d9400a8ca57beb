"""Who may knock at a control plane: users with their groups, tokens and kubeconfigs."""

from __future__ import annotations

import base64
import csv
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

CONTROLLERS: Final = "system:kube-controller-manager"
SCHEDULER: Final = "system:kube-scheduler"
KWOK: Final = "kwok"
FAKE_KUBELETS: Final = "fake-kubelets"

KNOWN: Final[Mapping[str, Sequence[str]]] = {
    "admin": ("system:masters",),
    "plimsoll": ("plimsoll",),
    "flood": ("flood",),
    "stranger": (),
    # The control plane's own. The names decide which queue of API priority and fairness is theirs.
    CONTROLLERS: (),
    SCHEDULER: (),
    KWOK: ("system:nodes",),
    FAKE_KUBELETS: ("system:nodes",),
}
"""User -> groups, from the start."""

TRUSTED: Final = (CONTROLLERS, KWOK, FAKE_KUBELETS)
"""Bound to cluster-admin: they act for what has fine-grained rights in a real cluster. A member of
system:masters would jump the queue instead, and a flood would look harmless."""


class Users:
    """Everybody that one control plane knows."""

    def __init__(self, more: Mapping[str, Sequence[str]]) -> None:
        self._groups = {**KNOWN, **more}
        self._tokens = {name: secrets.token_urlsafe(24) for name in self._groups}

    def token(self, user: str) -> str:
        """Return a user's bearer token.

        Raises:
            KeyError: nobody is called that.
        """
        return self._tokens[user]

    def write(self, file: Path) -> None:
        """Write the file for --token-auth-file."""
        with file.open("w", newline="", encoding="utf-8") as out:
            lines = csv.writer(out)
            for name, groups in self._groups.items():
                # An empty fourth column would be a group without a name.
                lines.writerow(
                    [self._tokens[name], name, name, *([",".join(groups)] * bool(groups))]
                )
        file.chmod(0o600)

    def kubeconfig(self, user: str, *, url: str, ca: str, file: Path) -> Path:
        """Write a user's kubeconfig and return where it is. JSON is YAML too."""
        name = "control-plane"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": url, **_certificate(ca)}}],
            "users": [{"name": user, "user": {"token": self.token(user)}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
            "current-context": name,
        }
        file.write_text(json.dumps(config, indent=2), encoding="utf-8")
        file.chmod(0o600)
        return file


def _certificate(ca: str) -> dict[str, str]:
    return {"certificate-authority-data": base64.b64encode(ca.encode()).decode()}
