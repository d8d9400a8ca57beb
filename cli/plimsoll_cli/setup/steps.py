"""The steps of a plan, each with the command that it stands for, and what a plan is made from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plimsoll.domain.registry import Cluster, Mode
from plimsoll_cli.setup.access import TaggedGroup
from plimsoll_cli.setup.manifests import Manifest
from plimsoll_cli.stack import Stack


@dataclass(frozen=True, slots=True)
class Apply:
    """Give a cluster these objects."""

    objects: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete these objects."""

    objects: tuple[Manifest, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """Put a role into the group of the manifests."""

    role: str


@dataclass(frozen=True, slots=True)
class Revoke:
    """Take a role out of that group."""

    role: str


@dataclass(frozen=True, slots=True)
class LetGrow:
    """Allow or forbid Plimsoll to grow a node group."""

    group: TaggedGroup
    allowed: bool


@dataclass(frozen=True, slots=True)
class Register:
    """Let the functions of the stack know the cluster."""


@dataclass(frozen=True, slots=True)
class Deregister:
    """Let them forget it."""


type Action = Apply | Delete | Grant | Revoke | LetGrow | Register | Deregister


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change, and whether it is already as it should be."""

    what: str
    why: str
    command: str
    """The command line that it stands for."""
    action: Action
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The cluster that a plan is for, its stack, and how commands name them."""

    cluster: Cluster
    stack: Stack
    context: str
    kubeconfig: Path | None
    """None: kubectl finds it as this command did."""

    @property
    def kubectl(self) -> str:
        """How commands for its API server begin."""
        return shlex.join(["kubectl", *self.options])

    @property
    def options(self) -> Sequence[str]:
        """The options by which kubectl and `plimsoll` reach its API server."""
        file = [] if self.kubeconfig is None else ["--kubeconfig", str(self.kubeconfig)]
        return [*file, "--context", self.context]

    def aws(self, *words: str) -> str:
        """Return a command of the AWS CLI in the region of the cluster."""
        return shlex.join(["aws", *words, "--region", self.cluster.region])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read of a cluster and its account."""

    objects: Mapping[str | None, Sequence[tuple[Manifest, bool]]]
    """Overlay -> its objects, each with whether the cluster has it: as its manifest says, or at all for a removal."""
    roles: Mapping[str, Sequence[str] | None]
    """Role that comes to the cluster -> the groups of its access entry; None: it has none."""
    groups: Sequence[TaggedGroup] = ()
    """Those whose tag shall change."""
    untagged: Sequence[str] = ()
    """The names of others that Plimsoll may not grow."""
    tagged: Sequence[TaggedGroup] = ()
    """Others that it may grow."""
    mode: Mode | None
    """The mode in which the cluster is registered; None: it is not."""
    others: Sequence[str] = ()
    """What else lies in the namespace `plimsoll`."""
