"""How long a pod needs to stop is stated, observed or assumed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.adapters.kubernetes.objects import parse_pod
from plimsoll.domain.disruptions import Basis, StopTime, stop_time
from plimsoll.domain.observation import ObservedTime
from tests.support.builders import a_pod, mounting, pod_json

LONG = 600


def seen(pods: int, p95: float) -> ObservedTime:
    return ObservedTime(pods=pods, p95_seconds=p95)


@pytest.mark.parametrize(
    ("annotation", "seconds", "basis"),
    [
        ("5", 5, Basis.STATED),
        ("500", 60, Basis.STATED),
        ("soon", 30, Basis.ASSUMED),
        ("-3", 30, Basis.ASSUMED),
        ("1" * 5000, 30, Basis.ASSUMED),
        (None, 30, Basis.ASSUMED),
    ],
)
def test_an_owner_states_a_number_of_seconds_up_to_the_grace_period(annotation, seconds, basis):
    annotations = {} if annotation is None else {"plimsoll.dev/stop-seconds": annotation}
    pod = a_pod(grace_seconds=60, annotations=annotations)
    assert stop_time(pod) == StopTime(seconds=seconds, basis=basis)


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(grace_seconds=LONG, volumes=mounting("data")),
        a_pod(grace_seconds=LONG, owner=("Job", "train")),
        a_pod(grace_seconds=LONG, owner=None),
        a_pod(grace_seconds=LONG, restartPolicy="Never"),
        parse_pod(pod_json(grace_seconds=LONG, tolerations=[{"operator": "Exists"}] * 101)),
    ],
    ids=["a claim", "a job", "a bare pod", "never restarted", "not readable"],
)
def test_the_whole_grace_period_is_assumed_where_much_may_be_lost(pod):
    assert stop_time(pod).seconds == LONG
    assert stop_time(pod).basis is Basis.ASSUMED


@pytest.mark.parametrize(
    ("hook", "sleeps"),
    [
        ({"sleep": {"seconds": 20}}, True),
        ({"exec": {"command": ["sleep", "20"]}}, True),
        ({"exec": {"command": ["/bin/sleep", "20"]}}, True),
        ({"exec": {"command": ["sh", "-c", "nginx -s quit; sleep 20"]}}, True),
        ({"exec": {"command": ["/bin/bash", "-ec", "/bin/sleep 20 && kill 1"]}}, True),
        ({"exec": {"command": ["sh", "-c", "sleep $GRACE"]}}, True),
        ({"exec": {"command": ["sh", "-c", "echo no sleeping here"]}}, False),
        ({"exec": {"command": ["echo", "sleep 20"]}}, False),
        ({"exec": {"command": []}}, False),
        ({"sleep": {"seconds": 0}}, False),
        ({"sleep": {"seconds": -7}}, False),
        ({"sleep": None}, False),
        ({"httpGet": {"path": "/stop", "port": 80}}, False),
        (None, False),
    ],
)
def test_a_hook_that_sleeps_means_the_whole_grace_period(hook, sleeps):
    raw = pod_json(grace_seconds=LONG)
    raw["spec"]["containers"][0]["lifecycle"] = {"preStop": hook}
    assert stop_time(parse_pod(raw)).seconds == (LONG if sleeps else 30)


def test_three_pods_that_were_seen_to_stop_beat_an_assumption():
    pod = a_pod(grace_seconds=LONG)
    assert stop_time(pod, seen(3, 7.2)).seconds == 8
    assert str(stop_time(pod, seen(17, 8.0))) == "8 s, observed (17 pods, p95 8 s)"


@pytest.mark.parametrize("pods", [1, 2])
def test_fewer_than_three_pods_never_shorten_an_assumption_and_may_lengthen_it(pods):
    pod = a_pod(grace_seconds=LONG)
    assert stop_time(pod, seen(pods, 7)) == StopTime(seconds=30, basis=Basis.ASSUMED)
    assert stop_time(pod, seen(pods, 90)) == StopTime(seconds=90, basis=Basis.ASSUMED)


@pytest.mark.parametrize(("p95", "seconds"), [(4, 30), (40, 80), (400, LONG)])
def test_a_pod_with_a_claim_is_given_twice_what_was_seen_and_at_least_thirty_seconds(p95, seconds):
    pod = a_pod(grace_seconds=LONG, volumes=mounting("data"))
    assert stop_time(pod, seen(5, p95)).seconds == seconds


def test_what_its_owner_states_beats_what_was_seen():
    pod = replace(a_pod(grace_seconds=LONG), stated_stop_seconds=12)
    assert stop_time(pod, seen(20, 90)) == StopTime(seconds=12, basis=Basis.STATED)
