"""Node groups: whether there is capacity for what must move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.builders import a_group
from tests.support.doctor import NORMAL, changed, findings_by_check, healthy


def test_one_group_that_can_grow_is_enough_and_the_others_are_noted():
    environment = healthy()
    environment.groups = [a_group("base"), a_group("full", desired=10)]
    environment.group_settings["full"] = NORMAL
    status, found = findings_by_check(environment)
    assert (status, found["node groups"]["state"]) == (0, "ok")
    assert "base (on-demand) by 10" in found["node groups"]["says"]
    assert found["node group full"]["state"] == "info"


def test_groups_whose_maxima_do_not_hold_what_spot_nodes_are_is_noted_before_a_storm():
    environment = healthy()
    full, closed = a_group("base", desired=10), replace(a_group("base"), may_grow=False)
    for group, said in ((full, "0 of"), (closed, "0 of"), (a_group("base", cpu="1"), "of")):
        environment.groups = [replace(group, max_size=min(group.max_size, group.desired + 1))]
        _, found = findings_by_check(environment)
        assert found["group maxima"]["state"] == "info"
        assert said in found["group maxima"]["says"]
        assert "raise the maximum" in found["group maxima"]["cure"]


def test_a_group_that_launches_nothing_at_once_is_named():
    environment = healthy()
    environment.group_settings = {"base": replace(NORMAL, slow="it mixes on-demand and spot")}
    status, found = findings_by_check(environment)
    assert status == 0
    assert "its desired capacity is raised" in found["node group base"]["says"]


@pytest.mark.parametrize(("most", "told"), [(9, True), (10, False)])
def test_a_node_pool_with_less_room_than_its_spot_nodes_need_is_named(most, told):
    environment = healthy()
    pool = a_group("flexible", kind="karpenter", capacity="spot", desired=5, max_size=most)
    environment.groups = [*environment.groups, pool]
    status, found = findings_by_check(environment)
    assert ("NodePool flexible" in found) == told
    assert status == 0


def test_a_node_pool_that_is_not_ready_is_named_with_why():
    environment = healthy()
    pool = a_group("flexible", kind="karpenter", capacity="spot", desired=5, max_size=9)
    environment.groups = [*environment.groups, replace(pool, closed="it is not Ready (no AMI)")]
    found = findings_by_check(environment)[1]["NodePool flexible"]
    assert "not Ready (no AMI)" in str(found)
    assert "EC2NodeClass" in found["cure"]


@pytest.mark.parametrize(("said", "told"), [("ja", True), ("yes", False), ("false", False)])
def test_a_mark_that_opts_out_of_nothing_is_named(said: str, *, told: bool):
    environment = healthy()
    annotations = {"metadata": {"annotations": {"plimsoll.dev/ignore": said}}}
    changed(environment, "/apis/apps/v1/namespaces/default/deployments/web", annotations)
    found = findings_by_check(environment)[1]["opt-outs"]
    assert (found["state"] == "info") is told
    assert (
        not told
        or "Deployment default/web: plimsoll.dev/ignore has the value 'ja'" in found["says"]
    )
