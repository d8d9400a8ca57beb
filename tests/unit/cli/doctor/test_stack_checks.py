"""The stack: its mode, the way of a notice through it, and who else may send one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from plimsoll.domain.registry import Mode
from plimsoll_cli.probes.aws import Direct, Target
from tests.support.doctor import findings_by_check, healthy


def test_observing_is_right_for_some_and_said_in_words():
    status, found = findings_by_check(healthy(Mode.OBSERVE))
    assert status == 0
    assert found["mode"]["state"] == "info"
    assert "nothing is written to harbor" in found["mode"]["says"]
    assert "--mode act" in found["mode"]["cure"]


def test_a_canary_that_does_not_arrive_is_waited_for_and_then_said():
    environment = healthy()
    environment.canary_seconds = None
    before = environment.clock.now()
    status, found = findings_by_check(environment, "--wait", "5")
    assert (status, found["notices"]["state"]) == (1, "fail")
    assert "CanaryMissing" in found["notices"]["cure"]
    assert environment.clock.now() - before == timedelta(seconds=5)


def test_each_run_has_a_canary_of_its_own():
    environment = healthy()
    assert findings_by_check(environment)[0] == 0
    environment.canary_seconds = None
    assert findings_by_check(environment)[0] == 1


@pytest.mark.parametrize(
    ("direct", "parameters", "state"),
    [
        (Direct.BY_THE_QUEUE, {}, "ok"),
        (Direct.OTHERWISE, {}, "info"),
        (Direct.TAKEN, {}, "fail"),
        (Direct.TAKEN, {"AcceptDrills": "true"}, "info"),
    ],
    ids=["denied by the queue", "denied otherwise", "taken", "taken by an emulator"],
)
def test_who_may_send_past_the_rules_is_tried(direct, parameters, state):
    environment = healthy()
    environment.direct, environment.parameters = direct, parameters
    status, found = findings_by_check(environment)
    assert (found["senders"]["state"], status) == (state, int(state == "fail"))


@pytest.mark.parametrize(
    ("target", "state"),
    [
        (Target(rule="notices", seconds=300, dead_letters="arn"), "ok"),
        (Target(rule="notices", seconds=None, dead_letters="arn"), "fail"),
        (Target(rule="notices", seconds=300, dead_letters=None), "fail"),
    ],
    ids=["as told", "for a day", "not kept"],
)
def test_rules_are_compared_with_what_the_template_told_them(target, state):
    environment = healthy()
    environment.targets = [target]
    assert findings_by_check(environment)[1]["delivery"]["state"] == state
