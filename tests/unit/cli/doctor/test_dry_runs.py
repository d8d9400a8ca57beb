"""The dry runs of `plimsoll doctor`: each policy that ships for the group is tried, and nothing is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.adapters.kubernetes import Response
from plimsoll_cli.doctor.dry_runs import trials
from plimsoll_cli.doctor.facts import TrialResult
from plimsoll_cli.doctor.policy_checks import SHIPPED

INFRA = Path(__file__).parents[4] / "infra"
REFUSAL = (
    "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'plimsoll-pods' with binding 'x' denied"
)


@dataclass
class Everything:
    """A cluster with one object of each kind, that answers every write alike."""

    answer: Response
    writes: list[tuple[str, str, Any]] = field(default_factory=list)

    def call(self, method: str, path: str, **request: Any) -> Response:
        if method == "GET":
            meta = {"name": "a", "namespace": "shop", "uid": "1"}
            return Response(status=200, body={"items": [{"metadata": meta}]})
        self.writes.append((method, path, request["query"]))
        return self.answer


def refused(status: int, message: str) -> Response:
    return Response(status=status, body={"kind": "Status", "message": message})


def shipped() -> set[str]:
    """Return all policies, of all overlays, the agent's too."""
    return {
        found["metadata"]["name"]
        for folder in ("cluster", "agent/act")
        for file in (INFRA / folder).rglob("*.yaml")
        for found in yaml.safe_load_all(file.read_text(encoding="utf-8"))
        if found["kind"] == "ValidatingAdmissionPolicy"
    }


def test_every_policy_that_ships_is_tried_or_else_read():
    tried = trials(Everything(refused(403, REFUSAL)), "harbor")
    read = {name for each in SHIPPED for name in each.digests}
    assert {t.policy for t in tried if not t.ours} == shipped() - read
    assert {t.verdict for t in tried} == {TrialResult.BY_OUR_POLICY}


def test_all_that_is_tried_is_a_dry_run():
    everything = Everything(Response(status=201, body={}))
    assert {t.verdict for t in trials(everything, "harbor")} == {TrialResult.PASSED}
    assert {tuple(query.items()) for *_, query in everything.writes} == {(("dryRun", "All"),)}


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (refused(403, 'User "x" cannot create resource "events"'), TrialResult.NO_RIGHT),
        (refused(403, 'User "x" cannot patch resource "nodes"'), TrialResult.NO_RIGHT),
        (
            refused(429, "Cannot evict pod as it would violate the pod's disruption budget."),
            TrialResult.PASSED,
        ),
        (refused(429, "Too many requests"), TrialResult.BY_ANOTHER),
    ],
    ids=["no right to create", "no right to patch", "a budget", "throttled"],
)
def test_a_refusal_is_told_from_that_of_a_policy(answer: Response, verdict: TrialResult):
    assert {t.verdict for t in trials(Everything(answer), "harbor")} == {verdict}


def test_what_is_not_there_is_not_tried():
    assert trials(Everything(refused(404, "not found")), "harbor") == []
