"""The concurrency of Lambda: does another function of the account keep a notice waiting?

Lambda keeps a pool for each account and region. A reserve is taken out of the pool for one function; at
least 100 must stay in it: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from plimsoll.domain.errors import Refused
from plimsoll_cli.doctor.findings import Finding, fail, info, ok, unread
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.probes.aws import Concurrency

LEAST_UNRESERVED: Final = 100
_USUAL: Final = 1000
"""The quota of an account that is no longer new."""


def missing(found: Concurrency) -> Mapping[str, int]:
    """Return what has to be reserved, by function: whose reserve is not as large as the stack's `Size`.

    Raises:
        Refused: it does not fit into the account's quota.
    """
    if found.left < LEAST_UNRESERVED:
        raise Refused(
            f"the reserve of {found.added} does not fit: of the quota of {found.quota}, "
            f"{found.unreserved} are unreserved, and Lambda keeps {LEAST_UNRESERVED} of them: "
            f"{_more(found)}"
        )
    return found.missing


@unread("ask with lambda:GetAccountSettings and lambda:GetFunctionConcurrency")
def concurrency(installation: Installation) -> Iterator[Finding]:
    """Say whether the functions of the stack have their concurrency to themselves, and what is left."""
    found, stack = installation.aws.concurrency(), installation.stack
    need = sum(found.wanted.values())
    if found.quota < need:
        yield fail(
            f"the functions of the stack start up to {need} at once (Size={stack.size}), and the "
            f"account's quota is {found.quota}",
            f"deploy with a smaller Size, or {_more(found)}",
        )
    elif not found.missing:
        yield ok(
            f"{need} of {found.quota} are reserved for the functions of the stack, and "
            f"{found.unreserved} are left for functions without a reserve",
        )
    elif found.left >= LEAST_UNRESERVED:
        names = ", ".join(name.removesuffix("Function").lower() for name in found.missing)
        yield fail(
            f"other functions of the account can keep a notice waiting: {names} "
            f"share {found.unreserved} with them; reserved, {found.left} would be left",
            stack.command("doctor", "--cluster", installation.cluster.name, "--fix", "reserve")
            + "; and deploy with ReserveConcurrency=true from now on",
        )
    else:
        yield info(
            f"other functions of the account can keep a notice waiting: the quota of {found.quota} "
            f"has no place for a reserve of {found.added} beside the {LEAST_UNRESERVED} that "
            "Lambda keeps unreserved",
            _more(found),
        )


def _more(found: Concurrency) -> str:
    """Return how to ask for a quota in which the reserve fits."""
    quota = max(_USUAL, found.quota + LEAST_UNRESERVED - found.left)
    return (
        "aws service-quotas request-service-quota-increase --service-code lambda "
        f"--quota-code L-B99A9384 --desired-value {quota}"
    )
