"""Traces of an interruption, as a receiver of OTLP gets them: from its event to the calls to its cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Event

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from plimsoll import bootstrap
from plimsoll.adapters.kubernetes import KubernetesCluster
from plimsoll.adapters.opentelemetry import LINKS, OpenTelemetryTraces
from plimsoll.domain.errors import Blocked
from plimsoll.services.untraced import Untraced
from tests.support.otlp import Exported, Receiver, exporting
from tests.support.traced import rig_of, two_interrupted, woken
from tests.support.workload_sets import WiredServices, handled, method

FOREIGN = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def named(receiver: Receiver, name: str) -> list[Exported]:
    return [span for span in receiver.spans if span.name == name]


def path(receiver: Receiver, span: Exported) -> str:
    by_id = {each.id: each for each in receiver.spans}
    names = [span.name]
    while span.parent:
        span = by_id[span.parent]
        names.append(span.name)
    return " > ".join(reversed(names))


def test_a_search_by_an_interruption_leads_from_its_event_to_the_calls_to_its_cluster(receiver):
    with exporting(receiver.url) as provider:
        rig = rig_of(provider)
        interruptions = two_interrupted(rig)
        woken(rig)

    assert rig.ready("web") == 4
    paths = {path(receiver, span) for span in receiver.spans}
    calls = "event > notice > wake-up > reconcile"
    assert {"event > notice > cordon", f"{calls} > observe", f"{calls} > release"} <= paths
    [reconcile] = named(receiver, "reconcile")
    notices = {span.id for span in named(receiver, "notice")}
    assert set(reconcile.links) == notices
    for interruption in interruptions:
        found = {
            span.trace for span in receiver.spans if span.facts.get("interruption") == interruption
        }
        names = {span.name for span in receiver.spans if span.trace in found}
        assert {"event", "notice", "cordon", "reconcile", "release", "evict"} <= names
        assert interruption in {report.interruption for report in rig.reports.list("harbor")}
    searched = {span.name for span in receiver.spans if span.facts.get("cluster") == "harbor"}
    assert searched == {"event", "notice", "wake-up", "reconcile"}


def test_a_reconcile_that_another_woke_has_a_trace_of_its_own_and_links_to_all_notices(receiver):
    with exporting(receiver.url) as provider:
        rig = rig_of(provider)
        two_interrupted(rig)
        rig.wake_ups.sent.clear()
        rig.wake_ups.traceparents.clear()
        rig.drains.reconcile("harbor", "first", seconds=0)
        assert rig.wake_ups.traceparents == [None]
        handled(rig, rig.spot_event(rig.join("spot-3", capacity="spot")))
        woken(rig, "second", seconds=5)

    first, second = named(receiver, "reconcile")
    assert first.trace != second.trace
    assert (first.parent, second.parent) == ("", "")
    assert (len(first.links), len(second.links)) == (2, 3)


def test_a_notice_that_comes_twice_is_traced_twice_and_written_once(receiver):
    with exporting(receiver.url) as provider:
        rig = rig_of(provider)
        instance = rig.join("spot", capacity="spot")
        event = rig.spot_event(instance)
        handled(rig, event)
        version = rig.version()
        handled(rig, event)
        assert rig.version() == version

    assert len(named(receiver, "notice")) == 2
    assert len(named(receiver, "cordon")) == 1


def test_what_is_no_traceparent_links_to_nothing_and_links_are_bounded(receiver):
    with (
        exporting(receiver.url) as provider,
        OpenTelemetryTraces(pytest.fail, provider).begin("reconcile", parent="no trace") as span,
    ):
        span.link(["", "no trace", FOREIGN[:-1], FOREIGN, FOREIGN, None])
        span.link(FOREIGN.replace("0e4736", f"{n:06x}") for n in range(1, 3 * LINKS))

    [reconcile] = receiver.spans
    assert reconcile.parent == ""
    assert len(reconcile.links) == LINKS


def test_a_span_names_an_error_by_its_type_and_repeats_nothing_that_a_tenant_wrote(
    receiver, monkeypatch
):
    def refuse(*_):
        raise Blocked("a budget of the tenant says SECRET-WORDS")

    monkeypatch.setattr(KubernetesCluster, "evict", method(refuse))
    monkeypatch.setattr(KubernetesCluster, "release", method(refuse))
    with exporting(receiver.url) as provider:
        rig = rig_of(provider)
        two_interrupted(rig)
        woken(rig, seconds=2)

    assert {span.error for span in named(receiver, "release")} == {"Blocked"}
    assert b"SECRET-WORDS" not in b"".join(receiver.bodies)


def test_an_exporter_that_hangs_delays_no_cordon_and_no_reconcile():
    with (
        Receiver(gate=Event()) as hanging,
        exporting(hanging.url, pause_milliseconds=1) as provider,
    ):
        rig = rig_of(provider)
        two_interrupted(rig)
        assert hanging.asked.wait(10)
        woken(rig)
        assert rig.ready("web") == 4
        assert rig.pods_on("spot-1") == []
        assert hanging.bodies == [], "it had waited for the exporter"
        hanging.gate.set()


class Raises(trace.NoOpTracer):
    def start_span(self, *_, **__):
        raise AttributeError("no such method in this version")


class Broken(TracerProvider):
    """A layer whose tracers raise."""

    def get_tracer(self, *_, **__):
        return Raises()


def test_a_layer_that_raises_costs_the_spans_and_a_warning():
    warned: list[str] = []
    rig = rig_of(Broken(shutdown_on_exit=False), warned)
    two_interrupted(rig)
    woken(rig)
    assert rig.ready("web") == 4
    assert warned == ["spans are missing: AttributeError: no such method in this version"]
    assert rig.wake_ups.traceparents[-1] is None


def test_a_layer_without_opentelemetry_costs_the_traces_and_a_warning(monkeypatch):
    warned: list[str] = []
    monkeypatch.setattr(bootstrap, "_warn", warned.append)
    monkeypatch.setenv("AWS_LAMBDA_EXEC_WRAPPER", "/opt/otel-instrument")
    monkeypatch.delitem(sys.modules, "plimsoll.adapters.opentelemetry")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert isinstance(bootstrap._traces.__wrapped__(), Untraced)
    [words] = warned
    assert words.startswith("no traces, since the layer has no OpenTelemetry: ")


def test_a_rig_that_nobody_traces_writes_records_and_wake_ups_as_before():
    rig = WiredServices()
    two_interrupted(rig)
    assert "traceparent" not in str(rig.get("/api/v1/nodes/spot-1"))
    assert set(rig.wake_ups.traceparents) == {None}
