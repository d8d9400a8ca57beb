"""What IAM decides on a request, for the part of its language that the template uses.

Anything else in a policy raises, so that a policy cannot be judged by a rule that is missing here.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from plimsoll.domain.errors import BadInput

type Json = Mapping[str, Any]


class Decision(StrEnum):
    """What IAM decides, in the words of SimulateCustomPolicy."""

    ALLOWED = "allowed"
    DENIED = "explicitDeny"
    NOT_ALLOWED = "implicitDeny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. Every key of its context has one value."""

    action: str
    resource: str
    context: Mapping[str, str] = field(default_factory=dict)
    service: str | None = None
    """The AWS service that asks; None: a role or a user."""


def decide(policies: Iterable[Json], request: Request) -> Decision:
    """Return what policies decide together: of identities, or those of one resource.

    Raises:
        BadInput: a policy says something that is not known here.
    """
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in policy["Statement"]
        if _applies(statement, request)
    }
    if "Deny" in effects:
        return Decision.DENIED
    return Decision.ALLOWED if "Allow" in effects else Decision.NOT_ALLOWED


def _applies(statement: Json, request: Request) -> bool:
    unknown = statement.keys() - {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}
    if unknown:
        raise BadInput(f"a policy has {', '.join(sorted(unknown))}, which is not judged here")
    return (
        _is_meant(statement.get("Principal"), request)
        and any(_like(a.lower(), request.action.lower()) for a in _listed(statement["Action"]))
        and any(_like(r, request.resource) for r in _listed(statement["Resource"]))
        and all(
            _holds(operator, key, _listed(values), request.context)
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
        )
    )


def _is_meant(principal: Any, request: Request) -> bool:
    """Whether a statement is about who asks; one of an identity's policy names nobody."""
    match principal:
        case None | "*":
            return True
        case {"Service": service}:
            return request.service in _listed(service)
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
