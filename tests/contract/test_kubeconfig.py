"""A cluster by kubeconfig: what is taken from the file, and what is said of one that is no use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from plimsoll.adapters.kubernetes.kubeconfig import load
from plimsoll.domain.errors import BadInput, Refused
from plimsoll_simulation.fake_cluster.cluster import FakeCluster
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from tests.support.builders import NOON


def a_kubeconfig(folder: Path, *, user: Mapping[str, object] | None = None, **changes) -> Path:
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "harbor",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": "secret"} if user is None else user}],
        "contexts": [
            {"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("harbor", "lab")
        ],
        **changes,
    }
    file = folder / "config"
    file.write_text(yaml.safe_dump(content))
    return file


def test_takes_the_current_context_or_the_one_that_is_named(tmp_path: Path):
    file = a_kubeconfig(tmp_path)
    assert load(file)[1] == "harbor"
    assert load(file, "lab")[1] == "lab"


def answered(api: FakeApiServer, folder: Path, user: Mapping[str, object]) -> int:
    """Return the status of a request to a server that takes one token."""
    clusters = [{"name": "c", "cluster": {"server": api.url}}]
    transport, _ = load(a_kubeconfig(folder, user=user, clusters=clusters))
    return transport.call("GET", "/api/v1/nodes").status


def test_requests_go_to_the_server_of_the_cluster_with_the_token_of_the_user(tmp_path: Path):
    with FakeApiServer(FakeCluster(now=NOON)) as api:
        assert answered(api, tmp_path, {"token": api.token}) == 200
        assert answered(api, tmp_path, {"token": "another"}) == 401


def test_a_client_certificate_needs_no_token(tmp_path: Path):
    with FakeApiServer(FakeCluster(now=NOON)) as api:
        assert answered(api, tmp_path, {}) == 401


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(BadInput, match="no such file"):
        load(tmp_path / "none")


def test_a_context_that_is_not_there_is_named_beside_those_that_are(tmp_path: Path):
    with pytest.raises(BadInput, match="'quay'; it has: harbor, lab"):
        load(a_kubeconfig(tmp_path), "quay")


@pytest.mark.parametrize("content", ["{", "[]", "hello", ""])
def test_a_file_that_is_no_kubeconfig_is_said_so(content: str, tmp_path: Path):
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(BadInput):
        load(file)


def test_a_program_for_credentials_that_fails_is_said_so_or_lets_nobody_in(tmp_path: Path):
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}}
    with FakeApiServer(FakeCluster(now=NOON)) as api:
        try:
            status = answered(api, tmp_path, user)
        except Refused:
            return
        assert status == 401  # the client only logs it
