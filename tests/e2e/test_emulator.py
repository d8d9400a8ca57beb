"""What our design asks of an emulated AWS, held apart from our own code.

Emulators are young: when one of these fails after one was updated, the emulator changed, not we.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from plimsoll.domain.errors import Refused
from plimsoll_simulation.checkout import Checkout
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.localstack.localstack import LocalStack
from tests.support.processes import alive

PROBE = Path(__file__).parent / "probe" / "template.yaml"
FLEET = "http://127.0.0.1:9"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(MiniStack, marks=[pytest.mark.emulator, pytest.mark.cluster]),
        pytest.param(LocalStack, marks=pytest.mark.localstack),
    ],
)
def emulator(request):
    with request.param(
        endpoints={"EC2": FLEET, "AUTO_SCALING": FLEET + "/a", "EKS": FLEET + "/k"}
    ) as emulator:
        emulator.deploy(PROBE, AcceptDrills="true")
        yield emulator


@pytest.fixture
def stack(emulator):
    """A stack whose queues are empty."""
    sqs = emulator.client("sqs")
    for queue in ("Seen", "Dead"):
        sqs.purge_queue(QueueUrl=emulator.outputs[queue])
    return emulator


def reported_by_probe(emulator, count, *, within=15.0):
    """Return the first `count` things that the probe told."""
    sqs, end = emulator.client("sqs"), time.time() + within
    found: list[Any] = []
    while len(found) < count:
        if time.time() > end:
            pytest.fail(f"{found} after {within} s; the emulator says {emulator.complaints()}")
        answer = sqs.receive_message(
            QueueUrl=emulator.outputs["Seen"], MaxNumberOfMessages=10, WaitTimeSeconds=1
        )
        for message in answer.get("Messages", []):
            sqs.delete_message(
                QueueUrl=emulator.outputs["Seen"], ReceiptHandle=message["ReceiptHandle"]
            )
            found.append(json.loads(message["Body"]))
    return found


def order_probe(emulator, what, **more):
    emulator.client("sqs").send_message(
        QueueUrl=emulator.outputs["Work"], MessageBody=json.dumps({"order": what}), **more
    )


def put_state_change(emulator, state, source="plimsoll.drill"):
    return emulator.client("events").put_events(
        Entries=[
            {
                "Source": source,
                "DetailType": "EC2 Instance State-change Notification",
                "Detail": json.dumps({"instance-id": "i-1", "state": state}),
            }
        ]
    )


def test_an_event_of_a_drill_reaches_the_function_through_rule_and_queue(stack):
    put_state_change(stack, "stopping")
    [seen] = reported_by_probe(stack, 1)
    assert seen["body"]["source"] == "plimsoll.drill"
    assert seen["body"]["detail"] == {"instance-id": "i-1", "state": "stopping"}


def test_the_rule_lets_only_the_wanted_states_through(stack):
    put_state_change(stack, "running")
    put_state_change(stack, "stopping")
    [seen] = reported_by_probe(stack, 1)
    assert seen["body"]["detail"]["state"] == "stopping"


def test_nobody_may_speak_as_aws(stack):
    if stack.name == "LocalStack":
        pytest.skip("LocalStack lets everybody speak as AWS: tests/localstack/test_holes.py")
    answer = put_state_change(stack, "stopping", source="aws.ec2")
    assert answer["FailedEntryCount"] == 1
    assert "NotAuthorizedForSource" in answer["Entries"][0]["ErrorCode"]


def test_only_the_failed_messages_of_a_batch_come_back_and_then_reach_the_dead_letter_queue(stack):
    order_probe(stack, "fail")
    order_probe(stack, "work")
    seen = reported_by_probe(stack, 3)
    assert sorted((s["body"]["order"], s["attempts"]) for s in seen) == [
        ("fail", 1),
        ("fail", 2),
        ("work", 1),
    ]
    [dead] = stack.client("sqs").receive_message(
        QueueUrl=stack.outputs["Dead"], WaitTimeSeconds=15
    )["Messages"]
    assert json.loads(dead["Body"]) == {"order": "fail"}


def test_a_function_that_takes_too_long_is_ended_and_its_message_comes_back(stack):
    order_probe(stack, "oversleep")
    first, second = reported_by_probe(stack, 2, within=45)
    assert (first["attempts"], second["attempts"]) == (1, 2)
    assert second["at"] - first["at"] > 4.5


def test_a_function_can_call_its_message_back_before_the_visibility_timeout(stack):
    order_probe(stack, "come back soon")
    first, second = reported_by_probe(stack, 2)
    assert second["attempts"] == 2
    assert 0.5 < second["at"] - first["at"] < 4


def test_a_delayed_message_is_delayed(stack):
    sent = time.time()
    order_probe(stack, "later", DelaySeconds=2)
    [seen] = reported_by_probe(stack, 1)
    assert seen["at"] - sent > 1.9
    # From the emulator's own stamps: how long a busy machine takes to start the probe is no delay.
    assert 1.9 < seen["received"] - seen["sent"] < 4


def test_functions_find_the_fleet_under_the_endpoints_of_its_services(stack):
    order_probe(stack, "describe yourself")
    [seen] = reported_by_probe(stack, 1)
    assert seen["endpoints"] == {
        "AWS_ENDPOINT_URL": stack.url,
        "AWS_ENDPOINT_URL_EC2": FLEET,
        "AWS_ENDPOINT_URL_AUTO_SCALING": FLEET + "/a",
        "AWS_ENDPOINT_URL_EKS": FLEET + "/k",
    }
    assert seen["region"] == "us-east-1"


def test_functions_run_in_the_emulators_interpreter_so_the_package_tests_are_needed(stack):
    order_probe(stack, "describe yourself")
    [seen] = reported_by_probe(stack, 1)
    own = {"MiniStack": "ministack", "LocalStack": "localstack"}[stack.name]
    assert Path(seen["interpreter"]).parent == getattr(stack.checkout, own).parent


def test_functions_may_do_only_what_their_role_allows(stack):
    if stack.name == "LocalStack":
        pytest.skip("LocalStack enforces no rights: tests/localstack/test_holes.py")
    order_probe(stack, "overreach")
    [seen] = reported_by_probe(stack, 1)
    assert seen["denied"] == "AccessDeniedException"


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's list of sockets")
def test_it_listens_on_loopback_only(stack):
    port = int(stack.url.rpartition(":")[2])
    listening = [
        line.split()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    ]
    assert f"0100007F:{port:04X}" in listening
    assert f"00000000:{port:04X}" not in listening


@pytest.mark.parametrize(
    ("emulated", "cure"), [(MiniStack, "make setup"), (LocalStack, "make localstack")]
)
def test_what_is_missing_is_named_with_its_cure(tmp_path, emulated, cure):
    with pytest.raises(Refused, match=cure), emulated(checkout=Checkout(root=tmp_path)):
        pass


STARTER = """
import signal, sys, time
from {module} import {name}
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
with {name}() as emulator:
    emulator.client("dynamodb").list_tables()
    print(emulator.url, emulator.log.parent, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    "emulated",
    [
        pytest.param(MiniStack, marks=[pytest.mark.emulator, pytest.mark.cluster]),
        pytest.param(LocalStack, marks=pytest.mark.localstack),
    ],
)
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "a crash"])
def test_nothing_is_left_after(end, emulated):
    text = STARTER.format(module=emulated.__module__, name=emulated.__name__)
    starter = subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ},
    )
    assert starter.stdout is not None
    url, folder = starter.stdout.readline().split()
    starter.send_signal(end)
    starter.wait()
    starter.stdout.close()
    until = time.time() + 8
    while time.time() < until and (answers(url) or Path(folder).exists() or left(folder)):
        time.sleep(0.1)
    assert not answers(url)
    assert not Path(folder).exists()
    assert left(folder) == []


def left(folder):
    """Return the processes that live in a folder, where that can be seen."""
    return list(alive(Path(folder))) if sys.platform == "linux" else []


def answers(url):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) == 0
