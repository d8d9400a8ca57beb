"""IAM simulates requests of the deployed roles, with every policy and boundary that they have.

https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulatePrincipalPolicy.html
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.doctor.facts import Facts, Simulated
from plimsoll_cli.doctor.findings import Finding, fail, info, ok
from plimsoll_cli.doctor.iam_requests import Case, Place, cases

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

SHOWN: Final = 5
"""How many requests a finding names."""


def simulated(aws: Aws, stack: str) -> Sequence[Simulated]:
    """Return what IAM decides on every case.

    Raises:
        PlimsollError: CloudFormation or IAM cannot be asked.
    """
    with translated("simulate the policies of the stack's roles"):
        answer = aws.client("cloudformation").describe_stack_resources(StackName=stack)
        found = answer["StackResources"]
        _, partition, _, region, account, _ = found[0]["StackId"].split(":", 5)
        # A queue is known by its URL, everything else by its name.
        names = {r["LogicalResourceId"]: r["PhysicalResourceId"].rpartition("/")[2] for r in found}
        place = Place(partition=partition, region=region, account=account, stack=stack, names=names)
        iam = aws.client("iam")
        return [Simulated(case=case, decision=decision(iam, place, case)) for case in cases(place)]


def decision(iam: Any, place: Place, case: Case) -> str:
    """Return what a client of IAM answers for one case."""
    answer = iam.simulate_principal_policy(
        PolicySourceArn=place.arn("iam", f"role/{place.names[case.role]}"),
        ActionNames=[case.request.action],
        ResourceArns=[case.request.resource],
        ContextEntries=[
            {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
            for key, value in case.request.context.items()
        ],
    )
    said: str = answer["EvaluationResults"][0]["EvalDecision"]
    return said


def aws_rights(facts: Facts) -> Iterator[Finding]:
    """Say whether IAM lets the roles do what they must, and nothing of what they must not."""
    found = facts.simulated
    if isinstance(found, PlimsollError):
        # Many may not simulate policies, and everything else can be fine without.
        yield info("AWS rights", f"not simulated: {found}", "ask with iam:SimulatePrincipalPolicy")
        return
    wrong = [one for one in found if not one.right]
    if wrong:
        yield fail(
            "AWS rights",
            f"IAM decides {len(wrong)} of {len(found)} requests otherwise than it must: "
            f"{_listed(wrong)}",
            "deploy the stack again; if it stays so, report these lines",
        )
    else:
        yield ok("AWS rights", f"IAM decides all {len(found)} requests of the roles as it must")


def _listed(found: Sequence[Simulated]) -> str:
    said = [f"{one.case.role} {one.case.request.action} ({one.decision})" for one in found]
    return ", ".join([*said[:SHOWN], *(["…"] if len(said) > SHOWN else [])])
