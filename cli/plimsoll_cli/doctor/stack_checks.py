"""The stack: is it whole, does it write, do notices get through it?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import Mode
from plimsoll_cli.doctor.facts import Direct, Facts
from plimsoll_cli.doctor.findings import Finding, fail, info, ok, skipped

SLOW_SECONDS: Final = 15.0
"""From the bus to the function. A spot notice lives for 120 s."""
DELIVERY_SECONDS: Final = 300
"""How long a rule tries: later the instance is gone. The template says so, and a test compares."""


def stack(facts: Facts) -> Iterator[Finding]:
    """Say which stack it is, of which version, and whether its last deployment went well."""
    found = facts.stack
    who = f"{found.name} in {found.region}, version {found.version or 'not known'}"
    if found.status.endswith("_FAILED"):
        cure = f"`aws cloudformation describe-stack-events --stack-name {found.name}` says why"
        yield fail("stack", f"{who}, is {found.status}", f"{cure}; then deploy again")
    elif found.status.endswith("_IN_PROGRESS"):
        yield info("stack", f"{who}, is {found.status}", "ask again when it is done")
    elif "ROLLBACK" in found.status:
        yield info("stack", f"{who}: its last deployment was taken back", "deploy again")
    elif found.version != facts.version:
        yield info(
            "stack",
            f"{who}, and this command is of version {facts.version}",
            "deploy the stack again, or use the command of its version",
        )
    else:
        yield ok("stack", who)


def kill_switch(facts: Facts) -> Iterator[Finding]:
    """Say whether every write is stopped."""
    if facts.stack.kill_switch:
        yield fail(
            "kill switch",
            "it is on: nothing is written to any cluster or node group, whatever the mode",
            "when its reason is over, deploy with KillSwitch=false",
        )
    else:
        yield ok("kill switch", "it is off")


def drills(facts: Facts) -> Iterator[Finding]:
    """Say whether notices of drills are taken as real."""
    if facts.stack.accepts_drills:
        yield info(
            "drills",
            "notices of drills are taken as real: whoever may put events can empty nodes",
            "in production, deploy with AcceptDrills=false",
        )
    else:
        yield ok("drills", "only AWS's own notices are taken")


def mode(facts: Facts) -> Iterator[Finding]:
    """Say in words what the cluster's mode means."""
    name = facts.cluster.name
    match facts.cluster.mode:
        case Mode.ACT:
            yield ok("mode", f"act: Plimsoll writes to {name} when an instance is interrupted")
        case Mode.OBSERVE:
            yield info(
                "mode",
                f"observe: everything is planned and reported, and nothing is written to {name}",
                f"when the reports are what you want: plimsoll clusters set {name} --mode act",
            )
        case _:
            assert_never(facts.cluster.mode)


def canary(facts: Facts) -> Iterator[Finding]:
    """Say whether an event came through bus, rule, queue and function."""
    found = facts.canary
    if isinstance(found, PlimsollError):
        yield skipped(
            "notices",
            found,
            "the command needs the rights to events:PutEvents, and to secretsmanager:GetSecretValue of the stack's CanarySecret",
        )
        return
    if found.seen is None:
        yield fail(
            "notices",
            f"a canary was put on the bus, and in {found.waited_seconds:.0f} s the function wrote "
            "nothing about it",
            "see CanaryMissing in docs/operate/alarms.md: a rule, the queue's policy or the function",
        )
        return
    seconds = max(0.0, (found.seen - found.sent).total_seconds())
    says = f"a canary came through bus, rule, queue and function in {seconds:.1f} s"
    if seconds > SLOW_SECONDS:
        cure = "ask again; if it stays slow, see NoticesWaiting in docs/operate/alarms.md"
        yield info("notices", says, cure)
    else:
        yield ok("notices", says)


def senders(facts: Facts) -> Iterator[Finding]:
    """Say whether the queue of notices denies who is neither a rule nor an operator."""
    found = facts.direct
    if isinstance(found, PlimsollError):
        yield skipped("senders", found)
        return
    match found:
        case Direct.BY_THE_QUEUE:
            yield ok("senders", "the queue of notices denies you: only the rules may send to it")
        case Direct.OTHERWISE:
            yield info(
                "senders",
                "you may send to no queue, so whether this one denies you was not seen",
                "ask with the right to sqs:SendMessage",
            )
        case Direct.TAKEN if facts.stack.accepts_drills:
            yield info("senders", "the queue of notices took a message of yours: so do emulators")
        case Direct.TAKEN:
            yield fail(
                "senders",
                "the queue of notices took a message of yours: whoever has sqs:SendMessage can "
                "have every node drained",
                "deploy the stack again; if it stays so, report it",
            )
        case _:
            assert_never(found)


def delivery(facts: Facts) -> Iterator[Finding]:
    """Say whether the rules try for as long, and keep what they cannot deliver, as they were told."""
    found = facts.targets
    if isinstance(found, PlimsollError):
        yield info("delivery", f"not read: {found}", "ask with events:ListTargetsByRule")
        return
    wrong = sorted({t.rule for t in found if t.seconds != DELIVERY_SECONDS or not t.dead_letters})
    if wrong:
        yield fail(
            "delivery",
            f"{', '.join(wrong)}: what cannot be delivered is tried for another time than "
            f"{DELIVERY_SECONDS} s, or not kept",
            "deploy the stack again; if it stays so, report it",
        )
    else:
        says = f"{len(found)} rules try for {DELIVERY_SECONDS} s, and keep what they cannot deliver"
        yield ok("delivery", says)
