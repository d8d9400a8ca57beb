"""The stack: is it whole, does it write, do notices get through it?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from typing import Final, assert_never

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import Mode
from plimsoll.domain.reports import CANARY_REPORTS, canary_seen
from plimsoll_cli.doctor.findings import Finding, fail, info, ok, skipped, unread
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.probes.aws import Direct

PAUSE_SECONDS: Final = 1.0
"""Between two looks for the canary."""
SLOW_SECONDS: Final = 15.0
"""From the bus to the function. A spot notice lives for 120 s."""
DELIVERY_SECONDS: Final = 300
"""How long a rule tries: later the instance is gone. The template says so, and a test compares."""


def stack(installation: Installation) -> Iterator[Finding]:
    """Say which stack it is, of which version, and whether its last deployment went well."""
    found = installation.stack
    who = f"{found.name} in {found.region}, version {found.version or 'not known'}"
    if found.status.endswith("_FAILED"):
        cure = f"`aws cloudformation describe-stack-events --stack-name {found.name}` says why"
        yield fail(f"{who}, is {found.status}", f"{cure}; then deploy again")
    elif found.status.endswith("_IN_PROGRESS"):
        yield info(f"{who}, is {found.status}", "ask again when it is done")
    elif "ROLLBACK" in found.status:
        yield info(f"{who}: its last deployment was taken back", "deploy again")
    elif found.version != version("plimsoll"):
        yield info(
            f"{who}, and this command is of version {version('plimsoll')}",
            "deploy the stack again, or use the command of its version",
        )
    else:
        yield ok(who)


def kill_switch(installation: Installation) -> Iterator[Finding]:
    """Say whether every write is stopped."""
    if installation.stack.kill_switch:
        yield fail(
            "it is on: nothing is written to any cluster or node group, whatever the mode",
            "when its reason is over, deploy with KillSwitch=false",
        )
    else:
        yield ok("it is off")


def drills(installation: Installation) -> Iterator[Finding]:
    """Say whether notices of drills are taken as real."""
    if installation.stack.accepts_drills:
        yield info(
            "notices of drills are taken as real: whoever may put events can empty nodes",
            "in production, deploy with AcceptDrills=false",
        )
    else:
        yield ok("only AWS's own notices are taken")


def mode(installation: Installation) -> Iterator[Finding]:
    """Say in words what the cluster's mode means."""
    name = installation.cluster.name
    match installation.cluster.mode:
        case Mode.ACT:
            yield ok(f"act: Plimsoll writes to {name} when an instance is interrupted")
        case Mode.OBSERVE:
            yield info(
                f"observe: everything is planned and reported, and nothing is written to {name}",
                "when the reports are what you want: "
                + installation.stack.command("clusters", "set", name, "--mode", "act"),
            )
        case _:
            assert_never(installation.cluster.mode)


def canary(installation: Installation) -> Iterator[Finding]:
    """Say whether an event came through bus, rule, queue and function."""
    try:
        installation.canary()
        seen = _seen(installation)
    except PlimsollError as error:
        yield skipped(
            error,
            "the command needs the rights to events:PutEvents, and to secretsmanager:GetSecretValue of the stack's CanarySecret",
        )
        return
    if seen is None:
        yield fail(
            f"a canary was put on the bus, and in {installation.waited():.0f} s the function wrote "
            "nothing about it",
            "see CanaryMissing in docs/operate/alarms.md: a rule, the queue's policy or the function",
        )
        return
    seconds = max(0.0, (seen - installation.now).total_seconds())
    says = f"a canary came through bus, rule, queue and function in {seconds:.1f} s"
    if seconds > SLOW_SECONDS:
        cure = "ask again; if it stays slow, see NoticesWaiting in docs/operate/alarms.md"
        yield info(says, cure)
    else:
        yield ok(says)


def _seen(installation: Installation) -> datetime | None:
    """Wait for the canary, and return when the function saw it; None: not as long as we waited."""
    while True:
        seen = canary_seen(installation.reports.list(CANARY_REPORTS), installation.word)
        if seen is not None or installation.waited() >= installation.wait:
            return seen
        installation.clock.sleep(PAUSE_SECONDS)


def senders(installation: Installation) -> Iterator[Finding]:
    """Say whether the queue of notices denies who is neither a rule nor an operator."""
    word, now = f"{installation.word}-direct", installation.clock.now()
    found = installation.aws.send_past_the_rules(word, now)
    match found:
        case Direct.BY_THE_QUEUE:
            yield ok("the queue of notices denies you: only the rules may send to it")
        case Direct.OTHERWISE:
            yield info(
                "you may send to no queue, so whether this one denies you was not seen",
                "ask with the right to sqs:SendMessage",
            )
        case Direct.TAKEN if installation.stack.accepts_drills:
            yield info("the queue of notices took a message of yours: so do emulators")
        case Direct.TAKEN:
            yield fail(
                "the queue of notices took a message of yours: whoever has sqs:SendMessage can "
                "have every node drained",
                "deploy the stack again; if it stays so, report it",
            )
        case _:
            assert_never(found)


@unread("ask with events:ListTargetsByRule")
def delivery(installation: Installation) -> Iterator[Finding]:
    """Say whether the rules try for as long, and keep what they cannot deliver, as they were told."""
    found = installation.aws.targets()
    wrong = sorted({t.rule for t in found if t.seconds != DELIVERY_SECONDS or not t.dead_letters})
    if wrong:
        yield fail(
            f"{', '.join(wrong)}: what cannot be delivered is tried for another time than "
            f"{DELIVERY_SECONDS} s, or not kept",
            "deploy the stack again; if it stays so, report it",
        )
    else:
        says = f"{len(found)} rules try for {DELIVERY_SECONDS} s, and keep what they cannot deliver"
        yield ok(says)
