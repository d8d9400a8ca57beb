"""A schedule in, one resync."""

from __future__ import annotations

import pytest

from functions import sweep
from plimsoll.domain.errors import Temporary
from tests.functions.conftest import embedded_metrics

SCHEDULED = {"detail-type": "Scheduled Event", "source": "aws.events", "detail": {}}


def test_a_resync_that_ends_well_is_counted(service, context, capsys):
    sweep.handler(SCHEDULED, context)
    assert service.asked == ["run"]
    assert embedded_metrics(capsys.readouterr().out)["ResyncFinished"] == [1.0]


def test_a_resync_that_fails_is_an_error_of_the_function_and_not_counted(service, context, capsys):
    service.answers = {"run": Temporary("not resynced: harbor")}
    with pytest.raises(Temporary):
        sweep.handler(SCHEDULED, context)
    assert "ResyncFinished" not in embedded_metrics(capsys.readouterr().out)
