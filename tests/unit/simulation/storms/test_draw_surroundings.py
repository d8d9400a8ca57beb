"""What surrounds workloads is drawn, from webhooks to device plugins that report late, and no rule is broken for it."""

from __future__ import annotations

import pytest
import yaml

from plimsoll_simulation.storms import draw_differences, draw_storm, draw_surroundings, play_storm

DRAWN = {
    "WEBHOOKS": "kind: ValidatingWebhookConfiguration",
    "QUOTAS": "kind: ResourceQuota",
    "HELD": "finalizers:",
    "SIDECARS": "initContainers:",
    "SLOW": "detach:",
    "LIMITED": "kind: CSINode",
    "WINDOWS": "kubernetes.io/os: windows",
    "MUTATED": "kind: MutatingWebhookConfiguration",
    "RESIZED": "drill.plimsoll.dev/resize:",
    "LATE": "devicesAfter:",
}
"""The share of each -> words of a drill that has it."""


@pytest.mark.parametrize("drawn", DRAWN)
def test_what_surrounds_workloads_is_drawn_and_no_rule_is_broken_for_it(
    drawn: str, monkeypatch: pytest.MonkeyPatch
):
    for share in DRAWN:
        module = draw_surroundings if hasattr(draw_surroundings, share) else draw_differences
        monkeypatch.setattr(module, share, float(share == drawn))
    storm = draw_storm(1001)
    files = "".join(yaml.safe_dump_all(documents) for documents in storm.files().values())
    assert [share for share, words in DRAWN.items() if words in files] == [drawn]
    played = play_storm(storm)
    assert (played.settled, played.violations) == (True, ())
