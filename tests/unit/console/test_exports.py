"""A screen as one file: whole, without links, scripts or anything from elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll_console.exports import exported
from plimsoll_console.views.cluster import PAGE, cluster
from plimsoll_console.views.rehearsal import rehearsal
from tests.support.builders import a_deployment
from tests.support.console_sources import state_of
from tests.unit.console.test_screens import HOSTILE, Tags, assert_harmless, calm, hostile_source


@pytest.fixture
def many() -> str:
    """A file of more workloads than a page of the console lists."""
    seen = replace(
        calm(), workloads=[a_deployment(f"w{n:03}", replicas=2) for n in range(PAGE + 9)]
    )
    return exported(cluster, state_of(seen))


def test_a_file_lists_every_workload_since_it_has_no_next_page(many: str):
    assert all(f"default/w{n:03}" in many for n in range(PAGE + 9))


def test_a_file_has_no_link_form_or_script_and_forbids_what_is_elsewhere(many: str):
    tags = Tags()
    tags.feed(many)
    assert not {"a", "form", "input", "button", "script", "link"} & {tag for tag, _ in tags.found}
    policies = [said["content"] for _, said in tags.found if "http-equiv" in said]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert "url(" not in many
    assert "@import" not in many


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_words_in_a_file(name: str):
    source = hostile_source(name)
    state = source.states[name]
    assert_harmless(exported(cluster, state))
    assert_harmless(exported(rehearsal, state, source.made, number="1"))
