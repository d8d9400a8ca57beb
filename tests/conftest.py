"""Settings of the whole suite: how long Hypothesis looks, and that unit tests open no sockets.

`HYPOTHESIS_PROFILE=ci` looks longer and finds the same every time, `long` is that of `make test-long`,
and `dev` is the default; tests/support/properties.py draws less of whole storms. Unit tests may use
Unix sockets, because an asyncio loop is made of one.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import hypothesis
import pytest
import pytest_socket
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from plimsoll_testbed.rigs.localstack.localstack import LocalStack

TESTS = Path(__file__).parent
UNIT = TESTS / "unit"
SLOWEST = {
    *(f"tests/cluster/test_{module}.py" for module in ("rig", "placement", "services")),
    "tests/differential/test_differential.py",
    "tests/differential/test_scheduler.py",
}

hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
hypothesis.settings.register_profile("long", max_examples=200, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


class ModuleScheduling(LoadFileScheduling):
    """Keeps a module on one core, since it shares fixtures, and all emulators on one, since they time.

    `--dist loadgroup` does not: under pytest 9.2 it groups nothing and says nothing of it
    (https://github.com/pytest-dev/pytest-xdist/issues/1386).
    """

    def _split_scope(self, nodeid: str) -> str:
        module = super()._split_scope(nodeid)
        return "emulator" if starts_an_emulator(module) else module


@cache
def starts_an_emulator(module: str) -> bool:
    return "pytest.mark.emulator" in (TESTS.parent / module).read_text(encoding="utf-8")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ModuleScheduling | None:
    return ModuleScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes minutes, so that no core is left alone with it; all emulators are one chain."""

    def module(item: pytest.Item) -> str:
        return item.nodeid.partition("::")[0]

    items.sort(
        key=lambda item: module(item) not in SLOWEST and not starts_an_emulator(module(item))
    )
    for item in items:
        if starts_an_emulator(module(item)):
            # Servers keep their own time on a machine that is not theirs alone: what fails must fail twice.
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=5))


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what was imported: that stays, and there is much of it."""
    gc.collect()
    gc.freeze()


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
    from plimsoll_simulation.fake_aws.fleet import Fleet  # noqa: PLC0415
    from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet  # noqa: PLC0415
    from plimsoll_testbed.rigs.localstack.localstack import LocalStack  # noqa: PLC0415

    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    with (
        AwsFleet([Fleet("harbor", [], seed=0, now=now)], clock=lambda: now, lock=RLock()) as aws,
        LocalStack(endpoints=aws.endpoints) as localstack,
    ):
        localstack.deploy(AcceptDrills="true", Size="small")
        yield localstack
