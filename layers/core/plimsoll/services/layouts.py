"""Chooses the layouts of promised workloads, and remembers them before they count.

A layout that cannot be written is not taken: were it, every run might choose anew, and pods would move to and fro.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from plimsoll.domain.capacity import StartWindows
from plimsoll.domain.errors import Conflict, PlimsollError
from plimsoll.domain.kubernetes import Ref
from plimsoll.domain.placement import (
    Asked,
    Choice,
    ChosenLayout,
    ChosenLayouts,
    Injected,
    choices_of,
    chosen_layouts,
    layouts_there,
)
from plimsoll.domain.registry import Cluster
from plimsoll.domain.spot import reclaim_rates
from plimsoll.services.ports import LayoutStore, Pools, Telemetry, Workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Layouts:
    """The layouts of all clusters."""

    store: LayoutStore
    pools: Pools
    workers: Workers
    telemetry: Telemetry

    def choose(
        self, cluster: Cluster, asked: Asked, windows: StartWindows, told: Injected
    ) -> ChosenLayouts:
        """Return the layouts that count in this run, those among them that it chose and wrote.

        Where the memory cannot be read, what the admission policy is told stands.
        """
        remembered: dict[Ref, ChosenLayout] = {}
        choices: list[Choice] = []
        if asked.promises:
            try:
                remembered |= self.store.read(cluster.name)
                memory = self.pools.memory(cluster.place, windows.now)
            except PlimsollError as error:
                self._warn(cluster, "layouts not read", error)
            else:
                rates = reclaim_rates(*memory, windows.now)
                choices += choices_of(asked, windows, rates, remembered, told)
        there = layouts_there(asked, remembered, told)
        return chosen_layouts(asked, there, choices, self._unwritten(cluster, choices))

    def _unwritten(self, cluster: Cluster, choices: list[Choice]) -> frozenset[Ref]:
        """Write what is chosen, and return the workloads of which it failed."""
        due = [each for each in choices if each.after.is_due(each.before)]
        writes = [
            partial(
                self.store.write,
                cluster.name,
                each.workload.ref,
                each.before,
                each.after,
            )
            for each in due
        ]
        failed: dict[Ref, PlimsollError] = {}
        for choice, answer in zip(due, self.workers.run(writes), strict=True):
            if isinstance(answer, PlimsollError):
                failed[choice.workload.ref] = answer
            elif isinstance(answer, Exception):
                raise answer
        # With a Conflict another run chose, and this one finds its choice the next time.
        for error in [each for each in failed.values() if not isinstance(each, Conflict)][:1]:
            self._warn(cluster, f"{len(failed)} layouts not written", error)
        return frozenset(failed)

    def _warn(self, cluster: Cluster, what: str, error: PlimsollError) -> None:
        self.telemetry.warn(what, cluster=cluster.name, because=str(error))
