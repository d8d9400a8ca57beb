"""Traces of an interruption in Jaeger itself, found as a person would search for them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from plimsoll_testbed.rigs.jaeger import Jaeger
from tests.support.otlp import exporting
from tests.support.traced import rig_of, two_interrupted, woken

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def jaeger() -> Iterator[Jaeger]:
    with Jaeger() as jaeger:
        yield jaeger


def names(traces: Sequence[Mapping[str, Any]]) -> set[str]:
    return {span["operationName"] for trace in traces for span in trace["spans"]}


def test_jaeger_finds_the_whole_of_an_interruption_by_its_report_its_instance_and_its_cluster(
    jaeger,
):
    with exporting(jaeger.traces_url) as provider:
        rig = rig_of(provider)
        interruptions = two_interrupted(rig)
        woken(rig)

    whole = {"event", "notice", "cordon", "wake-up", "reconcile", "observe", "release", "evict"}
    end = time.monotonic() + 30
    while not (found := jaeger.search("plimsoll", {"plimsoll.cluster": "harbor"})):
        assert time.monotonic() < end, "no trace has come to Jaeger"
        time.sleep(0.1)
    assert names(found) >= whole
    for interruption in interruptions:
        found = jaeger.search("plimsoll", {"plimsoll.interruption": interruption})
        assert names(found) >= whole
        linked = {
            (reference["traceID"], reference["refType"])
            for trace in found
            for span in trace["spans"]
            if span["operationName"] == "reconcile"
            for reference in span["references"]
        }
        assert {trace["traceID"] for trace in found} <= {of for of, _ in linked}
        instance = interruption.partition("@")[0]
        assert names(jaeger.search("plimsoll", {"plimsoll.instance": instance})) >= {
            "event",
            "notice",
        }
    assert not jaeger.search("plimsoll", {"plimsoll.interruption": "i-0000000000000dead@unknown"})
