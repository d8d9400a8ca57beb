"""The quota controller: it writes what the pods of a namespace use of each ResourceQuota.

Source: k8s.io/kubernetes/pkg/controller/resourcequota.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import ClassVar, override

from plimsoll_simulation.fake_cluster.conditions import is_finished
from plimsoll_simulation.fake_cluster.controllers.base import Controller
from plimsoll_simulation.fake_cluster.quotas import ends_to_count, reported
from plimsoll_simulation.fake_cluster.store import Change, Key, key_of


class Quotas(Controller[Key]):
    """The quota controller."""

    watches: ClassVar = frozenset({"resourcequotas", "pods"})

    @override
    def observe(self, change: Change) -> None:
        if change.resource == "resourcequotas":
            self.note(change.key)
        elif self.store.count("resourcequotas") and _counts_anew(change):
            for quota in self.store.all("resourcequotas", change.key[0]):
                self.note(key_of(quota))
                ends = ends_to_count(change.object)
                if change.type != "DELETED" and ends is not None:
                    self.state.timers.write(ends, partial(self.again, key_of(quota)))

    @override
    def reconcile(self, key: Key, now: datetime) -> None:
        quota = self.store.get("resourcequotas", *key)
        if quota is not None:
            self.store.replace("resourcequotas", reported(quota, self.store, now), now=now)


def _counts_anew(change: Change) -> bool:
    if change.type != "MODIFIED" or change.before is None:
        return True
    old, new = change.before, change.object
    if ends_to_count(old) != ends_to_count(new):
        return True
    return is_finished(old) != is_finished(new) or old["spec"] != new["spec"]
