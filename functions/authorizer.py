"""API Gateway asks who holds a token, before it calls the API.

API Gateway keeps no answer: whoever was revoked is out at the next request. The answer depends on the
token alone all the same, and never on the path. What it allows an agent is its own cluster.
https://docs.aws.amazon.com/apigateway/latest/developerguide/configure-api-gateway-lambda-authorization.html
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aws_lambda_powertools.utilities.typing import LambdaContext

from plimsoll.observability import logger, metrics
from plimsoll_service import bootstrap
from plimsoll_service.domain.access import (
    Bearer,
    PersonRole,
    Principal,
    Role,
    grants_of,
    grants_text,
)
from plimsoll_service.domain.metrics import ServiceMetric

_BEARER: Final = "bearer "
"""In any case: https://www.rfc-editor.org/rfc/rfc9110#section-11.1"""
_AGENT: Final = (
    "POST/v1/clusters/{}/token",
    "POST/v1/clusters/{}/snapshots",
    "POST/v1/clusters/{}/taints",
    "POST/v1/clusters/{}/queue-changes",
    "GET/v1/clusters/{}/instructions",
    "POST/v1/clusters/{}/results",
)
_PERSON: Final[Mapping[PersonRole, Sequence[str]]] = {
    PersonRole.VIEWER: (
        "GET/v1/clusters",
        "GET/v1/clusters/*",
        "GET/v1/agents",
        "DELETE/v1/session",
    ),
    PersonRole.OPERATOR: (
        "POST/v1/clusters/*/recommendations/*/accept",
        "POST/v1/clusters/*/recommendations/*/dismiss",
        "POST/v1/clusters/*/recommendations/*/cancel",
    ),
    PersonRole.ADMIN: (
        "GET/v1/audit",
        "GET/v1/members",
        "GET/v1/people",
        "DELETE/v1/people/*",
        "POST/v1/tokens",
    ),
}
"""What each role adds to the ones before it. On which clusters a person has it, the API looks up."""


class Unauthorized(Exception):  # noqa: N818 - API Gateway knows it by its message
    """API Gateway answers 401 when the authorizer fails with exactly this word."""


@metrics.log_metrics
@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's own signature
    """Return what the holder of a token may call."""
    said = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    scheme, token = said.get("authorization", "")[:7], said.get("authorization", "")[7:]
    principal = _holder(token) if scheme.lower() == _BEARER else None
    if principal is None:
        raise Unauthorized("Unauthorized")
    return policy(principal, event["methodArn"])


def policy(principal: Principal, method_arn: str) -> dict[str, Any]:
    """Return the policy for a principal on the stage of a method."""
    # The rest names this request's method and path. The answer must not depend on them.
    arn, stage, _ = method_arn.split("/", 2)
    return {
        "principalId": principal.subject,
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Action": "execute-api:Invoke",
                    "Effect": "Allow",
                    "Resource": [f"{arn}/{stage}/{path}" for path in _paths(principal)],
                }
            ],
        },
        "context": {
            "subject": principal.subject,
            "tenant": principal.tenant,
            "role": principal.role.value,
            "name": principal.name,
            "kid": principal.kid,
            "public_key": base64.b64encode(principal.public_key).decode(),
            "cluster_uid": principal.cluster_uid,
            "grants": grants_text(principal.grants),
        },
    }


def known(context: Mapping[str, Any]) -> Principal:
    """Return the principal that a request's context tells of."""
    return Principal(
        subject=context["subject"],
        tenant=context["tenant"],
        role=Role(context["role"]),
        name=context["name"],
        kid=context["kid"],
        public_key=base64.b64decode(context["public_key"]),
        cluster_uid=context["cluster_uid"],
        grants=grants_of(context["grants"]),
    )


def _holder(token: str) -> Principal | None:
    try:
        now = bootstrap.clock().now()
        if Bearer.read(token) is not None:
            return bootstrap.sessions().find(token, now)
        return bootstrap.access().authorize(token, now)
    except Exception:
        # Lambda counts refusals among the errors of the function, so no alarm goes by these.
        metrics.add_metric(ServiceMetric.FAULTS, "Count", 1)
        raise


def _paths(principal: Principal) -> Sequence[str]:
    match principal.role:
        case Role.AGENT:
            return [path.format(principal.subject) for path in _AGENT]
        case Role.PERSON:
            highest = principal.highest
            return [
                path
                for role, paths in _PERSON.items()
                if highest is not None and role.rank <= highest.rank
                for path in paths
            ]
