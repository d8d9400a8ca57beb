"""A schedule in, one placement run."""

from __future__ import annotations

import pytest

from functions import placement
from plimsoll.domain.errors import Temporary


def test_a_schedule_places_every_cluster_once(service, context):
    placement.handler({}, context)
    assert service.asked == ["run"]


def test_a_run_that_fails_is_an_error_of_the_function(service, context):
    service.answers = {"run": Temporary("not placed: harbor")}
    with pytest.raises(Temporary):
        placement.handler({}, context)
