"""One scenario for each behaviour that docs/develop/rigs.md promises; the page names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.differential.behaviours import api, placing, workloads
from tests.differential.bench import Bench
from tests.differential.scenario import Scenario

FAMILY: Final = "behaviours"
BEHAVIOURS: Final[Mapping[str, Callable[[Bench], None]]] = {
    **api.BEHAVIOURS,
    **workloads.BEHAVIOURS,
    **placing.BEHAVIOURS,
}
_ALONE: Final = frozenset({"priorities"})


def scenarios() -> Iterator[Scenario]:
    """Yield every behaviour's scenario."""
    for name, write in BEHAVIOURS.items():
        bench = Bench(f"behaviour-{name}", FAMILY)
        write(bench)
        yield bench.done(alone=name in _ALONE)
