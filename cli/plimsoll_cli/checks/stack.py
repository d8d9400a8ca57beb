"""The stack: is it whole, does it write, do notices get through it?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from plimsoll.domain.clusters import Mode
from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.checks.facts import Facts
from plimsoll_cli.checks.findings import Finding, fail, info, ok, skipped

SLOW_SECONDS: Final = 15.0
"""From the bus to the function. A spot notice lives for 120 s."""


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
    if facts.stack.parameters.get("KillSwitch") == "true":
        yield fail(
            "kill switch",
            "it is on: nothing is written to any cluster or node group, whatever the mode",
            "when its reason is over, deploy with KillSwitch=false",
        )
    else:
        yield ok("kill switch", "it is off")


def drills(facts: Facts) -> Iterator[Finding]:
    """Say whether notices of drills are taken as real."""
    if facts.stack.parameters.get("AcceptDrills") == "true":
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
        yield skipped("notices", found, "the command needs the right to events:PutEvents")
        return
    if found.seen is None:
        yield fail(
            "notices",
            f"a canary was put on the bus, and in {found.waited_seconds:.0f} s the function wrote "
            "nothing about it",
            "see CanaryMissing in docs/operations.md: a rule, the queue's policy or the function",
        )
        return
    seconds = max(0.0, (found.seen - found.sent).total_seconds())
    says = f"a canary came through bus, rule, queue and function in {seconds:.1f} s"
    if seconds > SLOW_SECONDS:
        cure = "ask again; if it stays slow, see NoticesWaiting in docs/operations.md"
        yield info("notices", says, cure)
    else:
        yield ok("notices", says)
