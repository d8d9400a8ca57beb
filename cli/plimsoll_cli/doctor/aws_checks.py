"""What IAM allows the roles of a stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from plimsoll_cli.doctor.findings import Finding, fail, ok, unread
from plimsoll_cli.doctor.installation import Installation
from plimsoll_cli.probes.aws import Simulated

SHOWN: Final = 5
"""How many requests a finding names."""


@unread("ask with iam:SimulatePrincipalPolicy", "not simulated")
def aws_rights(installation: Installation) -> Iterator[Finding]:
    """Say whether IAM lets the roles do what they must, and nothing of what they must not."""
    found = installation.aws.simulated()
    wrong = [one for one in found if not one.right]
    if wrong:
        yield fail(
            f"IAM decides {len(wrong)} of {len(found)} requests otherwise than it must: "
            f"{_listed(wrong)}",
            "deploy the stack again; if it stays so, report these lines",
        )
    else:
        yield ok(f"IAM decides all {len(found)} requests of the roles as it must")


def _listed(found: Sequence[Simulated]) -> str:
    said = [f"{one.case.role} {one.case.request.action} ({one.decision})" for one in found]
    return ", ".join([*said[:SHOWN], *(["…"] if len(said) > SHOWN else [])])
