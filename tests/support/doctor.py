"""Installations in which the doctor finds nothing wrong, and clusters that answer as a test says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.adapters.kubernetes import Response, Transport
from plimsoll.domain.errors import PlimsollError
from plimsoll.domain.registry import Cluster, ClusterKind, Mode
from plimsoll_cli.probes.aws import GroupSettings
from tests.support.builders import a_group
from tests.support.cli_environment import (
    MemoryEnvironment,
    a_cluster,
    an_environment,
    entry,
    run,
)

BY_POLICY = (
    "nodes \"a\" is forbidden: ValidatingAdmissionPolicy 'plimsoll-nodes' with binding "
    "'plimsoll-nodes' denied request: this changes the annotation x"
)
SCHEMA = {"metadata": {"uid": "7"}, "status": {"conditions": []}}
USED = {"x-kubernetes-pf-flowschema-uid": "7"}
WEBHOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
POLICIES = ("validatingadmissionpolicies", "validatingadmissionpolicybindings", "clusterroles")
NORMAL = GroupSettings(suspended=frozenset())


class Denying:
    """Says of some rights that they are not held, and may refuse to say anything."""

    def __init__(self, transport: Transport, *, verbs: set[str], open_: bool = True) -> None:
        self._transport = transport
        self._verbs = verbs
        self._open = open_
        self.asked: list[Mapping[str, Any]] = []

    def call(self, method: str, path: str, **request: Any) -> Response:
        answer = self._transport.call(method, path, **request)
        if "accessreviews" not in path:
            return answer
        self.asked.append(request["body"])
        if not self._open:
            return Response(status=403, body={"reason": "Forbidden", "message": "no"})
        verb = request["body"]["spec"]["resourceAttributes"]["verb"]
        status = {"allowed": verb not in self._verbs}
        return Response(status=201, body={**answer.body, "status": status})


@dataclass
class Guarding:
    """A cluster that holds us to our fields and gives us a queue, or does something like it."""

    inner: Transport
    version: str = "v1.36.3"
    foreign: Response | None = field(default_factory=lambda: refused(BY_POLICY))
    """To a dry run of what is not ours; None lets it pass."""
    ours: Response | None = None
    """To a dry run of what is ours."""
    queue: Response = field(default_factory=lambda: Response(status=200, body=SCHEMA, headers=USED))
    tried: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of the dry runs."""
    lists: dict[str, Sequence[Mapping[str, Any]] | None] = field(
        default_factory=lambda: dict.fromkeys((*WEBHOOKS, *POLICIES), ())
    )
    """Plural -> the objects that there are; None where they may not be read."""

    def call(self, method: str, path: str, **request: Any) -> Response:
        instead: Response | None = None
        if path == "/version":
            instead = Response(status=200, body={"gitVersion": self.version})
        elif "/flowschemas/" in path:
            instead = self.queue
        elif (request.get("query") or {}).get("dryRun") == "All":
            self.tried.append((method, path))
            instead = self.ours if "plimsoll.dev/" in json.dumps(request["body"]) else self.foreign
        elif (plural := path.rpartition("/")[2]) in self.lists:
            items = self.lists[plural]
            body = {"items": items, "metadata": {"resourceVersion": "1"}}
            instead = refused("forbidden") if items is None else Response(status=200, body=body)
        if instead is not None:
            return instead
        return self.inner.call(method, path, **request)


class Failing:
    """An API server that is not reached, or does not let in, for a reason."""

    def __init__(self, reason: PlimsollError | None = None) -> None:
        self._reason = reason

    def call(self, method: str, path: str, **_: Any) -> Response:
        if self._reason is not None:
            raise self._reason
        return Response(status=401, body={"message": "Unauthorized"})


def refused(message: str, status: int = 403) -> Response:
    return Response(status=status, body={"kind": "Status", "message": message})


def guarding(environment: MemoryEnvironment) -> Guarding:
    found = environment.transports["harbor"]
    assert isinstance(found, Guarding)
    return found


def healthy(mode: Mode = Mode.ACT) -> MemoryEnvironment:
    """Return an environment where nothing is wrong."""
    environment, _ = an_environment(mode=mode)
    environment.transports["harbor"] = Guarding(environment.transports["harbor"])
    base = next(n for n in environment.open(a_cluster()).nodes() if n.name == "base-1")
    environment.index.put([entry(base.instance or "", "base-1")])
    environment.groups = [a_group("base")]
    environment.group_settings = {"base": NORMAL}
    return environment


def findings_by_check(
    environment: MemoryEnvironment, *args: str
) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit status and the findings by their checks."""
    result = run(environment, "doctor", "--cluster", "harbor", "--output", "json", *args)
    found = json.loads(result.stdout)["findings"]
    return result.exit_code, {finding["check"]: finding for finding in found}


def deny(environment: MemoryEnvironment, *verbs: str, open_: bool = True) -> Denying:
    denying = Denying(environment.transports["harbor"], verbs=set(verbs), open_=open_)
    environment.transports["harbor"] = denying
    return denying


def by_endpoint(environment: MemoryEnvironment) -> None:
    """Register the cluster by its endpoint instead."""
    environment.registry.update(
        Cluster(
            name="harbor",
            kind=ClusterKind.ENDPOINT,
            mode=Mode.ACT,
            region="us-east-1",
            endpoint="https://10.0.0.1",
            secret="plimsoll/harbor",
            added=environment.clock.now(),
        )
    )


def changed(environment: MemoryEnvironment, path: str, body: Mapping[str, Any]) -> None:
    """Change an object of the cluster by a merge patch."""
    answer = environment.transports["harbor"].call(
        "PATCH", path, body=body, content_type="application/merge-patch+json"
    )
    assert answer.status == 200


def a_program(
    environment: MemoryEnvironment,
    *,
    labels: Mapping[str, str] | None = None,
    image: str = "x",
    env: Sequence[Mapping[str, str]] = (),
) -> None:
    """Let a program run in kube-system: a Deployment; with labels a pod alone."""
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": image, "env": [*env]}]}
    metadata: dict[str, Any] = {"name": "x", "namespace": "kube-system"}
    if labels is not None:
        path, metadata["labels"] = "/api/v1/namespaces/kube-system/pods", labels
    else:
        path = "/apis/apps/v1/namespaces/kube-system/deployments"
        template = {"metadata": {"labels": {"app": "x"}}, "spec": spec}
        spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    answer = environment.transports["harbor"].call(
        "POST", path, body={"metadata": metadata, "spec": spec}
    )
    assert answer.status == 201
