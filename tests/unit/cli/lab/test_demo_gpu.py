"""What `plimsoll demo gpu` shows at its end, and what it promises."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plimsoll_cli.lab.demo_gpu import Outcome, summary
from plimsoll_cli.options import console

KEPT = Outcome(
    before=24,
    after=16,
    planned=16,
    over=1,
    judged=348,
    bound=0.0136,
    within=0.01,
    bursts="Deployment lab/search",
    stranded={},
    missing={},
    training_kept=True,
)


def broken(**changes: Any) -> list[str]:
    return [*replace(KEPT, **changes).broken()]


def test_the_table_tells_gpus_savings_overflows_with_their_bound_and_stranded_nodes():
    out = console()
    with out.capture() as shown:
        out.print(summary(KEPT))
    rows = [" ".join(line.split()) for line in shown.get().splitlines()]
    assert rows[1:6] == [
        "GPUs 24 16",
        "a month $120,537.60 $80,358.40",
        "saves a month $40,179.20",
        "pods over their slice in the held-out half 1 of 348, at most 1.4% (95 %)",
        "not split for it Deployment lab/search",
    ]
    assert "nodes stranded 0" in rows


def test_nothing_is_broken_where_all_is_as_planned():
    assert not broken()


def test_each_promise_that_is_broken_is_named():
    assert broken(stranded={"gpu-a": "it is cordoned"}) == [
        "node gpu-a is stranded: it is cordoned"
    ]
    assert broken(after=24) == ["24 GPUs are left, and 16 were planned"]
    assert broken(over=4) == ["4 of 348 pods overflow, and 1% were allowed"]
    assert broken(missing={"chat": 1}) == ["1 pods of chat were missing at once"]
    assert broken(training_kept=False) == ["the training was restarted"]
