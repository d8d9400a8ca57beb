"""`plimsoll reports --profile`: what interruptions cost in several accounts with a stack each."""

from __future__ import annotations

import json

import pytest

from plimsoll.domain.errors import MissingRights
from tests.support.cli_environment import MemoryEnvironment, run
from tests.unit.cli.plan.test_reports import a_report, an_environment

HARBOR, QUAY = "111122223333", "210987654321"


@pytest.fixture
def environment() -> MemoryEnvironment:
    """Whoever reads has a stack of their own, and profiles for two others."""
    found = an_environment(a_report(minute=9))
    found.profiles = {
        "harbor-prod": an_environment(a_report(minute=1), a_report(minute=3)),
        "quay-prod": an_environment(a_report(minute=2, cluster="quay")),
    }
    found.profiles["quay-prod"].account = QUAY
    return found


BOTH = ("--profile", "harbor-prod", "--profile", "quay-prod")


def test_those_of_several_accounts_come_together_the_newest_first(environment):
    said = json.loads(run(environment, "reports", *BOTH, "--output", "json").stdout)
    assert [(r["node"], r["account"]) for r in said["reports"]] == [
        ("node-3", HARBOR),
        ("node-2", QUAY),
        ("node-1", HARBOR),
    ]


def test_the_table_names_the_account_where_there_are_several(environment):
    assert QUAY in run(environment, "reports", *BOTH).stdout
    alone = run(environment, "reports", "--profile", "quay-prod").stdout
    assert "node-2" in alone
    assert "ACCOUNT" not in alone


def test_one_that_cannot_be_read_hides_no_other_and_is_no_success(environment):
    done = run(environment, "reports", *BOTH, "--profile", "nobody", "--output", "json")
    assert done.exit_code == 2
    assert "profile nobody" in done.stderr
    assert len(json.loads(done.stdout)["reports"]) == 3


def test_a_cluster_is_looked_for_in_those_that_have_it(environment):
    environment.profiles["quay-prod"].registry.remove("harbor")
    done = run(environment, "reports", *BOTH, "--cluster", "harbor", "--output", "json")
    assert done.exit_code == 0
    assert {r["account"] for r in json.loads(done.stdout)["reports"]} == {HARBOR}


def test_no_more_than_the_names_of_clusters_is_read(environment, monkeypatch):
    """The role of infra/reports.yaml may read nothing else of the table."""
    quay = environment.profiles["quay-prod"]

    def refuse(*_):
        raise MissingRights("AccessDeniedException")

    monkeypatch.setattr(quay.registry, "list", refuse)
    monkeypatch.setattr(quay.registry, "get", refuse)
    for words in ((), ("--cluster", "quay")):
        said = run(environment, "reports", "--profile", "quay-prod", *words)
        assert "node-2" in said.stdout, said.output
