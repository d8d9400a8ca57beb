"""Release where the admission plugin OwnerReferencesPermissionEnforcement is on.

It lets only those change the owner of a pod who may delete the pod. Plimsoll may not, so the label
alone goes off, and the ReplicaSet takes its own reference off.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plimsoll.domain.kubernetes import POD_TEMPLATE_HASH
from plimsoll_simulation.fake_cluster.conditions import controller_of
from plimsoll_testbed.rigs.controlplane import ControlPlane
from plimsoll_testbed.rigs.endpoints import ReadyEndpoints
from tests.cluster.conftest import SETTINGS
from tests.cluster.ground import Ground
from tests.cluster.harbor import USER, Harbor, drainer
from tests.support.fake_clusters import MERGE, a_budget

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of its own, with the plugin."""
    flag = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
    with ControlPlane(settings=SETTINGS, flags={"kube-apiserver": [flag]}) as plane, drainer(plane):
        yield plane


@pytest.fixture(scope="module")
def endpoints(plane: ControlPlane) -> Iterator[ReadyEndpoints]:
    with ReadyEndpoints(plane.kubeconfig()) as endpoints:
        yield endpoints


def test_the_label_alone_releases_and_no_endpoint_is_missed(
    ground: Ground, endpoints: ReadyEndpoints
):
    harbor = Harbor(ground, endpoints, a_budget("web", "web", maxUnavailable=0), web=2)
    name = harbor.on(harbor.old)[0]
    as_drainer = ground.plane.transport(USER)
    refused = as_drainer.call(
        "PATCH",
        f"{ground.pods_path}/{name}",
        body={"metadata": {"ownerReferences": None}},
        content_type=MERGE,
    )
    assert (refused.status, "can't delete" in refused.body["message"]) == (403, True), refused.body

    status, said = harbor.drain()

    assert (status, harbor.on(harbor.old), len(harbor.on(harbor.new))) == (0, [], 2), said
    assert harbor.seconds_below("web", 2) == 0
    assert said.count("release Pod") == said.count("evict Pod") == 2


def test_a_release_by_the_label_alone_is_undone(ground: Ground, endpoints: ReadyEndpoints):
    harbor = Harbor(ground, endpoints, web=1)
    with harbor.until_released() as process:
        process.kill()
    [pod] = harbor.released()
    assert POD_TEMPLATE_HASH not in pod["metadata"]["labels"]
    ground.until(lambda: all(controller_of(p) is None for p in harbor.released()))
    status, said = harbor.drain(harbor.old, "--undo")

    assert status == 0, said
    assert harbor.released() == []
    ground.until(lambda: len(ground.pods()) == 1)
    ground.until(
        lambda: (
            [owner["kind"] for p in ground.pods() if (owner := controller_of(p))] == ["ReplicaSet"]
        )
    )
    assert harbor.seconds_below("web", 1) == 0
