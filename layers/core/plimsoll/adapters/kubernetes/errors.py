"""What the API server's refusals mean to us, told apart by code, reason and causes.

A 409 of a delete or an eviction under a UID says that another pod has the name by now: also a
`Conflict`, because reading again shows that the pod is gone.

Source: https://github.com/kubernetes/apimachinery/blob/master/pkg/api/errors/errors.go
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.adapters.kubernetes.calls import EVICT, Call
from plimsoll.adapters.kubernetes.transport import Response
from plimsoll.domain.errors import (
    BadInput,
    Blocked,
    Conflict,
    MissingRights,
    NotFound,
    Permanent,
    PlimsollError,
    Refused,
    Temporary,
    Throttled,
)
from plimsoll.domain.fields import retry_after_of

_SERVER_ERROR: Final = 500
_TOO_MANY: Final = 429
_POLICY: Final = re.compile(r"ValidatingAdmissionPolicy '([^']+)'")
_IMPERSONATE: Final = re.compile(r"cannot impersonate")  # since 1.36 the verb has more to it
_WEBHOOK_DENIED: Final = re.compile(r'admission webhook "[^"]*" denied')
_WEBHOOK_FAILED: Final = re.compile(r'failed calling webhook "')
_ADMISSION: Final = re.compile(r"is forbidden: (?!.*cannot )")
"""An admission plugin says no, for example ResourceQuota. A missing right is told as what somebody cannot do."""
_UNFIT: Final = "the server rejected our request due to an error in our request"
_TWO_BUDGETS: Final = re.compile(r"more than one PodDisruptionBudget", re.IGNORECASE)
_MEANINGS: Final[Mapping[int, type[Temporary | Permanent]]] = {
    400: BadInput,
    404: NotFound,
    405: BadInput,
    408: Temporary,
    409: Conflict,
    410: Temporary,
    415: BadInput,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What gives an identity its rights, for the message that it lacks one."""

    manifests: str = "infra/cluster"
    group: str = "plimsoll"


GRANT: Final = Grant()
"""What gives the interruption path its rights."""


def refusal(
    cluster: str, call: Call, about: str, answer: Response, grant: Grant = GRANT
) -> PlimsollError:
    """Return the error that an answer means.

    Args:
        cluster: The cluster's name, for the message.
        call: What was asked.
        about: The object that it was about, or "".
        answer: An answer with a status of 400 or more.
        grant: What is to be applied where a right is missing.
    """
    said = said_of(answer)
    text = (
        f"cluster {cluster}: {call}{f' {about}' if about else ''}: {answer.status} {said}".strip()
    )
    match answer.status:
        # Webhooks first: their authors choose any status, and only the message names them.
        case status if (held := _webhook(status, call, said)) is not None:
            error: PlimsollError = held(text)
        case 401:
            error = Temporary(f"{text}: nor was a fresh token taken")
        case 403:
            error = _forbidden(text, cluster, call, answer, grant)
        # A patch cannot change a UID. The API server says so if another object has the name by now.
        case 422 if "metadata.uid" in _causes(answer, "field"):
            error = NotFound(f"{text}: another object has its name by now")
        # So the API server says that a JSON patch does not fit what is there by now: a test in it failed.
        # https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/patch.go
        case 422 if call.verb == "patch" and said == _UNFIT:
            error = Conflict(text)
        # Both a budget and an overloaded server answer 429: the cause tells them apart.
        # https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/#how-api-initiated-eviction-works
        case 429 if "DisruptionBudget" in _causes(answer, "reason"):
            error = Blocked(text, retry_after=_retry_after(answer))
        case 429:
            error = Throttled(text, retry_after=_retry_after(answer))
        # Before the other 5xx: another attempt cannot cure it.
        case 500 if _TWO_BUDGETS.search(said):
            error = Refused(f"{text}: two PodDisruptionBudgets select this pod; leave only one")
        case status if status >= _SERVER_ERROR:
            error = Temporary(text, retry_after=_retry_after(answer))
        case status:
            error = _MEANINGS.get(status, Refused)(text)
    return error


def _webhook(status: int, call: Call, said: str) -> type[Blocked | Refused] | None:
    """Return what an admission webhook's answer means: it is obeyed as a budget is, and nobody else waits for it."""
    if call == EVICT and status == _SERVER_ERROR and _WEBHOOK_FAILED.search(said):
        return Blocked
    if _WEBHOOK_DENIED.search(said):
        return Blocked if status == _TOO_MANY else Refused
    return None


def policy_of(answer: Response) -> str | None:
    """Return the ValidatingAdmissionPolicy that refused a request; None where something else did."""
    found = _POLICY.search(said_of(answer))
    return found.group(1) if found else None


def _forbidden(
    text: str, cluster: str, call: Call, answer: Response, grant: Grant
) -> PlimsollError:
    # From the narrowest meaning of a 403 to the widest: the rest are missing rights.
    if "NamespaceTerminating" in _causes(answer, "reason"):
        return NotFound(f"{text}: its namespace is being deleted, and takes it along")
    if call == EVICT and _of_budget(answer):
        return Blocked(f"{text}: the disruption controller brings its status up to date")
    if policy_of(answer) is not None or _ADMISSION.search(said_of(answer)):
        return Refused(text)  # a policy or a plugin says itself how to fix it
    if _IMPERSONATE.search(said_of(answer)):
        return MissingRights(
            f"{text}: only an administrator of the cluster may come as one of a group"
        )
    return MissingRights(
        f"{text}. Plimsoll lacks the right to {call} in cluster {cluster}: apply {grant.manifests} "
        f'(kubectl apply -k {grant.manifests}) and see that its identity is in the group "{grant.group}"'
    )


def _of_budget(answer: Response) -> bool:
    """Whether a 403 is about the status of a budget: too many evictions are not confirmed, or it allows less than none.

    https://github.com/kubernetes/kubernetes/blob/master/pkg/registry/core/pod/storage/eviction.go
    """
    return _details(answer).get("kind") == "poddisruptionbudget" or "DisruptionBudget" in _causes(
        answer, "reason"
    )


def said_of(answer: Response) -> str:
    """Return what an answer says in words; "" where it says nothing."""
    if isinstance(answer.body, Mapping):
        return str(answer.body.get("message") or answer.body.get("reason") or "")
    return str(answer.body or "")[:300]


def _details(answer: Response) -> Mapping[str, Any]:
    details = answer.body.get("details") if isinstance(answer.body, Mapping) else None
    return details if isinstance(details, Mapping) else {}


def _causes(answer: Response, key: str) -> frozenset[object]:
    causes = _details(answer).get("causes")
    if not isinstance(causes, list):
        return frozenset()
    return frozenset(str(cause.get(key)) for cause in causes if isinstance(cause, Mapping))


def _retry_after(answer: Response) -> float | None:
    header, body = answer.headers.get("retry-after"), _details(answer).get("retryAfterSeconds")
    return retry_after_of(header, body)
