"""Asks IAM itself about the deployed roles: what our evaluator says in tests, on a real account.

https://docs.aws.amazon.com/IAM/latest/APIReference/API_SimulateCustomPolicy.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.aws_errors import translated
from plimsoll.domain.errors import PlimsollError
from plimsoll_cli.checks.facts import Facts, Simulated
from plimsoll_cli.checks.findings import Finding, fail, info, ok
from plimsoll_cli.checks.policies import Decision, decide
from plimsoll_cli.checks.requests import FUNCTIONS, Place, cases

if TYPE_CHECKING:
    from plimsoll.adapters.aws import Aws

SHOWN: Final = 5
"""How many requests a finding names."""


def simulated(aws: Aws, stack: str) -> Sequence[Simulated]:
    """Return what IAM and our evaluator decide on every case, by the policies of the deployed roles.

    Raises:
        PlimsollError: CloudFormation or IAM cannot be asked.
    """
    session = aws.session
    with translated("simulate the policies of the stack's roles"):
        answer = session.client("cloudformation").describe_stack_resources(StackName=stack)
        found = answer["StackResources"]
        _, partition, _, region, account, _ = found[0]["StackId"].split(":", 5)
        # A queue is known by its URL, everything else by its name.
        names = {r["LogicalResourceId"]: r["PhysicalResourceId"].rpartition("/")[2] for r in found}
        place = Place(partition=partition, region=region, account=account, stack=stack, names=names)
        return by_iam(session.client("iam"), place)


def by_iam(iam: Any, place: Place) -> Sequence[Simulated]:
    """Return the same, asked of a client of IAM."""
    held = {role: _policies(iam, place.names[role]) for role in FUNCTIONS}
    return [
        Simulated(
            role=case.role,
            request=case.request,
            wanted=case.allowed,
            ours=decide(held[case.role], case.request),
            theirs=_asked(iam, held[case.role], case.request),
        )
        for case in cases(place)
    ]


def _policies(iam: Any, role: str) -> Sequence[Mapping[str, Any]]:
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    return [iam.get_role_policy(RoleName=role, PolicyName=n)["PolicyDocument"] for n in names]


def _asked(iam: Any, policies: Sequence[Mapping[str, Any]], request: Any) -> Decision:
    answer = iam.simulate_custom_policy(
        PolicyInputList=[json.dumps(policy) for policy in policies],
        ActionNames=[request.action],
        ResourceArns=[request.resource],
        ContextEntries=[
            {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
            for key, value in request.context.items()
        ],
    )
    return Decision(answer["EvaluationResults"][0]["EvalDecision"])


def aws_rights(facts: Facts) -> Iterator[Finding]:
    """Say whether IAM lets the roles do what they must, and nothing of what they must not."""
    found = facts.simulated
    if isinstance(found, PlimsollError):
        # Many may not simulate policies, and everything else can be fine without.
        yield info("AWS rights", f"not simulated: {found}", "ask with iam:SimulateCustomPolicy")
        return
    wrong = [one for one in found if (one.theirs is Decision.ALLOWED) is not one.wanted]
    differ = [one for one in found if one.ours is not one.theirs]
    if wrong:
        yield fail(
            "AWS rights",
            f"IAM decides {len(wrong)} of {len(found)} requests otherwise than it must: "
            f"{_listed(wrong)}",
            "deploy the stack again; if it stays so, report these lines",
        )
    else:
        yield ok("AWS rights", f"IAM decides all {len(found)} requests of the roles as it must")
    if differ:
        yield info("AWS rights", f"our evaluator differs from IAM: {_listed(differ)}", "report it")


def _listed(found: Sequence[Simulated]) -> str:
    said = [f"{one.role} {one.request.action} ({one.theirs})" for one in found]
    return ", ".join([*said[:SHOWN], *(["…"] if len(said) > SHOWN else [])])
