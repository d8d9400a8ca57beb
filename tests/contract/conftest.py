"""What the contract suites run against. Only here do tests know which adapter is behind a port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from plimsoll.adapters.aws import Aws

REGION = "eu-west-1"


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may ever reach an account, whatever the developer's environment says."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def moto_aws(credentials: None) -> Iterator[Aws]:
    """AWS as moto plays it, in this process."""
    with mock_aws():
        yield Aws(REGION)
