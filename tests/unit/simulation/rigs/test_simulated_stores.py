"""The stores of the simulated rig: every call of their ports passes the wire."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from plimsoll.services.ports import LayoutStore, NodeIndex, Pools, Registry, Reports, Times
from plimsoll_simulation.rigs.simulated.stores import (
    LAYOUTS,
    NODE_INDEX,
    POOLS,
    REGISTRY,
    REPORTS,
    TIMES,
)


@pytest.mark.parametrize(
    ("port", "operations"),
    [
        (Registry, REGISTRY),
        (NodeIndex, NODE_INDEX),
        (Reports, REPORTS),
        (Pools, POOLS),
        (Times, TIMES),
        (LayoutStore, LAYOUTS),
    ],
)
def test_each_method_of_a_port_has_its_operation(port: type, operations: Mapping[str, str]):
    methods = {name for each in port.__mro__ for name in vars(each) if not name.startswith("_")}
    assert methods - operations.keys() <= {
        "names",
        "agents",
    }  # of a registry, for the command line and the service
