"""Asks a cluster what it would let us do, without doing it.

Every identity may ask about itself (SelfSubjectAccessReview). Where the functions come under
another identity than whoever asks, as with EKS, the question is about the group of our manifests
instead (SubjectAccessReview): that one only an administrator may ask.

https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from plimsoll.adapters.kubernetes.calls import CALLS, Call
from plimsoll.adapters.kubernetes.errors import refusal
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.domain.checkup import Right
from plimsoll.domain.errors import BadInput, Refused, Temporary
from plimsoll.domain.names import LEASE
from plimsoll.services.ports import Workers

GROUP: Final = "plimsoll"
"""Whom `infra/cluster` binds its roles to."""

_REFUSED: Final = 400
_UNAUTHORIZED: Final = 401
_REVIEWS: Final = "authorization.k8s.io"
_VERSION: Final = Call(verb="get", resource="version")
_SELF: Final = Call(verb="create", group=_REVIEWS, resource="selfsubjectaccessreviews")
_OTHERS: Final = Call(verb="create", group=_REVIEWS, resource="subjectaccessreviews")


class KubernetesProbe:
    """Implements `plimsoll.services.doctor.ClusterProbe`.

    Args:
        transport: Carries the requests.
        cluster: Its name, for messages.
        workers: Asks about rights side by side.
        group: Ask about this group; None asks about whoever asks.
    """

    def __init__(
        self, transport: Transport, cluster: str, workers: Workers, *, group: str | None = None
    ) -> None:
        self._transport = transport
        self._requests = Requests(transport=transport, cluster=cluster)
        self._workers = workers
        self._group = group

    def version(self) -> str:
        """Return the version of the API server. It reads a token before it answers even this.

        Raises:
            BadInput: it does not take the token.
        """
        answer = self._transport.call("GET", "/version")
        if answer.status == _UNAUTHORIZED:
            raise BadInput(f"cluster {self._requests.cluster} does not take the token (401)")
        if answer.status >= _REFUSED:
            raise refusal(self._requests.cluster, _VERSION, "", answer)
        if not isinstance(answer.body, Mapping):
            raise Temporary(f"cluster {self._requests.cluster}: {_VERSION}: the answer is not JSON")
        return str(answer.body.get("gitVersion", "of no version"))

    def rights(self) -> Sequence[Right]:
        """Return every call that is made to a cluster, and whether it would be allowed.

        Raises:
            Refused: whoever asks may not ask about the group.
        """
        answers = self._workers.run([partial(self._ask, call) for call in CALLS])
        found = []
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            found.append(answer)
        return found

    def _ask(self, call: Call) -> Right:
        resource, _, subresource = call.resource.partition("/")
        asked = {
            "verb": call.verb,
            "group": call.group,
            "version": call.version,
            "resource": resource,
            "subresource": subresource,
            "namespace": call.only_in or "",
            # What is not there yet has no name that a rule could hold it to.
            "name": LEASE if call.only_in and call.verb != "create" else "",
        }
        group = f"{call.group}/" if call.group else ""
        return Right(
            verb=call.verb,
            resource=f"{group}{call.resource}",
            only_in=call.only_in,
            held=self._allowed({"resourceAttributes": asked}),
        )

    def _allowed(self, spec: Mapping[str, Any]) -> bool:
        if self._group is None:
            answer = self._requests.send(_SELF, body=_review("SelfSubjectAccessReview", spec))
        else:
            about = {"user": "plimsoll-doctor", "groups": [self._group, "system:authenticated"]}
            body = _review("SubjectAccessReview", {**spec, **about})
            try:
                answer = self._requests.send(_OTHERS, body=body)
            except Refused as error:
                raise Refused(
                    f"you may not ask cluster {self._requests.cluster} what the group "
                    f"{self._group} is allowed ({_OTHERS}): ask as an administrator of it"
                ) from error
        return bool((answer.get("status") or {}).get("allowed"))


def _review(kind: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"apiVersion": f"{_REVIEWS}/v1", "kind": kind, "spec": spec}
