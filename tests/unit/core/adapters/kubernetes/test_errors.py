"""What an API server's refusals mean, and what the client makes of broken connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from urllib3.exceptions import (
    MaxRetryError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from plimsoll.adapters.kubernetes import Response, calls
from plimsoll.adapters.kubernetes.client import ClientTransport
from plimsoll.adapters.kubernetes.errors import refusal
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


def answer(
    code: int,
    message: str = "…",
    *,
    causes: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
    **details: Any,
) -> Response:
    body = {"kind": "Status", "message": message, "details": {**details, "causes": causes or []}}
    return Response(status=code, body=body, headers=headers or {})


def meaning(given: Response, call: calls.Call = calls.EVICT) -> PlimsollError:
    return refusal("shop", call, "web/web-1", given)


BUDGET = [
    {"reason": "DisruptionBudget", "message": "The disruption budget web needs 2 healthy pods"}
]


DENIED = 'admission webhook "pods.example.com" denied the request: not now'
FAILED = 'Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: Post'


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (answer(403, DENIED), Refused),
        (answer(429, DENIED, retryAfterSeconds=60), Blocked),
        (answer(500, FAILED), Blocked),
    ],
)
def test_a_webhook_that_holds_an_eviction_up_is_obeyed_as_a_budget_is_and_holds_up_nothing_else(
    given, kind
):
    error = meaning(given)
    assert type(error) is kind
    assert getattr(error, "retry_after", None) is None
    assert "pods.example.com" in str(error)


def test_a_cordon_is_tried_again_where_a_webhook_fails():
    assert type(meaning(answer(500, FAILED), calls.PATCH_NODE)) is Temporary


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (answer(400), BadInput),
        (answer(401), Temporary),
        (answer(403), MissingRights),
        (answer(404), NotFound),
        (answer(405), BadInput),
        (answer(408), Temporary),
        (answer(409), Conflict),
        (answer(410), Temporary),
        (answer(415), BadInput),
        (answer(418), Refused),
        (answer(422), Refused),
        (answer(422, causes=[{"field": "metadata.uid"}]), NotFound),
        (answer(429), Throttled),
        (answer(429, causes=BUDGET), Blocked),
        (answer(500), Temporary),
        (answer(503), Temporary),
        (answer(504), Temporary),
        (Response(status=500), Temporary),
        (Response(status=404, body="not found"), NotFound),
        (Response(status=429, body={"details": None}), Throttled),
        (Response(status=429, body={"details": {"causes": "odd"}}), Throttled),
        (Response(status=429, body=["odd"]), Throttled),
    ],
)
def test_each_refusal_is_named_for_what_comes_next(given: Response, kind: type) -> None:
    assert type(meaning(given)) is kind


def test_two_budgets_on_one_pod_are_refused_and_named() -> None:
    said = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    error = meaning(answer(500, said))
    assert type(error) is Refused
    assert "leave only one" in str(error)
    assert "web/web-1" in str(error)


def test_a_namespace_that_is_being_deleted_takes_its_pods_along() -> None:
    error = meaning(answer(403, causes=[{"reason": "NamespaceTerminating"}]))
    assert type(error) is NotFound


def test_a_missing_right_names_verb_resource_and_cure() -> None:
    error = meaning(answer(403), calls.PATCH_POD)
    assert "patch pods" in str(error)
    assert "infra/cluster" in str(error)


@pytest.mark.parametrize("verb", ["impersonate", "impersonate-on:user-info:list"])
def test_who_may_not_come_as_one_of_a_group_is_told_who_may(verb: str) -> None:
    error = meaning(answer(403, message=f'User "bob" cannot {verb} resource "users"'))
    assert type(error) is MissingRights
    assert "only an administrator" in str(error)


def test_the_refusal_of_a_policy_is_no_missing_right() -> None:
    said = (
        "ValidatingAdmissionPolicy 'plimsoll-nodes' with binding 'x' denied request: this changes"
    )
    error = meaning(answer(403, message=said))
    assert type(error) is Refused
    assert said in str(error)
    assert "lacks the right" not in str(error)


@pytest.mark.parametrize(
    "details",
    [
        {"group": "policy", "kind": "poddisruptionbudget", "name": "web"},
        {"causes": BUDGET},  # as newer API servers add
    ],
)
@pytest.mark.parametrize(
    "why",
    [
        "pdb disruptions allowed is negative",
        "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
    ],
)
def test_an_eviction_that_the_status_of_a_budget_forbids_waits_for_the_budget(
    details: dict[str, Any], why: str
) -> None:
    said = f'poddisruptionbudget.policy "web" is forbidden: {why}'
    error = meaning(answer(403, said, **details))
    assert type(error) is Blocked
    assert why in str(error)
    assert "lacks the right" not in str(error)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ('events "a" is forbidden: exceeded quota: events, requested: count/events=1', Refused),
        ('pods "a" is forbidden: User "system:node" cannot create resource "pods"', MissingRights),
    ],
)
def test_a_full_quota_is_no_missing_right(said: str, kind: type) -> None:
    assert type(meaning(answer(403, said), calls.PATCH_POD)) is kind


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (answer(429, headers={"retry-after": "7"}), 7),
        (answer(429, retryAfterSeconds=5), 5),
        (answer(429, headers={"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}), None),
        (answer(429), None),
        (answer(503, headers={"retry-after": "1"}), 1),
    ],
)
def test_the_patience_that_is_asked_for_is_kept(given: Response, seconds: float | None) -> None:
    error = meaning(given)
    assert isinstance(error, Temporary)
    assert error.retry_after == seconds


def test_a_proxys_page_is_not_repeated_whole() -> None:
    assert len(str(meaning(Response(status=502, body="<html>" * 1000)))) < 500


def test_paths_are_those_of_the_api_and_names_are_quoted() -> None:
    assert calls.GET_NODE.path(name="a") == "/api/v1/nodes/a"
    assert calls.EVICT.path(namespace="n", name="p") == "/api/v1/namespaces/n/pods/p/eviction"
    assert calls.LIST_SCALERS.path() == "/apis/autoscaling/v2/horizontalpodautoscalers"
    assert calls.GET_NODE.path(name="../x") == "/api/v1/nodes/..%2Fx"


class Pool:
    """A connection pool, with answers given beforehand."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def request(self, method: str, url: str, **more: Any) -> Any:
        self.asked.append({"method": method, "url": url, **more})
        given = self.answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given


class RawResponse:
    def __init__(self, data: bytes, status: int = 200) -> None:
        self.status, self.data, self.headers = status, data, {"Retry-After": "3"}


class Tokens:
    def __init__(self) -> None:
        self.number = 1

    def get(self) -> str:
        return f"token-{self.number}"

    def forget(self) -> None:
        self.number += 1


def transport(*answers: Any, endpoint: str = "https://api:6443/") -> tuple[ClientTransport, Pool]:
    made, pool = ClientTransport(endpoint, token=Tokens()), Pool(*answers)
    made.__dict__["_pool"] = pool
    return made, pool


def test_a_request_carries_token_type_and_time_limits() -> None:
    made, rest = transport(RawResponse(b'{"kind": "Node"}'))
    found = made.call(
        "PATCH", "/api/v1/nodes/a", body={"x": 1}, content_type="application/merge-patch+json"
    )
    assert (found.status, found.body, found.headers) == (
        200,
        {"kind": "Node"},
        {"retry-after": "3"},
    )
    (asked,) = rest.asked
    assert asked["url"] == "https://api:6443/api/v1/nodes/a"
    assert asked["headers"] == {
        "Accept": "application/json",
        "Accept-Encoding": "gzip",
        "Authorization": "Bearer token-1",
        "Content-Type": "application/merge-patch+json",
        "User-Agent": "plimsoll",
    }
    assert (asked["timeout"].connect_timeout, asked["timeout"].read_timeout) == (2.0, 5.0)


def test_what_is_not_json_is_text() -> None:
    made, _ = transport(RawResponse(b"<html>"))
    assert made.call("GET", "/").body == "<html>"


def test_a_refused_token_is_replaced_once() -> None:
    made, rest = transport(RawResponse(b"{}", 401), RawResponse(b"{}"))
    assert made.call("GET", "/").status == 200
    assert [a["headers"]["Authorization"] for a in rest.asked] == [
        "Bearer token-1",
        "Bearer token-2",
    ]


def test_a_token_that_is_refused_twice_is_an_answer() -> None:
    made, rest = transport(RawResponse(b"{}", 401), RawResponse(b"{}", 401))
    assert made.call("GET", "/").status == 401
    assert len(rest.asked) == 2


@pytest.mark.parametrize(
    "broken",
    [
        MaxRetryError(None, "/", NewConnectionError(None, "refused")),  # type: ignore[arg-type] # no pool
        ReadTimeoutError(None, "/", "slow"),  # type: ignore[arg-type] # no pool
        ProtocolError("Connection aborted.", ConnectionResetError(104, "reset")),
    ],
)
def test_a_broken_connection_is_temporary(broken: Exception) -> None:
    made, _ = transport(broken)
    with pytest.raises(Temporary, match="https://api:6443 does not answer PATCH"):
        made.call("PATCH", "/")


@pytest.mark.parametrize(
    "broken",
    [
        MaxRetryError(None, "/", SSLError("certificate verify failed")),  # type: ignore[arg-type] # no pool
        SSLError("certificate verify failed"),
    ],
)
def test_a_certificate_of_another_ca_is_refused(broken: Exception) -> None:
    made, _ = transport(broken)
    with pytest.raises(Refused, match="cannot be trusted"):
        made.call("GET", "/")


def test_a_ca_that_is_no_certificate_is_refused() -> None:
    with pytest.raises(Permanent, match="not PEM"):
        ClientTransport("https://api:6443", ca="nonsense").call("GET", "/")
