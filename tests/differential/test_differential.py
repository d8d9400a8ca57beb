"""The fake cluster and a real control plane do the same, scenario by scenario."""

from __future__ import annotations

import pytest

from tests.differential.known import KNOWN
from tests.differential.scenario import Scenario
from tests.differential.suite import everything, sample
from tests.differential.trials import Score, Trials

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(
            scenario,
            id=scenario.name,
            marks=() if scenario.name in sample() else pytest.mark.long,
        )
        for scenario in everything()
    ],
)
def test_both_clusters_show_the_same_picture_after_each_step(
    scenario: Scenario, trials: Trials, score: Score
):
    found = trials.differences(scenario)
    known = KNOWN.get(scenario.name)
    expected = known.differs if known is not None else frozenset()
    differs = {(difference.step, difference.what) for difference in found}
    as_known = differs == expected
    score.count(scenario, agreed=not differs, known=bool(differs) and as_known)
    new = [
        str(difference)
        for difference in found
        if (difference.step, difference.what) not in expected
    ]
    assert not new, "\n".join(["they differ, which nobody knew:", *new])
    assert as_known, f"no longer different, so take it out of known.py: {expected - differs}"
