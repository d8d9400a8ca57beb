"""What the agent tells of itself says what its owner lets it do, and never costs a snapshot."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from plimsoll.domain.errors import BadInput, MissingRights, PlimsollError, Temporary
from plimsoll_agent.agent_state import VERSION, agent_state
from plimsoll_agent.owner_policy import OwnerPolicy
from plimsoll_service.wire.snapshot import AgentState

ROOT = Path(__file__).parents[3]


def test_the_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == VERSION


def test_mode_and_kinds_are_those_of_the_owners_policy():
    policy = OwnerPolicy.parse({"mode": "act", "kinds": "label-node, consolidate-node"})
    assert agent_state(lambda: policy) == AgentState(
        version=VERSION, mode="act", policy="valid", kinds=("consolidate-node", "label-node")
    )
    assert agent_state(OwnerPolicy).mode == "read-only"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BadInput("mode"), "invalid"),
        (MissingRights("no"), "unreadable"),
        (Temporary("later"), "unreadable"),
    ],
    ids=["invalid", "refused", "away"],
)
def test_a_policy_that_cannot_be_read_is_told_without_a_mode(error: PlimsollError, told: str):
    def policy() -> OwnerPolicy:
        raise error

    assert agent_state(policy) == AgentState(version=VERSION, policy=told)
