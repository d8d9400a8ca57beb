"""The cluster: whether it answers, what it allows, and whether the resync sees it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.adapters.kubernetes.calls import OVERLAYS
from plimsoll.adapters.nodegroups import CALLS
from plimsoll.domain.errors import NotFound
from plimsoll.domain.registry import Mode
from plimsoll_cli.doctor.cluster_checks import STALE
from plimsoll_cli.setup.manifests import named, objects_of
from tests.support.builders import NOON
from tests.support.cli_environment import MemoryEnvironment, StillClock, a_cluster, run
from tests.support.cluster_setups import MemoryObjects
from tests.support.doctor import Failing, by_endpoint, deny, findings_by_check, healthy


@pytest.mark.parametrize(
    ("endpoint", "failing", "exit_status", "state", "cure"),
    [
        (True, Failing(), 1, "fail", "plimsoll/harbor"),
        (False, Failing(), 2, "skipped", "ask as somebody whom the cluster knows"),
        (
            *(False, Failing(NotFound("there is no EKS cluster harbor")), 1, "fail"),
            "plimsoll clusters remove harbor",
        ),
    ],
    ids=["a token that it does not take", "EKS does not know whoever asks", "it is no more"],
)
def test_a_cluster_that_does_not_let_in_is_said_with_what_is_to_do(
    endpoint, failing, exit_status, state, cure
):
    environment = healthy()
    if endpoint:
        by_endpoint(environment)
    environment.transports["harbor"] = failing
    status, found = findings_by_check(environment)
    assert (status, found["cluster"]["state"]) == (exit_status, state)
    assert cure in found["cluster"]["cure"]


def carried_out(environment: MemoryEnvironment, cure: str) -> list[str]:
    """Give the command of a cure, and return the overlays that it applies."""
    environment.objects = MemoryObjects()
    words = shlex.split(cure.replace("CONTEXT", "harbor"))
    assert words[0] == "plimsoll"
    result = run(environment, *words[1:], "--yes")
    assert result.exit_code == 0, result.output
    applied = environment.objects.objects.keys()
    assert {named(obj) for obj in objects_of(None)} <= applied
    return [o for o in OVERLAYS if {named(obj) for obj in objects_of(o)} <= applied]


def test_the_rights_of_overlays_may_be_withheld():
    environment = healthy()
    deny(environment, "delete")
    exit_status, found = findings_by_check(environment)
    assert exit_status == 0
    for overlay, effect in {
        "deletions": "(delete pods): no budget is overruled",
        "guard": "no budget is made for workloads that opted in",
        "injection": "is neither told of floors nor proven",
    }.items():
        finding = found[f"rights of {overlay}"]
        assert finding["state"] == "info"
        assert effect in finding["says"]
        assert carried_out(environment, finding["cure"].partition(": ")[2]) == [overlay]


def test_missing_rights_are_named():
    environment = healthy()
    deny(environment, "patch")
    status, found = findings_by_check(environment)
    assert (status, found["rights"]["state"]) == (1, "fail")
    assert "patch nodes" in found["rights"]["says"]
    assert "patch pods" in found["rights"]["says"]
    assert "list" not in found["rights"]["says"]
    assert carried_out(environment, found["rights"]["cure"]) == []
    environment.registry.update(replace(a_cluster(), role="arn:aws:iam::210987654321:role/x"))
    _, found = findings_by_check(environment)
    assert found["rights"]["cure"].endswith(": kubectl apply -k infra/cluster")


def test_rights_to_write_are_not_needed_to_observe():
    environment = healthy(Mode.OBSERVE)
    deny(environment, "patch", "create", "update", "delete")
    status, found = findings_by_check(environment)
    assert (status, found["rights"]["state"]) == (0, "info")
    assert "delete pods" in found["rights"]["says"]


def test_without_the_right_to_watch_a_drain_is_said_to_list_instead():
    environment = healthy()
    deny(environment, "watch")
    status, found = findings_by_check(environment)
    assert (status, found["rights"]["state"]) == (0, "ok")
    assert found["rights to watch"]["state"] == "info"
    assert "watch pods" in found["rights to watch"]["says"]
    assert "--overlay none" in found["rights to watch"]["cure"]


def test_no_right_at_all_means_that_the_manifests_are_not_applied():
    environment = healthy()
    deny(environment, *{call.verb for call in CALLS})
    _, found = findings_by_check(environment)
    assert "infra/cluster is not applied" in found["rights"]["says"]
    assert carried_out(environment, found["rights"]["cure"].partition(", and")[0]) == ["deletions"]


def test_in_an_eks_cluster_the_group_is_asked_about_and_elsewhere_the_token_itself():
    environment = healthy()
    asked = deny(environment).asked
    findings_by_check(environment)
    assert {review["kind"] for review in asked} == {"SubjectAccessReview"}
    assert all("plimsoll" in review["spec"]["groups"] for review in asked)
    assert len(asked) == len(CALLS)
    about = [r["spec"]["resourceAttributes"] for r in asked]
    assert {(a["namespace"], a["name"]) for a in about if a["resource"] == "leases"} == {
        ("plimsoll", "drains"),
        ("plimsoll", ""),
    }
    asked.clear()
    by_endpoint(environment)
    status, found = findings_by_check(environment)
    assert status == 0
    assert {review["kind"] for review in asked} == {"SelfSubjectAccessReview"}
    assert "access entries" not in found
    assert "the functions use" in found["cluster"]["says"]


def test_who_may_not_ask_about_a_group_is_told_who_may():
    environment = healthy()
    deny(environment, open_=False)
    status, found = findings_by_check(environment)
    assert (status, found["rights"]["state"]) == (2, "skipped")
    assert "as an administrator" in found["rights"]["says"]


def test_an_index_that_no_sweep_renews_is_stale():
    environment = healthy()
    environment.clock.time += STALE + timedelta(minutes=1)
    status, found = findings_by_check(environment)
    assert (status, found["node index"]["state"]) == (1, "fail")
    assert found["node index"]["says"].startswith("0 of 2 nodes")
    assert "2026-01-02T12:00:00Z" in found["node index"]["says"]


def test_a_node_that_joined_just_now_may_be_missing_from_the_index():
    environment = healthy()
    environment.index = type(environment.index)()
    environment.registry.update(replace(a_cluster(), added=NOON - timedelta(hours=1)))
    assert findings_by_check(environment)[1]["node index"]["state"] == "fail"
    environment.clock = StillClock(environment.clock.now() - timedelta(minutes=10))
    assert findings_by_check(environment)[1]["node index"]["state"] == "info"


def test_a_cluster_that_was_added_just_now_waits_for_its_first_resync():
    environment = healthy()
    environment.index = type(environment.index)()
    status, found = findings_by_check(environment)
    assert (status, found["node index"]["state"]) == (0, "info")
    assert "registered just now" in found["node index"]["says"]
