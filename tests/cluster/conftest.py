"""One control plane for the whole run: starting it takes seconds, and tests share it.

Each test gets a `Ground` of its own on it: a namespace, and nodes that only its pods go to.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from plimsoll.adapters.kubernetes import Transport
from plimsoll.adapters.kubernetes.client import PLAYED, ClientTransport
from plimsoll_simulation.fake_cluster.settings import Settings
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.ground import Ground
from tests.cluster.installed import BINDINGS, as_member, install
from tests.cluster.placing import Cast, a_cast

SETTINGS = Settings(
    pod_startup=timedelta(seconds=1),
    pod_stop=timedelta(seconds=0.5),
    volume_attach=timedelta(seconds=0.5),
    volume_detach=timedelta(seconds=0.5),
)


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(settings=SETTINGS) as plane:
        yield plane


@pytest.fixture(scope="session")
def guarded(plane: ControlPlane) -> ControlPlane:
    """The control plane with `infra/cluster` applied: the user plimsoll is held to its fields."""
    install(plane)
    return plane


@pytest.fixture(scope="module")
def all_rights(guarded: ControlPlane) -> Iterator[ClientTransport]:
    """A member of our group who may otherwise do anything."""
    api, name, rbac = (
        guarded.transport(),
        "all-rights-beside-the-group",
        "rbac.authorization.k8s.io",
    )
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": rbac, "kind": "User", "name": PLAYED}],
    }
    assert api.call("POST", BINDINGS, body=binding).status == 201
    yield as_member(guarded)
    api.call("DELETE", f"{BINDINGS}/{name}")


@pytest.fixture(params=["with our own rights", "with all rights beside the group"])
def ours(
    request: pytest.FixtureRequest, guarded: ControlPlane, all_rights: ClientTransport
) -> Transport:
    """The group plimsoll; every refusal is tried in both ways, so that the policies hold by themselves."""
    return guarded.transport("plimsoll") if "own" in request.param else all_rights


@pytest.fixture
def ground(plane: ControlPlane) -> Iterator[Ground]:
    with Ground(plane) as ground:
        yield ground


@pytest.fixture
def lone_cast() -> Iterator[Cast]:
    """A cast on a control plane of its own, for a test after which no policy can be relied on."""
    with ControlPlane(settings=SETTINGS) as plane:
        install(plane)
        with a_cast(plane) as cast:
            yield cast


@pytest.fixture
def cast(guarded: ControlPlane) -> Iterator[Cast]:
    with a_cast(guarded) as cast:
        yield cast
