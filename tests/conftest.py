"""Settings of the whole suite: how long Hypothesis looks, and that unit tests open no sockets.

`HYPOTHESIS_PROFILE=ci` looks longer and finds the same every time; `dev` is the default. Unit tests
may use Unix sockets, because an asyncio loop is made of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import hypothesis
import pytest
import pytest_socket

if TYPE_CHECKING:
    from plimsoll_testbed.rigs.localstack.localstack import LocalStack

UNIT = Path(__file__).parent / "unit"

hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep a module on one core, since it shares fixtures, and all emulators on one, since they time."""
    for item in items:
        timed = item.get_closest_marker("emulator")
        item.add_marker(pytest.mark.xdist_group("emulator" if timed else str(item.path)))


@pytest.hookimpl(trylast=True)  # after pytest-socket's own, which lifts what it was not told of
def pytest_runtest_setup(item: pytest.Item) -> None:
    if UNIT in item.path.parents:
        pytest_socket.disable_socket(allow_unix_socket=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    pytest_socket.enable_socket()


@pytest.fixture(scope="session")
def localstack() -> Iterator[LocalStack]:
    """LocalStack with the built template deployed to it; one for all who ask, since it takes minutes."""
    # Imported here: every run of any test would wait for moto.
    from plimsoll_testbed.model.fleet import Fleet  # noqa: PLC0415
    from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet  # noqa: PLC0415
    from plimsoll_testbed.rigs.localstack.localstack import LocalStack  # noqa: PLC0415

    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    with (
        AwsFleet([Fleet("harbor", [], seed=0, now=now)], clock=lambda: now, lock=RLock()) as aws,
        LocalStack(endpoints=aws.endpoints) as localstack,
    ):
        localstack.deploy(AcceptDrills="true", Size="small")
        yield localstack
