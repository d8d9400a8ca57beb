"""A row of pods gets node by node what a look at all nodes would have chosen."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.domain.kubernetes import HOSTNAME, ZONE, Node, Pod, Resources
from plimsoll.domain.scheduling import ClusterSnapshot
from plimsoll.domain.scheduling.scoring import left, weights
from tests.support.builders import ZONE_A, ZONE_B, ZONE_C, a_node, a_pod

SHY = {"key": "k", "effect": "PreferNoSchedule"}


@st.composite
def node_rows(draw: st.DrawFn) -> list[Node]:
    """Draw up to eight nodes of uneven size in up to three zones."""
    return [
        a_node(
            f"n{index}",
            zone=draw(st.sampled_from([ZONE_A, ZONE_A, ZONE_B, ZONE_C])),
            cpu=f"{draw(st.integers(0, 8))}",
            pods=draw(st.integers(1, 5)),
            taints=draw(st.sampled_from([[], [], [SHY]])),
        )
        for index in range(draw(st.integers(1, 8)))
    ]


def spread_by(key: str, skew: int = 1) -> list[dict[str, object]]:
    return [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]


WEB, CART, API, BARE = (
    a_pod("web", owner=("ReplicaSet", "web"), cpu="1"),
    a_pod("cart", owner=("ReplicaSet", "cart"), cpu="1"),
    a_pod("api", owner=("ReplicaSet", "api"), cpu="2", tolerations=[{"operator": "Exists"}]),
    a_pod("bare", owner=None, cpu="0"),
)
ZONED, APART, BOTH = (
    a_pod(name, owner=("ReplicaSet", "web"), cpu="1", topologySpreadConstraints=spread)
    for name, spread in (
        ("zoned", spread_by(ZONE)),
        ("apart", spread_by(HOSTNAME, 2)),
        ("both", spread_by(ZONE, 2) + spread_by(HOSTNAME)),
    )
)
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("row"),
            st.sampled_from([WEB, CART, API, BARE, ZONED, APART, BOTH]),
            st.integers(1, 6),
        ),
        st.tuples(st.just("leaves"), st.just(WEB), st.integers(0, 30)),
        st.tuples(st.just("comes elsewhere"), st.sampled_from([API, WEB]), st.integers(0, 7)),
        st.tuples(st.just("node"), st.just(WEB), st.integers(0, 7)),
        st.tuples(st.just("copy"), st.just(WEB), st.just(0)),
    ),
    max_size=16,
)


def chosen_slowly(snapshot: ClusterSnapshot, pod: Pod, closed: frozenset[str]) -> str | None:
    nodes = [node for node in snapshot.candidates(pod) if node.name not in closed]
    return snapshot.best(pod, nodes).name if nodes else None


def comes_or_goes(snapshot: ClusterSnapshot, node: Node) -> None:
    if node.name in snapshot.nodes:
        snapshot.remove_node(node.name)
    else:
        snapshot.add_node(node)


@given(nodes=node_rows(), steps=steps, closed=st.sets(st.sampled_from(["n0", "n3"])))
def test_what_is_chosen_for_a_row_of_pods_is_the_best_of_all_candidates(
    nodes: list[Node], steps: list[tuple[str, Pod, int]], closed: set[str]
):
    snapshot, shut = ClusterSnapshot(nodes, []), frozenset(closed)
    standing: list[Pod] = []
    for what, like, number in steps:
        node = nodes[number % len(nodes)]
        match what:
            case "row":
                for _ in range(number):
                    pod = replace(like, uid=f"u{len(standing)}", name=f"p{len(standing)}")
                    expected = chosen_slowly(snapshot, pod, shut)
                    chosen = snapshot.choose(pod, shut)
                    assert (chosen.name if chosen else None) == expected
                    if chosen is not None:
                        snapshot.place(pod, chosen.name)
                        standing.append(pod)
            case "leaves":
                for pod in standing[number : number + 1]:
                    snapshot.remove(pod)
            case "node":
                comes_or_goes(snapshot, node)
            case "copy":
                snapshot = snapshot.copy()
            case _:
                if node.name in snapshot.nodes:
                    snapshot.place(replace(like, uid=f"e{number}"), node.name)


def test_a_row_sees_nodes_that_come_and_go_in_the_middle():
    snapshot = ClusterSnapshot([a_node("a", cpu="1")], [])
    row = [replace(WEB, uid=f"u{n}") for n in range(6)]
    found: list[str | None] = []
    for number, pod in enumerate(row):
        if number == 2:
            snapshot.add_node(a_node("b", cpu="2"))
        if number == 5:
            snapshot.remove_node("a")
        node = snapshot.choose(pod)
        found.append(node.name if node else None)
        if node is not None:
            snapshot.place(pod, node.name)
    assert found == ["a", None, "b", "b", None, None]


def test_a_pod_that_stands_in_the_snapshot_chooses_as_if_it_had_left():
    snapshot, pod = ClusterSnapshot([a_node("a", cpu="1")], []), a_pod(cpu="1", node="a")
    snapshot.place(pod, "a")
    assert [snapshot.choose(pod) for _ in range(3)] == [snapshot.nodes["a"]] * 3


def test_a_copy_goes_on_by_itself():
    snapshot = ClusterSnapshot([a_node("a", cpu="2"), a_node("b", cpu="1")], [])
    row = [replace(WEB, uid=f"u{n}") for n in range(4)]
    for pod in row[:2]:
        chosen = snapshot.choose(pod)
        assert chosen is not None
        snapshot.place(pod, chosen.name)
    twin = snapshot.copy()
    for pod in row[2:]:
        chosen = twin.choose(pod)
        if chosen is not None:
            twin.place(pod, chosen.name)
    assert [len(snapshot.on(name)) for name in ("a", "b")] == [1, 1]
    assert [len(twin.on(name)) for name in ("a", "b")] == [2, 1]


def test_a_zone_that_only_peers_may_share_is_open_to_others():
    snapshot = ClusterSnapshot([a_node("a", zone="a", cpu="2"), a_node("b", zone="b", cpu="2")], [])
    snapshot.place(replace(WEB, uid="u0"), "a")
    assert snapshot.choose(replace(WEB, uid="u1")) is snapshot.nodes["b"]
    snapshot.place(replace(API, uid="u2"), "b")
    assert snapshot.choose(replace(CART, uid="u3")) is snapshot.nodes["a"]


def test_what_leaves_a_full_snapshot_leaves_its_copy_full():
    snapshot = ClusterSnapshot([a_node("a", cpu="1")], [replace(WEB, uid="u0", node="a")])
    assert snapshot.choose(replace(CART, uid="u1")) is None
    twin = snapshot.copy()
    snapshot.remove(replace(WEB, uid="u0"))
    assert twin.choose(replace(CART, uid="u1")) is None
    assert snapshot.choose(replace(CART, uid="u1")) is snapshot.nodes["a"]


def test_a_node_that_does_not_say_what_it_has_counts_none_of_it_as_free():
    assert left(Resources(), Resources()) == 0
    assert left(Resources(cpu=1), Resources(cpu=4, memory=0)) == 0.25


@given(domains=st.integers(1, 10_000), more=st.integers(1, 10_000))
def test_a_zone_weighs_as_much_as_a_node_where_there_are_as_many_and_less_where_there_are_fewer(
    domains, more
):
    by_zone, by_host = weights(zones=domains, nodes=domains)
    assert by_zone == by_host < weights(zones=domains, nodes=domains + more)[1]
