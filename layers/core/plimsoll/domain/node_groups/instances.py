"""An instance as EC2 describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from plimsoll.domain.notices import GONE, LEAVING


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """What EC2 says about an instance."""

    id: str
    state: str
    """pending, running, stopping, stopped, shutting-down or terminated."""
    launched: datetime | None
    zone: str | None = None
    instance_type: str | None = None
    spot: bool = False
    tags: tuple[tuple[str, str], ...] = ()
    ended_by_owner: bool = False
    """Somebody with rights in the account stopped or terminated it, a group's scale-in too."""

    @property
    def off(self) -> bool:
        """Whether nothing runs on it any more. A stopped instance may be started again."""
        return self.state in GONE

    @property
    def stopped(self) -> bool:
        """Whether it is stopped or hibernated: it may be started again."""
        return self.state == "stopped"

    @property
    def interrupted(self) -> bool:
        """Whether its end has begun or is past."""
        return self.off or self.state in LEAVING

    def cluster_name(self) -> str | None:
        """Return the cluster that its tags name, or None."""
        return next(iter(self._cluster_names()), None)

    def is_of_another(self, cluster: str) -> bool:
        """Whether its tags name another cluster; one without such tags is taken for any Node's."""
        names = self._cluster_names()
        return bool(names) and cluster not in names

    def _cluster_names(self) -> Sequence[str]:
        return clusters_of(dict(self.tags))


def clusters_of(tags: Mapping[str, str]) -> Sequence[str]:
    """Return the clusters that tags name: its owner alone, else those that share it.

    Managed node groups tag `eks:cluster-name`, others by convention
    `kubernetes.io/cluster/<name>` with `owned` or `shared`.
    """
    by_eks = [tags[k] for k in ("eks:cluster-name", "aws:eks:cluster-name") if tags.get(k)]
    prefix = "kubernetes.io/cluster/"
    named = {k.removeprefix(prefix): v for k, v in sorted(tags.items()) if k.startswith(prefix)}
    owners = [name for name, how in named.items() if how == "owned"]
    return by_eks or owners or list(named)
