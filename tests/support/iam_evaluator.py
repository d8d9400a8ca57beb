"""Decisions of IAM for the part of its policy language that the templates use: the emulated IAM has no simulator.

Any other element of a policy raises, so that no policy is judged without a rule for it.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from plimsoll.domain.errors import BadInput
from plimsoll_cli.probes.iam_requests import Request

type Json = Mapping[str, Any]


class Decision(StrEnum):
    """What IAM decides, in the words of SimulatePrincipalPolicy."""

    ALLOWED = "allowed"
    DENIED = "explicitDeny"
    NOT_ALLOWED = "implicitDeny"


def decide(policies: Iterable[Json], request: Request, *, service: str | None = None) -> Decision:
    """Return what policies decide together: of identities, or those of one resource.

    Args:
        policies: the documents.
        request: what is asked.
        service: the AWS service that asks; None: a role or a user asks.

    Raises:
        BadInput: a policy says something that is not known here.
    """
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in policy["Statement"]
        if _applies(statement, request, service)
    }
    if "Deny" in effects:
        return Decision.DENIED
    return Decision.ALLOWED if "Allow" in effects else Decision.NOT_ALLOWED


def _applies(statement: Json, request: Request, service: str | None) -> bool:
    unknown = statement.keys() - {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}
    if unknown:
        raise BadInput(f"a policy has {', '.join(sorted(unknown))}, which is not judged here")
    return (
        _is_meant(statement.get("Principal"), service)
        and any(_like(a.lower(), request.action.lower()) for a in _listed(statement["Action"]))
        and any(_like(r, request.resource) for r in _listed(statement["Resource"]))
        and all(
            _holds(operator, key, _listed(values), request.context)
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def _is_meant(principal: Any, service: str | None) -> bool:
    """Whether a statement is about who asks; one of an identity's policy names nobody."""
    match principal:
        case None | "*":
            return True
        case {"Service": services}:
            return service in _listed(services)
        case _:
            raise BadInput(f"a policy names {principal}, which is not judged here")


def _holds(operator: str, key: str, wanted: Sequence[str], context: Mapping[str, str]) -> bool:
    """Whether a condition holds: for one of its values, or, negated, for none.

    "If the key that you specify in a policy condition is not present in the request context, the
    values do not match and the condition is false"; true where it is negated, or ends in IfExists, or is
    about all values, of which there are none.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    """
    every = operator.startswith("ForAllValues:")
    base = operator.removeprefix("ForAllValues:").removesuffix("IfExists")
    negated = "Not" in base
    compare = _OPERATORS.get(base.replace("Not", ""))
    if compare is None:
        raise BadInput(f"a policy has the operator {operator}, which is not judged here")
    said = {name.lower(): value for name, value in context.items()}.get(key.lower())
    if said is None:
        return every or negated or operator.endswith("IfExists")
    return any(compare(value, said) for value in wanted) is not negated


def _like(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern in which * stands for any text and ? for one character."""
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def _arn_like(pattern: str, arn: str) -> bool:
    """As `_like`, but each of the six parts of an ARN for itself."""
    wanted, said = pattern.split(":", 5), arn.split(":", 5)
    return len(wanted) == len(said) and all(map(_like, wanted, said))


_OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "StringEquals": str.__eq__,
    "StringLike": _like,
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
    "Bool": lambda wanted, said: wanted.lower() == said.lower(),
}


def _listed(value: Any) -> Sequence[str]:
    return value if isinstance(value, list) else [value]
