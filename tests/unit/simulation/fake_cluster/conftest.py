"""The cluster at play that most of these tests begin with."""

from __future__ import annotations

import pytest

from tests.support.fake_clusters import Play


@pytest.fixture
def play() -> Play:
    play = Play()
    play.nodes("a", "b")
    return play
