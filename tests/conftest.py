"""Settings of the whole suite: how long Hypothesis looks, and that unit tests open no sockets.

`HYPOTHESIS_PROFILE=ci` looks longer and finds the same every time; `dev` is the default. Unit tests
may use Unix sockets, because an asyncio loop is made of one.
"""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest
import pytest_socket

UNIT = Path(__file__).parent / "unit"

hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.hookimpl(trylast=True)  # after pytest-socket's own, which lifts what it was not told of
def pytest_runtest_setup(item: pytest.Item) -> None:
    if UNIT in item.path.parents:
        pytest_socket.disable_socket(allow_unix_socket=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    pytest_socket.enable_socket()
