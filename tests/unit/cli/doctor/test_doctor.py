"""`plimsoll doctor`: what is wrong, and the cure. Every check is made to fail once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.domain.capacity import VcpuQuota
from plimsoll.domain.errors import Refused
from tests.support.builders import a_group
from tests.support.cli_environment import SPOT, Away, FixedLimits, MemoryProbe, an_environment, run
from tests.support.doctor import NORMAL, WEBHOOKS, findings_by_check, guarding, healthy


def test_nothing_is_wrong_with_a_healthy_installation():
    status, found = findings_by_check(healthy())
    assert status == 0
    assert {check: f["state"] for check, f in found.items()} == dict.fromkeys(
        (
            "stack",
            "kill switch",
            "drills",
            "mode",
            "notices",
            "senders",
            "delivery",
            "cluster",
            "API versions",
            "access entries",
            "rights",
            "fields",
            "queue",
            "node index",
            "other drainers",
            "node groups",
            "group maxima",
            "AWS rights",
            "concurrency",
            "quota",
            "addresses",
            "launch templates",
            "start-up",
            "tolerations",
            "opt-outs",
            "webhooks",
            "quotas",
            "budgets",
        ),
        "ok",
    )


def test_people_see_each_finding_with_its_cure_below():
    environment = healthy()
    environment.parameters["KillSwitch"] = "true"
    result = run(environment, "doctor", "--cluster", "harbor")
    assert result.exit_code == 1
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    at = next(n for n, line in enumerate(lines) if line.startswith("fail kill switch it is on"))
    assert lines[at + 1].startswith("-> when its reason is over")


ROLE = "arn:aws:iam::123456789012:role/plimsoll-SweepRole-1"
FULL = a_group("base", desired=10)
UNKNOWN = replace(a_group("base"), template=None)
CLOSED = replace(a_group("base"), may_grow=False)
SCARCE = VcpuQuota(limit=10, used=9)
ROOTLESS = replace(a_group("base"), image="ami-0")
CROWDED = replace(a_group("base"), subnets=("subnet-1",))
SUSPENDED = {"base": replace(NORMAL, suspended=frozenset({"Launch"}))}


@pytest.mark.parametrize(
    ("changed", "check", "state", "exit_status", "words"),
    [
        ({"stack_status": "UPDATE_ROLLBACK_FAILED"}, "stack", "fail", 1, "describe-stack-events"),
        ({"stack_status": "UPDATE_ROLLBACK_COMPLETE"}, "stack", "info", 0, "deploy again"),
        ({"stack_status": "UPDATE_IN_PROGRESS"}, "stack", "info", 0, "when it is done"),
        ({"stack_status": "CREATE_COMPLETE"}, "stack", "ok", 0, "plimsoll in us-east-1"),
        ({"stack_version": "0.0.1"}, "stack", "info", 0, "version 0.0.1"),
        ({"stack_version": None}, "stack", "info", 0, "version not known"),
        ({"parameters": {"AcceptDrills": "true"}}, "drills", "info", 0, "AcceptDrills=false"),
        ({"canary_seconds": 21.0}, "notices", "info", 0, "21.0 s"),
        ({"unknown_roles": [ROLE]}, "access entries", "fail", 1, "SweepRole"),
        ({"unknown_roles": [ROLE]}, "access entries", "fail", 1, "--cluster-name harbor"),
        ({"groups": []}, "node groups", "fail", 1, "kubernetes.io/cluster/harbor"),
        ({"groups": [a_group("base", capacity="spot")]}, "node groups", "fail", 1, "on-demand"),
        ({"groups": [FULL]}, "node group base", "fail", 1, "at its maximum of 10"),
        ({"groups": [UNKNOWN]}, "node group base", "fail", 1, "what a new node of it would be"),
        ({"groups": [CLOSED]}, "node group base", "fail", 1, "lacks the tag plimsoll.dev/grow"),
        ({"group_settings": SUSPENDED}, "node group base", "fail", 1, "Launch is suspended"),
        (
            {"groups": [a_group("managed", kind="eks-nodegroup")], "group_settings": {}},
            *("node groups", "ok", 0, "managed"),
        ),
        ({"limits": FixedLimits(SCARCE)}, "quota", "fail", 1, "request-service-quota-increase"),
        ({"limits": FixedLimits(Refused("AccessDenied"))}, "quota", "info", 0, "AccessDenied"),
        ({"groups": [ROOTLESS]}, "launch templates", "fail", 1, "ami-0"),
        (
            {"groups": [CROWDED], "limits": FixedLimits(free=1)},
            *("addresses", "fail", 1, "larger or another subnet"),
        ),
    ],
)
def test_each_thing_that_is_otherwise_is_found_and_said_with_its_cure(
    changed: dict[str, Any], check: str, state: str, exit_status: int, words: str
):
    environment = healthy()
    for name, value in changed.items():
        setattr(environment, name, value)
    status, found = findings_by_check(environment)
    whole = "node groups" if check == "node group base" else check
    assert (status, found[whole]["state"]) == (exit_status, state)
    assert words in found[check]["says"] + (found[check]["cure"] or "")


def test_an_api_server_that_does_not_answer_here_leaves_the_question_open():
    environment = healthy()
    environment.transports["harbor"] = Away()
    status, found = findings_by_check(environment)
    assert status == 2
    for check in ("cluster", "rights", "fields", "queue", "node index"):
        assert found[check]["state"] == "skipped"
    assert found["notices"]["state"] == "ok"


def test_what_must_be_fixed_counts_more_than_what_could_not_be_asked():
    environment = healthy()
    environment.transports["harbor"] = Away()
    environment.parameters["KillSwitch"] = "true"
    assert findings_by_check(environment)[0] == 1


def test_a_cluster_that_is_not_registered_and_a_stack_that_is_not_there_cannot_be_asked():
    assert run(healthy(), "doctor", "--cluster", "nowhere").exit_code == 2
    assert run(healthy(), "doctor", "--cluster", "harbor", "--stack", "other").exit_code == 2


def test_the_cluster_is_only_read():
    environment, counting = an_environment()
    run(environment, "doctor", "--cluster", "harbor")
    assert {write.rpartition("/")[2] for write in counting.writes} == {"subjectaccessreviews"}
    assert SPOT in environment.index.find([SPOT])


@pytest.mark.parametrize(
    ("check", "plurals"), [("webhooks", WEBHOOKS), ("policies", ["clusterroles"])]
)
def test_that_a_check_may_not_be_read_leaves_everything_else_fine(check, plurals):
    environment = healthy()
    guarding(environment).lists.update(dict.fromkeys(plurals))
    status, found = findings_by_check(environment)
    assert (found[check]["state"], status) == ("info", 0)


@pytest.mark.parametrize(
    ("question", "check", "state"),
    [
        ("send_canary", "notices", "skipped"),
        ("send_past_the_rules", "senders", "skipped"),
        ("targets", "delivery", "info"),
        ("simulated", "AWS rights", "info"),
        ("concurrency", "concurrency", "info"),
        ("unknown_roles", "access entries", "skipped"),
        ("group_settings", "node groups", "skipped"),
    ],
)
def test_a_question_that_aws_refuses_costs_only_the_check_that_asks_it(
    monkeypatch: pytest.MonkeyPatch, question: str, check: str, state: str
):
    def refuse(*_: object) -> None:
        raise Refused(f"{question} is denied")

    monkeypatch.setattr(MemoryProbe, question, refuse)
    status, found = findings_by_check(healthy())
    assert [name for name, f in found.items() if f["state"] != "ok"] == [check]
    assert found[check]["says"].endswith(f"{question} is denied")
    assert (found[check]["state"], status) == (state, 2 if state == "skipped" else 0)
