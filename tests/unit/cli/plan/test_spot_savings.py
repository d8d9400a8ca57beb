"""What spot saves: a pod's share of its node, priced by a dated table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.kubernetes import MIN_ON_DEMAND
from plimsoll.domain.observation import Observation
from plimsoll.domain.placement import plan_placement
from plimsoll_cli.plan.spot_savings import Savings, savings_of
from plimsoll_service.adapters.price_table import price_table
from plimsoll_service.domain.analysis.prices import HOURS_PER_MONTH, Price, PriceTable
from tests.support.builders import NOON, a_deployment, a_node, a_pod, pod_spec_json
from tests.support.observations import WEB, looked

TABLE = PriceTable(
    region="us-east-1", dates="of today", prices={"m5.large": Price(on_demand=0.3, spot=0.1)}
)
MONTH = 0.2 * HOURS_PER_MONTH


def node(name: str, kind: str = "m5.large", capacity: str = "spot"):
    labels = {"node.kubernetes.io/instance-type": kind}
    return a_node(name, cpu="8", memory="32Gi", capacity=capacity, labels=labels)


def cluster(*nodes, replicas: int = 4, floor: str = "1") -> Observation:
    """Return a cluster whose pods, each an eighth of a node, stand on its nodes in turn."""
    spec = {"cpu": "1", "memory": "4Gi"}
    pods = [a_pod(f"web-{n}", node=nodes[n % len(nodes)].name, **spec) for n in range(replicas)]
    web = a_deployment(
        replicas=replicas, annotations={MIN_ON_DEMAND: floor}, template=pod_spec_json(**spec)
    )
    return looked(list(nodes), pods, [web])


def saved(seen: Observation) -> Savings:
    return savings_of(seen, plan_placement(seen, NOON), TABLE)


def test_a_pod_on_spot_saves_its_share_of_what_its_node_saves():
    found = saved(cluster(node("spot"), node("od", capacity="on-demand")))
    assert found.of(WEB).now == pytest.approx(2 / 8 * MONTH)


def test_then_as_many_stand_on_spot_as_the_floor_allows():
    found = saved(cluster(node("spot"), node("od", capacity="on-demand")))
    assert found.of(WEB).spot == 3
    assert found.of(WEB).then == pytest.approx(3 / 8 * MONTH)


def test_a_floor_of_all_replicas_would_save_nothing():
    found = saved(cluster(node("spot"), node("od", capacity="on-demand"), floor="4"))
    assert (found.of(WEB).spot, found.of(WEB).then) == (0, 0.0)


def test_a_type_without_a_price_is_named_and_counts_as_nothing():
    found = saved(cluster(node("spot", "x99.large"), node("od", capacity="on-demand")))
    assert found.unpriced == {"x99.large": 1}
    assert found.now == 0


@pytest.mark.parametrize(
    ("region", "said"),
    [
        ("us-east-1", "us-east-1, of today"),
        ("eu-west-1", "us-east-1, of today; prices differ in eu-west-1, where nodes are"),
    ],
)
def test_it_says_where_nodes_are_elsewhere_than_the_prices(region, said):
    there = node("spot")
    assert saved(cluster(there)).prices == "us-east-1, of today"
    there = replace(there, labels={**there.labels, "topology.kubernetes.io/region": region})
    assert saved(cluster(there)).prices == said


def test_pods_without_a_floor_are_counted_beside():
    found = saved(cluster(node("spot"), node("od", capacity="on-demand"), floor="0"))
    assert found.others == {"spot": 2, "on-demand": 2}
    assert found.now == pytest.approx(2 / 8 * MONTH)


def test_the_shipped_table_is_dated_and_spot_never_costs_more():
    table = price_table()
    assert "2026" in table.dates
    assert len(table.prices) > 500
    assert all(0 < price.spot <= price.on_demand for price in table.prices.values())
