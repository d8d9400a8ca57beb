"""A cluster by kubeconfig: what is taken from the file, and what is said of one that is no use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from plimsoll.domain.errors import BadInput, Refused
from plimsoll_testbed.rigs.kubeconfig import load


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


def test_takes_endpoint_and_token(tmp_path: Path):
    transport, _ = load(a_kubeconfig(tmp_path))
    assert transport._endpoint == "https://10.0.0.1:6443"
    assert transport._token is not None
    assert transport._token.get() == "secret"


def test_a_client_certificate_needs_no_token(tmp_path: Path):
    transport, _ = load(a_kubeconfig(tmp_path, user={}))
    assert transport._token is None


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


def test_a_program_for_credentials_that_fails_is_said_so(tmp_path: Path):
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false"}}
    try:
        transport, _ = load(a_kubeconfig(tmp_path, user=user))
    except Refused:
        return
    assert transport._token is None  # the client only logs it: the API server then refuses us
