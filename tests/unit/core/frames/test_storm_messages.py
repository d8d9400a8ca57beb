"""One message tells people that a storm begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.domain.frames import Frame, is_storm, storm_message
from plimsoll.domain.frames.frame import FrameCounts, OperatorTask
from tests.support.builders import NOON


def a_frame(*, nodes: int = 4, task: OperatorTask | None = None, **counts: int) -> Frame:
    return Frame(
        cluster="harbor",
        storm=NOON,
        latest=NOON,
        number=1,
        at=NOON,
        deadline=120.0,
        counts=FrameCounts(**counts),
        task=task or OperatorTask(),
        workloads=(),
        nodes=(),
        nodes_of=nodes,
        nodes_empty=0,
    )


@pytest.mark.parametrize(
    ("nodes", "counts", "told"),
    [
        pytest.param(2, {}, True, id="a second node"),
        pytest.param(1, {"of": 3, "starting": 3}, False, id="one node whose pods are replaced"),
        pytest.param(1, {"of": 3, "no_node": 1}, True, id="one node and a pod without a place"),
        pytest.param(1, {"of": 3, "at_risk": 1}, True, id="one node and a pod at risk"),
    ],
)
def test_people_are_told_of_several_nodes_and_of_one_whose_pods_are_not_safe(nodes, counts, told):
    assert is_storm(a_frame(nodes=nodes, **counts)) is told


def test_the_message_says_how_much_goes_when_and_what_to_do():
    task = OperatorTask(acts=("Base has as many nodes as its owner allows: raise its maximum",))
    frame = a_frame(task=task, of=20, safe=8, starting=9, no_node=3)
    subject, text = storm_message(frame, "https://plimsoll.example.com/")
    assert subject == "harbor: 4 nodes go"
    assert text.splitlines() == [
        "harbor: 4 nodes go, noticed since 2026-01-02 12:00:00Z.",
        "The first instance goes in 120 s.",
        "20 pods must move: 8 are replaced, 9 start elsewhere, 3 wait for a node.",
        "Do: Base has as many nodes as its owner allows: raise its maximum.",
        "Watch it: https://plimsoll.example.com/c/harbor/storm",
    ]


def test_without_a_console_the_message_names_a_command():
    coming = OperatorTask(waiting=True, nodes_coming=3, next_at=41.0)
    _, text = storm_message(a_frame(task=coming), "")
    assert "You need not do anything yet: 3 nodes come, the next in 41 s." in text
    assert text.endswith("Watch it: plimsoll status --cluster harbor")


def test_a_subject_fits_into_what_sns_takes():
    subject, _ = storm_message(replace(a_frame(), cluster="c" * 253), "")
    assert len(subject) <= 100
