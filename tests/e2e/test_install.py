"""The guide to install, followed on the emulator: its own commands, typed at a deployed stack.

The cluster is the page's `lab`, which is reached by endpoint and token. What the page types for the
EKS cluster `harbor` is typed for `lab`: the emulator has no API server behind its EKS.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, Final

import pytest

from plimsoll.adapters.clock import SystemClock
from plimsoll_simulation.fake_aws.fleet import Fleet
from plimsoll_simulation.fake_cluster.serve import FakeApiServer
from plimsoll_testbed.rigs.emulated.awsfleet import AwsFleet
from plimsoll_testbed.rigs.emulated.emulator import ACCOUNT, REGION, STACK
from plimsoll_testbed.rigs.emulated.ministack import MiniStack
from plimsoll_testbed.rigs.emulated.stack import resync
from tests.package.install_page import PLIMSOLL, SAM, beginning, call_of
from tests.package.template import ROOT
from tests.support.cli_environment import SPOT, StillClock, shop

pytestmark = [pytest.mark.emulator, pytest.mark.cluster]

PATIENCE: Final = 60.0
"""Seconds for what takes two on an idle machine."""


def of_the_page(*start: str) -> list[str]:
    """Return the first command of the page that begins so."""
    return beginning(*start)[0].words


def for_lab(words: list[str]) -> list[str]:
    """Return what is typed after `plimsoll`, for the cluster of this rig: no administrator of it has a kubeconfig.

    tests/cluster/test_cluster_setup.py adds and removes a cluster with one.
    """
    typed = words[1:]
    for option in ("--context", "--grow"):
        if option in typed:
            place = typed.index(option)
            del typed[place : place + 2]
    return ["lab" if word == "harbor" else word for word in typed]


@dataclass(frozen=True, slots=True)
class Rig:
    """A deployed stack, a cluster, and a shell in the checkout."""

    stack: MiniStack
    server: FakeApiServer
    home: Path

    def plimsoll(self, words: list[str], answer: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [Path(sys.executable).with_name("plimsoll"), *words],
            cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "AWS_ACCESS_KEY_ID": ACCOUNT,
                "AWS_SECRET_ACCESS_KEY": "none",
                "AWS_DEFAULT_REGION": REGION,
                "AWS_ENDPOINT_URL": self.stack.url,
                "PLIMSOLL_STACK": STACK,
                **{f"AWS_ENDPOINT_URL_{s}": url for s, url in self.stack.endpoints.items()},
            },
            input=answer,
            capture_output=True,
            text=True,
            check=False,
        )

    def typed(self, *start: str, answer: str = "") -> subprocess.CompletedProcess[str]:
        """Type a command of the page; it must end well."""
        done = self.plimsoll(for_lab(of_the_page(PLIMSOLL, *start)), answer)
        assert done.returncode == 0, f"{start}\n{done.stdout}{done.stderr}{self.complaints()}"
        return done

    def complaints(self) -> str:
        return "\n".join(self.stack.complaints())

    def notice(self, kind: str, **detail: str) -> None:
        """Put a notice about the node spot-1 on the bus, as a drill."""
        answer = self.stack.client("events").put_events(
            Entries=[
                {
                    "Source": "plimsoll.drill",
                    "DetailType": kind,
                    "Detail": json.dumps({"instance-id": SPOT, **detail}),
                }
            ]
        )
        assert answer["FailedEntryCount"] == 0

    def node(self) -> Any:
        with self.server.lock:
            return self.server.cluster.store.get("nodes", "", "spot-1")

    def cordoned(self) -> bool:
        return bool(self.node()["spec"].get("unschedulable"))

    def eventually(self, look: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE
        while not (found := look()):
            assert time.monotonic() < end, self.complaints()
            time.sleep(0.2)
        return found


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    clock = SystemClock()
    fleet = Fleet("lab", [], seed=0, now=clock.now())
    with (
        FakeApiServer(shop(StillClock(clock.now()))) as server,
        AwsFleet([fleet], clock=clock.now, lock=RLock()) as aws,
        MiniStack(endpoints=aws.endpoints) as stack,
    ):
        topic = call_of(of_the_page("aws", "sns", "create-topic"))
        arn = stack.client("sns").create_topic(**topic.parameters)["TopicArn"]
        told = next(
            pair
            for command in beginning(SAM, "deploy", "--parameter-overrides")
            for pair in command.words
            if pair.startswith("AlarmTopic=")
        )
        assert told == f"AlarmTopic={arn}"
        stack.deploy(AcceptDrills="true", Size="small", AlarmTopic=arn)
        stack.warm("NoticesFunction", 1)  # an emulator's cold start takes as long as it likes
        stack.warm("DrainsFunction", 1)
        rig = Rig(stack, server, tmp_path_factory.mktemp("home"))
        register(rig)
        yield rig


def register(rig: Rig) -> None:
    """Give the stack a token, register the cluster, and let the resync see its nodes."""
    secret = call_of(of_the_page("aws", "secretsmanager", "create-secret")).parameters
    rig.stack.client("secretsmanager").create_secret(
        **{**secret, "SecretString": f"{rig.server.token}\n"}
    )
    words = for_lab(of_the_page(PLIMSOLL, "clusters", "add", "lab"))
    words[words.index("--endpoint") + 1] = rig.server.url
    authority = words.index("--ca")
    del words[authority : authority + 2]  # on loopback, without TLS
    done = rig.plimsoll(words)
    assert done.returncode == 0, done.stderr
    resync(rig.stack, "lab")


def test_the_alarms_tell_the_topic_of_the_page(rig: Rig):
    alarms = rig.stack.client("cloudwatch").describe_alarms()["MetricAlarms"]
    told = {action for alarm in alarms for action in alarm["AlarmActions"]}
    assert told == {f"arn:aws:sns:{REGION}:{ACCOUNT}:plimsoll-alarms"}


def test_a_mail_can_be_subscribed_to_the_topic(rig: Rig):
    call = call_of(of_the_page("aws", "sns", "subscribe"))
    assert rig.stack.client("sns").subscribe(**call.parameters)["SubscriptionArn"]


def test_the_doctor_sees_a_canary_go_the_whole_way(rig: Rig):
    words = [*for_lab(of_the_page(PLIMSOLL, "doctor")), "--output", "json", "--wait", "60"]
    done = rig.plimsoll(words)
    assert done.stdout, done.stderr
    found = {one["check"]: one for one in json.loads(done.stdout)["findings"]}
    for check in ("stack", "kill switch", "notices", "cluster"):
        assert found[check]["state"] == "ok", f"{found[check]}\n{rig.complaints()}"


def test_an_observed_interruption_is_rehearsed_and_reported_and_nothing_is_written(rig: Rig):
    before = rig.node()["metadata"]["resourceVersion"]
    assert "node spot-1 of lab" in rig.typed("rehearse", "--event").stdout
    rig.notice("EC2 Spot Instance Interruption Warning", **{"instance-action": "terminate"})
    rig.eventually(lambda: SPOT in rig.plimsoll(["reports", "--cluster", "lab"]).stdout)
    assert "spot-interruption" in rig.typed("reports", "show").stdout
    assert not rig.cordoned()
    assert rig.node()["metadata"]["resourceVersion"] == before


def test_a_cluster_that_acts_is_left_as_it_was_found(rig: Rig):
    rig.typed("clusters", "set", "harbor", "--mode", "act", answer="y\n")
    rig.notice("EC2 Instance Rebalance Recommendation")
    rig.eventually(rig.cordoned)
    rig.typed("status")
    assert "would uncordon Node spot-1" in rig.typed("clusters", "remove", "harbor").stdout
    assert rig.cordoned()
    [last] = [c for c in beginning(PLIMSOLL, "clusters", "remove") if "--dry-run" not in c.words]
    done = rig.plimsoll(for_lab(last.words), "y\n")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert "lab is removed" in done.stdout
    assert not rig.cordoned()
    assert "plimsoll.dev/interruption" not in rig.node()["metadata"].get("annotations", {})
    assert "lab" not in rig.typed("clusters", "list").stdout


def test_the_kill_switch_is_seen_and_leaves_every_other_parameter_as_it_was(rig: Rig):
    def parameters() -> dict[str, str]:
        [stack] = rig.stack.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return {p["ParameterKey"]: p["ParameterValue"] for p in stack["Parameters"]}

    before = parameters()
    [pair] = next(
        c.words[3:]
        for c in beginning(SAM, "deploy", "--parameter-overrides")
        if c.words[3].startswith("KillSwitch=")
    )
    name, _, value = pair.partition("=")
    rig.stack.deploy(None, **{name: value})
    assert parameters() == {**before, name: value}
    assert before["AcceptDrills"] == "true"
    assert "the kill switch of the stack is on" in rig.typed("clusters", "list").stderr
