"""Before its first event a function makes what every event needs; what fails is left to the event."""

from __future__ import annotations

import pytest

from plimsoll import bootstrap


@pytest.fixture(autouse=True)
def nothing_kept():
    for made in (bootstrap.config, bootstrap.aws):
        made.cache_clear()
    yield
    for made in (bootstrap.config, bootstrap.aws):
        made.cache_clear()


def test_a_start_that_fails_is_logged_and_left_to_the_first_event(monkeypatch, log):
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "function")
    monkeypatch.delenv("TABLES", raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")

    bootstrap.make_ready(lambda services: services.notices)

    [line] = log()
    assert line["level"] == "WARNING"
    assert "are missing: " in line["because"]
    assert "TABLES" in line["because"]


def test_elsewhere_than_in_lambda_nothing_is_made_or_said(monkeypatch, log):
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME", raising=False)

    bootstrap.make_ready(lambda services: services.notices)

    assert log() == []
    assert bootstrap.config.cache_info().currsize == 0
