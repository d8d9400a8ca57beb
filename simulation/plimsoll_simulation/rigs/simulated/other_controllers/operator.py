"""The operator of a custom resource."""

from __future__ import annotations

from typing import override

from plimsoll_simulation.fake_cluster.resources import path_of
from plimsoll_simulation.rigs.simulated.other_controllers.gitops import GitOps, operated


class Operator(GitOps):
    """Holds what a custom resource owns: makes its pods anew, and sets counts and templates back."""

    @override
    def look(self) -> None:
        for obj in [o for o in self.rig_cluster.declared.values() if operated(o)]:
            if obj["kind"] != "Pod":
                self.set_back(obj, held=False)
            elif self.live(obj) is None:
                self.send("POST", path_of(obj)[0], obj)
