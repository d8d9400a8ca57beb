"""How long a pod needs to stop is stated, observed or assumed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.adapters.kubernetes.objects import parse_pod
from plimsoll.domain.disruptions import Basis, StopTime, least_seconds
from plimsoll.domain.disruptions.stop_times import stop_time
from plimsoll.domain.kubernetes import Pod
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


def hooked(hook: object, *, sidecar: bool = False, **how: Any) -> Pod:
    """Return a pod with a preStop hook in its container, or in a native sidecar."""
    raw = pod_json(**how)
    container = {"name": "main", "lifecycle": {"preStop": hook}}
    if sidecar:
        raw["spec"]["initContainers"] = [{**container, "restartPolicy": "Always"}]
    else:
        raw["spec"]["containers"][0] |= container
    return parse_pod(raw)


def line(text: str) -> object:
    """Return a hook that gives a shell this line."""
    return {"exec": {"command": ["sh", "-c", text]}}


@pytest.mark.parametrize(
    ("hook", "seconds"),
    [
        ({"sleep": {"seconds": 45}}, 45),
        ({"exec": {"command": ["sleep", "45"]}}, 45),
        ({"exec": {"command": ["/bin/sleep", "1m", "5.5s"]}}, 65),
        ({"exec": {"command": ["sleep", "infinity"]}}, 0),
        ({"exec": {"command": ["/bin/bash", "-ec", "/bin/sleep 45 && kill 1"]}}, 45),
        ({"exec": {"command": ["bash", "-o", "pipefail", "-c", "sleep 45"]}}, 45),
        ({"exec": {"command": ["sh", "sleep 45"]}}, 0),
        (line("nginx -s quit > /dev/null 2>&1; sleep 45"), 45),
        (line("\nsleep 5\nnginx -s quit\nsleep 40\n"), 45),
        (line("exec sleep 45"), 45),
        (line("sleep 5; while nc -z localhost 80; do sleep 1; done"), 5),
        (line("if [ -f /tmp/busy ]; then sleep 45; fi"), 0),
        (line("[ -f /tmp/busy ] && sleep 45"), 0),
        (line("sleep 5; exit 0; sleep 45"), 5),
        (line("true || sleep 45"), 0),
        (line("sleep 45 & wait"), 0),
        (line("echo 'x; sleep 45; y'; sleep 5"), 5),
        (line("(sleep 45); sleep 5"), 0),
        (line("sleep $GRACE"), 0),
        (line("sleep 5; echo '"), 0),
        (line("sleep 9;" * 300), 9 * 250),
        (line("sleep 9;" * 100_000), None),
        (line("sleep 999999d"), 366 * 86_400),
    ],
)
def test_a_hook_sleeps_at_least_as_long_as_it_says_for_sure(hook, seconds):
    assert hooked(hook).hook_seconds == seconds
    assert hooked(hook, sidecar=True).hook_seconds == seconds


@pytest.mark.parametrize(("grace", "slept", "least"), [(75, 45, 55), (50, 45, 50), (60, 5, 30)])
def test_a_pod_needs_what_its_hook_sleeps_and_ten_seconds_at_least(grace, slept, least):
    assert least_seconds(hooked({"sleep": {"seconds": slept}}, grace_seconds=grace)) == least


def test_what_was_seen_counts_no_less_than_the_hook_sleeps():
    pod = hooked({"sleep": {"seconds": 45}}, grace_seconds=75)
    assert stop_time(pod, seen(3, 7)).seconds == 45


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
