"""Drawn months whose true savings are known: the bill with the change against the bill without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_service.domain.savings.comparison import STEADY
from plimsoll_service.wire.advice import Frees
from tests.support.bills import GIB, HOURLY, Months, day, prices
from tests.support.properties import drawn

DAYS = 42
CENT = 0.01
TYPES = sorted(HOURLY)
NODE_CPU, NODE_MEMORY = 1200, 4 * GIB
"""What pods request of each node."""


@dataclass
class World:
    """A cluster whose nodes are counted twice: with what was advised, and without it."""

    months: Months
    without: dict[int, Counter[str]]
    """On-demand nodes that would stand on each day, had nothing been advised."""
    change: int

    @property
    def measured(self) -> range:
        return range(self.change + 1, min(self.change + 31, DAYS))

    def cost(self, number: int, nodes: Mapping[str, int]) -> float:
        hourly = self.months.prices[number].nodes
        return sum(hourly[name][0] * 24 * n for name, n in nodes.items())

    @property
    def saved(self) -> float:
        """What the change saved in truth, over the days that are measured."""
        return sum(
            self.cost(n, self.without[n]) - self.cost(n, self.months.held[n].on_demand)
            for n in self.measured
        )

    @property
    def realised(self) -> float | None:
        """What the service says, by the bill of the months; None: it cannot tell."""
        told = [m.realised for m in self.months.history().months if m.realised is not None]
        return sum(told) if told else None

    def add(self, since: int, name: str, nodes: int, *, fill: float = 0.0) -> None:
        """Let nodes come or go that nothing advised, and pods with them."""
        for number in range(since, DAYS):
            self.without[number][name] += nodes
            held = self.months.held[number]
            on_demand = Counter(held.on_demand)
            on_demand[name] += nodes
            self.months.held[number] = replace(
                held,
                on_demand=on_demand,
                cpu_m=held.cpu_m + round(nodes * fill * NODE_CPU),
                memory=held.memory + round(nodes * fill * NODE_MEMORY),
                pods=held.pods + nodes,
            )

    @property
    def nodes_cost(self) -> float:
        return sum(self.cost(n, self.without[n]) for n in self.measured)


@st.composite
def worlds(draw: st.DrawFn, kind: str, *, replaced: bool = True) -> World:
    """Return months in which nothing but the advised change happens, and prices."""
    begin = Counter({name: draw(st.integers(3, 8)) for name in TYPES})
    months = Months(days=DAYS)
    total = begin.total()
    months.since(0, on_demand=begin, cpu_m=total * NODE_CPU, memory=total * NODE_MEMORY)
    change = draw(st.integers(3, DAYS - 4))
    gone = draw(st.sampled_from(TYPES))
    after = Counter(begin)
    if kind == "consolidate-node":
        after[gone] -= 1
        if replaced and draw(st.booleans()):  # another came in its place
            after[draw(st.sampled_from(TYPES))] += 1
        months.since(change + 1, on_demand=after)
        months.carry_out("consolidate-node", change, Frees(instance=gone))
    elif kind == "right-size":
        cut = draw(st.integers(100, NODE_CPU))
        after[gone] -= draw(st.integers(0, 2))
        emptied = min(DAYS, change + draw(st.integers(1, 5)))
        months.since(change + 1, cpu_m=total * NODE_CPU - cut)
        months.since(emptied, on_demand=after)
        months.carry_out("right-size", change, Frees(cpu_m=cut))
    else:
        after = Counter({draw(st.sampled_from(TYPES)): total})
        months.since(change + draw(st.integers(1, 3)), on_demand=after)
        mix: dict[str, Any] = {"state": "accepted", "seen_at": None}
        months.carry_out("instance-mix", change, Frees(), **mix)
    for _ in range(draw(st.integers(0, 3))):  # prices change for good, on any day
        factor, since = draw(st.floats(0.5, 1.5)), draw(st.integers(0, DAYS - 1))
        for number in range(since, DAYS):
            nodes = {
                n: (od * factor, spot) for n, (od, spot) in months.prices[number].nodes.items()
            }
            months.prices[number] = prices(day(number), nodes=nodes)
    months.lose(*draw(st.sets(st.integers(0, DAYS - 1), max_size=3)))
    return World(months, {n: Counter(begin) for n in range(DAYS)}, change)


@pytest.mark.parametrize("kind", ["consolidate-node", "right-size", "instance-mix"])
@drawn(60, many=1000)
@given(data=st.data())
def test_where_nothing_else_happens_the_true_difference_of_the_bill_is_realised(
    kind: str, data: st.DataObject
):
    world = data.draw(worlds(kind))
    lost = world.months.samples.keys()
    known = [n for n in world.measured if n not in lost]
    before = [n for n in range(max(0, world.change - 14), world.change) if n not in lost]
    (found,) = world.months.history().recommendations
    if min(len(known), len(before)) < 3:
        assert found.realised is None
        return
    saved = sum(
        world.cost(n, world.without[n]) - world.cost(n, world.months.held[n].on_demand)
        for n in known
    )
    assert found.verdict == "realised"
    assert world.realised == pytest.approx(
        saved, abs=2 * CENT
    )  # of two months, each in whole cents
    assert found.realised == pytest.approx(saved / len(known) * 730 / 24, abs=CENT)


unrelated = st.lists(
    st.tuples(
        st.sampled_from(["scale", "scale", "add", "remove", "volume"]),
        st.integers(0, DAYS - 1),
        st.sampled_from(TYPES),
        st.sampled_from([-3, -2, -1, 1, 2, 3]),
        st.floats(0.3, 1.0),
    ),
    min_size=1,
    max_size=4,
)


@drawn(150, many=3000)
@given(world=worlds("consolidate-node", replaced=False), events=unrelated)
def test_of_a_node_that_went_never_more_is_realised_than_the_bill_fell_plus_what_else_cost(
    world: World, events: list[Any]
):
    """Nodes come and go with pods and without, and volumes come; the node that went is known by its uid."""
    for what, since, name, nodes, fill in events:
        least = min(standing[name] for standing in world.without.values())
        match what:
            case "scale":
                world.add(since, name, max(nodes, 1 - least) or 1, fill=fill)
            case "add":
                world.add(since, name, abs(nodes))
            case "remove" if least > 2:
                world.add(since, name, -1)
            case _:  # volumes
                world.months.since(since, volumes={"gp3": 10 * abs(nodes)})
    world.months.samples.clear()
    realised = world.realised
    assert realised is None or realised <= world.saved + 2 * CENT


@pytest.mark.parametrize("kind", ["right-size", "instance-mix"])
@drawn(80, many=1500)
@given(data=st.data())
def test_of_other_advice_no_more_is_realised_either_but_for_what_steady_requests_hide(
    kind: str, data: st.DataObject
):
    """One scale-up or scale-down, and nodes that are added by hand. Nodes that somebody takes away by hand while
    pods request the same look as those that the advice emptied: nothing could tell them apart."""
    world = data.draw(worlds(kind))
    name = data.draw(st.sampled_from(TYPES))
    scaled = data.draw(st.integers(-1, 3).filter(bool))
    world.add(data.draw(st.integers(0, DAYS - 1)), name, scaled, fill=1.0)
    for _ in range(data.draw(st.integers(0, 2))):
        world.add(data.draw(st.integers(world.change, DAYS - 1)), name, 1)
    world.months.samples.clear()
    realised = world.realised
    hidden = 3 * STEADY * world.nodes_cost  # the dearest type costs less than three times the mean
    assert realised is None or realised <= world.saved + hidden + 2 * CENT
