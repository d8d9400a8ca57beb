"""`plimsoll rehearse --group`: node groups of a cluster without a stack."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plimsoll.domain.errors import BadInput
from plimsoll_cli.lab.rehearsal_groups import groups_of
from tests.support.builders import a_node
from tests.support.cli_environment import MemoryEnvironment, run
from tests.support.rehearsed import a_mixed_cluster

BASE = "base=m6i.xlarge,on-demand,max=4"
FILE = """
groups:
  - name: base
    instanceTypes: [x9.huge]
    capacity: on-demand
    max: 4
    zones: [us-east-1b]
    labels: {team: shop}
    taints: [{key: dedicated, value: shop}]
    allocatable: {cpu: "4", memory: 16Gi, pods: 58}
"""


@pytest.fixture
def environment() -> MemoryEnvironment:
    return a_mixed_cluster(growing=False)


def test_a_group_that_is_given_adds_nodes_and_needs_no_stack(environment: MemoryEnvironment):
    found = run(environment, "rehearse", "--context", "harbor", "--group", BASE, "-o", "json")
    answer = json.loads(found.stdout)
    assert [(row["group"], row["capacity"]) for row in answer["asked"]] == [("base", "on-demand")]
    assert answer["asked"][0]["nodes_added"] > 0


def test_without_a_group_no_node_is_added_and_that_is_said(environment: MemoryEnvironment):
    found = run(environment, "rehearse", "--context", "harbor", "-o", "json")
    answer = json.loads(found.stdout)
    assert answer["asked"] == []
    assert "give each group that may grow with --group" in " ".join(answer["notes"])


def test_a_stack_tells_its_groups_itself(environment: MemoryEnvironment):
    found = run(environment, "rehearse", "--cluster", "harbor", "--group", BASE)
    assert found.exit_code == 2
    assert "with --cluster, Plimsoll reads the node groups from AWS" in " ".join(
        found.stderr.split()
    )


def test_new_nodes_are_as_present_ones_of_the_group_then_as_the_table_says():
    present = a_node("n", cpu="3500m", labels={"eks.amazonaws.com/nodegroup": "base"})
    (known,) = groups_of([BASE], None, [present])
    assert known.template is not None
    assert (known.desired, known.addable_nodes) == (1, 3)
    assert known.template.allocatable.cpu == 3500

    (new,) = groups_of([BASE], None, [a_node("n")])
    assert new.template is not None
    assert (new.desired, new.zones) == (0, (a_node("n").zone,))
    assert 3800 < new.template.allocatable.cpu < 4000


def test_of_several_types_the_least_counts():
    (group,) = groups_of(["base=m6i.large,m6i.xlarge,spot,max=2,zone=us-east-1a"], None, [])
    assert group.template is not None
    assert 1800 < group.template.allocatable.cpu < 2000
    assert (group.capacity, group.zones) == ("spot", ("us-east-1a",))


def test_a_file_gives_labels_taints_and_sizes_of_types_that_no_table_knows(tmp_path: Path):
    file = tmp_path / "groups.yaml"
    file.write_text(FILE)
    (group,) = groups_of([], file, [])
    assert group.template is not None
    assert group.template.allocatable.cpu == 4000
    assert group.template.labels["team"] == "shop"
    assert [str(taint.key) for taint in group.template.taints] == ["dedicated"]


@pytest.mark.parametrize(
    "text",
    [
        "base",
        "base=m6i.large",
        "base=m6i.large,on-demand",
        "base=on-demand,max=3",
        "base=m6i.large,on-demand,max=many",
        "base=m6i.large,on-demand,spot,max=3",
        "base=m6i.large,on-demand,max=3,colour=red",
        "=m6i.large,on-demand,max=3",
    ],
)
def test_an_option_that_is_written_otherwise_is_answered_with_the_form(text: str):
    with pytest.raises(BadInput, match=r"write NAME=TYPE.*--group base=m6i.large,on-demand,max=6"):
        groups_of([text], None, [])


def test_an_unknown_instance_type_is_answered_with_what_to_do():
    with pytest.raises(BadInput, match=r"size of the instance type x9.huge.*allocatable"):
        groups_of(["base=x9.huge,on-demand,max=3"], None, [])


def test_a_group_is_given_once():
    with pytest.raises(BadInput, match="base is given twice"):
        groups_of([BASE, BASE], None, [])


def test_a_file_with_a_word_that_is_unknown_names_the_line(tmp_path: Path):
    file = tmp_path / "groups.yaml"
    file.write_text(FILE.replace("max: 4", "most: 4"))
    with pytest.raises(BadInput, match="most"):
        groups_of([], file, [])
