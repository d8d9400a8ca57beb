"""What docs/develop/rigs.md says is left out, played so that the difference is seen, and missed if it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.differential.bench import Bench
from tests.differential.scenario import Scenario

FAMILY = "left out"


def _adoption(bench: Bench) -> None:
    bench.node("n0")
    bench.create(bench.pod("stray", app="web"))
    bench.settle()
    bench.create(bench.workload("ReplicaSet", "web", 1))
    bench.settle()


def _validation(bench: Bench) -> None:
    container = {"name": "Not A Name", "image": "one"}
    bench.create(bench.object("Pod", "odd", spec={"containers": [container]}))
    bench.settle()


LEFT_OUT: Final[Mapping[str, Callable[[Bench], None]]] = {
    "adoption": _adoption,
    "validation": _validation,
}


def scenarios() -> Iterator[Scenario]:
    """Yield them all."""
    for name, write in LEFT_OUT.items():
        bench = Bench(f"left-out-{name}", FAMILY)
        write(bench)
        yield bench.done()
