"""The concurrency of Lambda: does another function of the account keep a notice waiting?

Lambda keeps a pool for each account and region. A reserve is taken out of the pool for one function; at
least 100 must stay in it: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import PlimsollError, Refused
from plimsoll_cli.doctor.facts import Concurrency, Facts
from plimsoll_cli.doctor.findings import Finding, fail, info, ok
from plimsoll_cli.stack import Stack

LEAST_UNRESERVED: Final = 100
RESERVES: Final[Mapping[str, Mapping[str, int]]] = {
    size: {
        "NoticesFunction": each,
        "DrainsFunction": each,
        "SweepFunction": resyncs,
        "ScheduleFunction": 1,
        "PlacementFunction": 1,
    }
    for size, each, resyncs in (("small", 3, 2), ("usual", 10, 10), ("large", 50, 50))
}
"""Size of a stack -> function -> how many of it run at once. The template says so, and a test compares."""
_USUAL: Final = 1000
"""The quota of an account that is no longer new."""


def read(functions: Any, stack: Stack) -> Concurrency:
    """Return the quota of the account, and what is reserved for the functions of a stack.

    Args:
        functions: a client of Lambda.
        stack: the stack.

    Raises:
        PlimsollError: Lambda cannot be asked, or the stack has no such function.
    """
    with translated("read the account's quota of concurrent executions"):
        limit = functions.get_account_settings()["AccountLimit"]
        reserved = {
            name: functions.get_function_concurrency(FunctionName=stack.output(name)).get(
                "ReservedConcurrentExecutions"
            )
            for name in _wanted(stack)
        }
    return Concurrency(
        quota=limit["ConcurrentExecutions"],
        unreserved=limit["UnreservedConcurrentExecutions"],
        reserved=reserved,
    )


def reserve(functions: Any, function: str, executions: int) -> None:
    """Reserve concurrency for a function, by a client of Lambda.

    Raises:
        PlimsollError: Lambda refuses, or cannot be asked.
    """
    with translated(f"reserve concurrency for {function}"):
        functions.put_function_concurrency(
            FunctionName=function, ReservedConcurrentExecutions=executions
        )


def missing(stack: Stack, found: Concurrency) -> Mapping[str, int]:
    """Return what has to be reserved, by function: whose reserve is not as large as the stack's `Size`.

    Raises:
        Refused: it does not fit into the account's quota.
    """
    wanted = _missing(stack, found)
    if _left(stack, found) < LEAST_UNRESERVED:
        raise Refused(
            f"the reserve of {_added(stack, found)} does not fit: of the quota of {found.quota}, "
            f"{found.unreserved} are unreserved, and Lambda keeps {LEAST_UNRESERVED} of them: "
            f"{_more(stack, found)}"
        )
    return wanted


def concurrency(facts: Facts) -> Iterator[Finding]:
    """Say whether the functions of the stack have their concurrency to themselves, and what is left."""
    found, stack = facts.concurrency, facts.stack
    if isinstance(found, PlimsollError):
        cure = "ask with lambda:GetAccountSettings and lambda:GetFunctionConcurrency"
        yield info("concurrency", f"not read: {found}", cure)
        return
    need = sum(_wanted(stack).values())
    if found.quota < need:
        yield fail(
            "concurrency",
            f"the functions of the stack start up to {need} at once (Size={stack.size}), and the "
            f"account's quota is {found.quota}",
            f"deploy with a smaller Size, or {_more(stack, found)}",
        )
    elif not _missing(stack, found):
        yield ok(
            "concurrency",
            f"{need} of {found.quota} are reserved for the functions of the stack, and "
            f"{found.unreserved} are left for functions without a reserve",
        )
    elif _left(stack, found) >= LEAST_UNRESERVED:
        yield fail(
            "concurrency",
            f"other functions of the account can keep a notice waiting: {_unreserved(stack, found)} "
            f"share {found.unreserved} with them; reserved, {_left(stack, found)} would be left",
            f"plimsoll doctor --cluster {facts.cluster.name} --stack {stack.name} --fix reserve; "
            "and deploy with ReserveConcurrency=true from now on",
        )
    else:
        yield info(
            "concurrency",
            f"other functions of the account can keep a notice waiting: the quota of {found.quota} "
            f"has no place for a reserve of {_added(stack, found)} beside the {LEAST_UNRESERVED} that "
            "Lambda keeps unreserved",
            _more(stack, found),
        )


def _wanted(stack: Stack) -> Mapping[str, int]:
    return RESERVES[stack.size]


def _missing(stack: Stack, found: Concurrency) -> Mapping[str, int]:
    return {n: count for n, count in _wanted(stack).items() if (found.reserved[n] or 0) < count}


def _added(stack: Stack, found: Concurrency) -> int:
    return sum(n - (found.reserved[name] or 0) for name, n in _missing(stack, found).items())


def _left(stack: Stack, found: Concurrency) -> int:
    """Return what stays unreserved once everything is reserved."""
    return found.unreserved - _added(stack, found)


def _unreserved(stack: Stack, found: Concurrency) -> str:
    return ", ".join(name.removesuffix("Function").lower() for name in _missing(stack, found))


def _more(stack: Stack, found: Concurrency) -> str:
    """Return how to ask for a quota in which the reserve fits."""
    quota = max(_USUAL, found.quota + LEAST_UNRESERVED - _left(stack, found))
    return (
        "aws service-quotas request-service-quota-increase --service-code lambda "
        f"--quota-code L-B99A9384 --desired-value {quota}"
    )
