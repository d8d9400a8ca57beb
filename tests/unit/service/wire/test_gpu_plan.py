"""The plan of GPU layouts is taken as it is written, or refused with the place named."""

from __future__ import annotations

import json

import pytest

from plimsoll_service.wire.documents import Malformed
from plimsoll_service.wire.gpu_plan import MOST_CHARACTERS, parse_plan

NODE = {
    "name": "gpu-1",
    "uid": "uid-1",
    "value": "all-1g.10gb",
    "allocatable": {"nvidia.com/mig-1g.10gb": 56},
}
CONFIG = {
    "namespace": "gpu-operator",
    "name": "plimsoll-mig-config",
    "key": "config.yaml",
    "sha256": "0" * 64,
}
PLAN = {"config": CONFIG, "nodes": [NODE]}


def test_a_plan_changes_one_node_an_hour_by_the_label_of_mig_manager_unless_it_says_otherwise():
    plan = parse_plan(json.dumps(PLAN))

    assert (plan.nodes_per_hour, plan.paused) == (1, False)
    assert plan.nodes[0].label == "nvidia.com/mig.config"
    assert plan.nodes[0].allocatable == {"nvidia.com/mig-1g.10gb": 56}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"node_per_hour": 2}, "node_per_hour"),
        ({"nodes_per_hour": 0}, "nodes_per_hour"),
        ({"paused": "yes"}, "paused"),
        ({"nodes": [NODE, NODE | {"uid": "uid-2"}]}, "twice"),
        ({"nodes": [NODE | {"label": "team"}]}, "label"),
        ({"nodes": [NODE | {"value": "no label"}]}, "value"),
        ({"nodes": [NODE | {"allocatable": {}}]}, "allocatable"),
        ({"nodes": [NODE | {"allocatable": {"cpu": 4}}]}, "cpu"),
        ({"nodes": [NODE | {"allocatable": {"nvidia.com/gpu": 0}}]}, "without any GPU"),
        ({"nodes": [NODE | {"allocatable": {"nvidia.com/gpu": -1}}]}, "allocatable"),
        ({"config": CONFIG | {"sha256": "short"}}, "sha256"),
        ({"nodes": [NODE | {"uid": ""}]}, "uid"),
    ],
)
def test_a_slip_of_the_pen_is_refused_by_its_name(change, named):
    with pytest.raises(Malformed, match=named):
        parse_plan(json.dumps(PLAN | change))


@pytest.mark.parametrize("text", ["", "nodes: []", "[" * 10_000, "x" * (MOST_CHARACTERS + 1)])
def test_other_text_is_no_plan(text):
    with pytest.raises(Malformed):
        parse_plan(text)
