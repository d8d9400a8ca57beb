"""Asks a cluster what it would let us do, without doing it.

Verbs are asked about, fields are tried in a dry run (`trials`), and which queue a request went
through stands in its answer.

Every identity may ask about itself (SelfSubjectAccessReview). Where the functions come under
another identity than whoever asks, as with EKS, the question is about the group of our manifests
instead (SubjectAccessReview): that one only an administrator may ask.

https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from plimsoll.adapters.kubernetes.calls import (
    GET_FLOW_SCHEMA,
    LIST_BUDGETS,
    LIST_DEPLOYMENTS,
    LIST_NODES,
    LIST_PODS,
    Call,
)
from plimsoll.adapters.kubernetes.client import PLAYED
from plimsoll.adapters.kubernetes.dry_runs import Trial, trials
from plimsoll.adapters.kubernetes.errors import refusal
from plimsoll.adapters.kubernetes.requests import Requests
from plimsoll.adapters.kubernetes.transport import Transport
from plimsoll.adapters.nodegroups import CALLS
from plimsoll.domain.errors import BadInput, Refused, Temporary
from plimsoll.domain.kubernetes import GUARD
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll.services.ports import Workers
from plimsoll_batch.adapters.kubernetes.stored_queues import configuration_in, stored_text
from plimsoll_batch.domain.quota import QueueConfiguration
from plimsoll_cli.probes.admission import AdmissionPolicies, Webhook, policies_of, webhooks_of
from plimsoll_cli.probes.discovery import Unserved, unserved
from plimsoll_cli.probes.drainers import (
    AUTOSCALER,
    HANDLER,
    KARPENTER,
    NAME,
    Drainer,
    drainers_of,
    marks_of,
)

if TYPE_CHECKING:
    from plimsoll.adapters.clusters import OpenClusters

GROUP: Final = "plimsoll"
"""Whom `infra/cluster` binds its roles to."""

_REFUSED: Final = 400
_UNAUTHORIZED: Final = 401
_NOT_FOUND: Final = 404
_ENOUGH: Final = 50
"""Pods: a DaemonSet has one on each node, and the first says it."""
_SCHEMA_USED: Final = "x-kubernetes-pf-flowschema-uid"
"""https://kubernetes.io/docs/reference/debug-cluster/flow-control/#http-response-headers"""
_REVIEWS: Final = "authorization.k8s.io"
_VERSION: Final = Call(verb="get", resource="version")
_DISCOVERY: Final = Call(verb="get", resource="apis")
_SELF: Final = Call(verb="create", group=_REVIEWS, resource="selfsubjectaccessreviews")
_OTHERS: Final = Call(verb="create", group=_REVIEWS, resource="subjectaccessreviews")
_ADMISSION: Final = "admissionregistration.k8s.io"
_WEBHOOKS: Final = tuple(
    Call(verb="list", group=_ADMISSION, resource=f"{kind}webhookconfigurations")
    for kind in ("mutating", "validating")
)
_POLICIES: Final = tuple(
    Call(verb="list", group=group, resource=resource)
    for group, resource in (
        (_ADMISSION, "validatingadmissionpolicies"),
        (_ADMISSION, "validatingadmissionpolicybindings"),
        ("rbac.authorization.k8s.io", "clusterroles"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """A right in the cluster that Plimsoll uses, and whether it is held."""

    verb: str
    resource: str
    """With its group, as in `apps/deployments`."""
    only_in: str | None
    held: bool

    @property
    def writes(self) -> bool:
        """Whether it is used only where Plimsoll acts."""
        return self.verb not in {"get", "list", "watch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Through which queue of the API server our requests go."""

    uid: str | None
    """Of our FlowSchema; None: there is none."""
    used: str | None
    """UID of the FlowSchema that our request was put under; None: the API server does not say."""
    dangling: bool
    """Whether our FlowSchema names a priority level that is not there."""


class KubernetesProbe:
    """Asks one cluster, using none of our rights.

    Args:
        transport: Carries the requests.
        cluster: Its name, for messages.
        workers: Asks about rights side by side.
        group: Ask about this group; None asks about whoever asks.
        acting: Carries what is tried, as one of the group; None: `transport` does.
    """

    def __init__(
        self,
        transport: Transport,
        cluster: str,
        workers: Workers,
        *,
        group: str | None = None,
        acting: Transport | None = None,
    ) -> None:
        self._transport = transport
        self._requests = Requests(transport=transport, cluster=cluster)
        self._workers = workers
        self._group = group
        self._acting = acting or transport

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

    def unserved(self) -> Sequence[Unserved]:
        """Return the APIs that Plimsoll reads and writes, and the API server does not serve.

        Raises:
            Refused: whoever asks may not ask what is served.
        """
        return tuple(unserved(self._served, self._workers))

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

    def trials(self) -> Sequence[Trial]:
        """Try changes that are ours to make and such as are not, on one object of each kind.

        Raises:
            Refused: whoever asks may not come as one of the group, or may not list.
        """
        return trials(self._acting, self._requests.cluster)

    def queue(self) -> Queue:
        """Return through which queue of the API server our requests go.

        Raises:
            Refused: our FlowSchema may not be read.
        """
        call = GET_FLOW_SCHEMA
        answer = self._acting.call(call.method, call.path(name=call.only))
        used = answer.headers.get(_SCHEMA_USED) or None
        if answer.status == _NOT_FOUND:
            return Queue(uid=None, used=used, dangling=False)
        if answer.status >= _REFUSED:
            raise refusal(self._requests.cluster, call, call.only or "", answer)
        schema = answer.body if isinstance(answer.body, Mapping) else {}
        conditions = (schema.get("status") or {}).get("conditions") or ()
        return Queue(
            uid=(schema.get("metadata") or {}).get("uid"),
            used=used,
            dangling=any(c["type"] == "Dangling" and c["status"] == "True" for c in conditions),
        )

    def drainers(self) -> Sequence[Drainer]:
        """Return the programs in the cluster that are known to drain nodes.

        Raises:
            Refused: pods or Deployments may not be listed.
        """
        selector = f"{NAME} in ({HANDLER},{KARPENTER},{AUTOSCALER})"
        pods = self._listed(LIST_PODS, {"labelSelector": selector, "limit": str(_ENOUGH)})
        return drainers_of(pods, self._listed(LIST_DEPLOYMENTS, {}))

    def marks(self) -> Mapping[str, int]:
        """Return who drains nodes just now, as these say, and how many.

        Raises:
            Refused: nodes may not be listed.
        """
        return marks_of(self._listed(LIST_NODES, {}))

    def webhooks(self) -> Sequence[Webhook]:
        """Return the admission webhooks that are asked about pods or evictions.

        Raises:
            Refused: their configurations may not be listed.
        """
        return webhooks_of([item for call in _WEBHOOKS for item in self._listed(call, {})])

    def policies(self) -> AdmissionPolicies:
        """Return the admission policies that are in force, and the ClusterRoles.

        Raises:
            Refused: they may not be listed.
        """
        return policies_of(*(self._listed(call, {}) for call in _POLICIES))

    def queues(self) -> QueueConfiguration | None:
        """Return the batch queues of the cluster; None where it has none.

        Raises:
            BadInput: their configuration is wrong.
            Refused: it may not be read.
        """
        text = stored_text(self._requests)
        return None if text is None else configuration_in(text)

    def guards(self) -> int:
        """Return how many budgets of the standing guard there are.

        Raises:
            Refused: budgets may not be listed.
        """
        query = {"labelSelector": f"{GUARD}=true", "limit": str(_ENOUGH)}
        return len(self._listed(LIST_BUDGETS, query))

    def _served(self, path: str) -> Mapping[str, Any] | None:
        answer = self._transport.call("GET", path)
        if answer.status == _NOT_FOUND:
            return None
        if answer.status >= _REFUSED or not isinstance(answer.body, Mapping):
            raise refusal(self._requests.cluster, _DISCOVERY, path, answer)
        return answer.body

    def _listed(self, call: Call, query: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        answer = self._transport.call(call.method, call.path(), query=query)
        if answer.status >= _REFUSED or not isinstance(answer.body, Mapping):
            raise refusal(self._requests.cluster, call, "", answer)
        return answer.body.get("items") or ()

    def _ask(self, call: Call) -> Right:
        resource, _, subresource = call.resource.partition("/")
        asked = {
            "verb": call.verb,
            "group": call.group,
            "version": call.version,
            "resource": resource,
            "subresource": subresource,
            "namespace": call.only_in or "",
            "name": call.only or "",
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
            about = {"user": PLAYED, "groups": [self._group, "system:authenticated"]}
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


def probe_of(clusters: OpenClusters, workers: Workers, cluster: Cluster) -> KubernetesProbe:
    """Return what asks a cluster about our rights in it.

    A token from a secret is the functions' own. To EKS whoever asks comes as himself, so the
    question is about the group that the functions are in, and what is tried is tried as one of
    the group.
    """
    asking = clusters.transport(cluster)
    if cluster.kind is not ClusterKind.EKS:
        return KubernetesProbe(asking, cluster.name, workers)
    acting = clusters.transport(cluster, as_group=GROUP)
    return KubernetesProbe(asking, cluster.name, workers, group=GROUP, acting=acting)
