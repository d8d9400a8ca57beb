"""What IAM decides on requests of the stack's roles."""

from __future__ import annotations

import pytest

from plimsoll_cli.probes.aws import Simulated
from plimsoll_cli.probes.iam_requests import Case, Request
from tests.support.doctor import findings_by_check, healthy


def simulated(*, allowed: bool, decision: str) -> Simulated:
    request = Request(action="dynamodb:GetItem", resource="arn:aws:dynamodb:::table/clusters")
    return Simulated(
        case=Case(role="NoticesRole", request=request, allowed=allowed), decision=decision
    )


@pytest.mark.parametrize(
    ("allowed", "decision", "state"),
    [
        (True, "allowed", "ok"),
        (True, "implicitDeny", "fail"),
        (True, "explicitDeny", "fail"),
        (False, "implicitDeny", "ok"),
        (False, "explicitDeny", "ok"),
        (False, "allowed", "fail"),
    ],
)
def test_a_role_that_may_more_or_less_than_it_must_is_named(allowed, decision, state):
    environment = healthy()
    right = simulated(allowed=False, decision="implicitDeny")
    environment.simulated = [right, simulated(allowed=allowed, decision=decision)]
    status, found = findings_by_check(environment)
    assert (found["AWS rights"]["state"], status) == (state, int(state == "fail"))
    if state == "fail":
        assert "1 of 2" in found["AWS rights"]["says"]
        assert f"NoticesRole dynamodb:GetItem ({decision})" in found["AWS rights"]["says"]
