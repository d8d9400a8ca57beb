"""Who may use which queue on a real API server with `infra/cluster/batch-access`: every refusal is tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response
from plimsoll.adapters.kubernetes.requests import MERGE_PATCH
from plimsoll_batch.domain.frameworks import FRAMEWORKS
from plimsoll_testbed.rigs.cluster import installation
from plimsoll_testbed.rigs.controlplane import ControlPlane
from tests.cluster.installed import BINDINGS, message_of, until
from tests.cluster.test_framework_policies import a_crd
from tests.contract.rights import CLUSTER
from tests.support.fake_clusters import Json
from tests.support.queue_scenes import a_bare_pod, a_job

pytestmark = pytest.mark.cluster

NAMESPACES = "/api/v1/namespaces"
JOBS = f"{NAMESPACES.replace('/api/v1', '/apis/batch/v1')}/team/jobs"
PODS = f"{NAMESPACES}/team/pods"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ADMIN, TENANT, OPS, GRANTER = "admin", "tenant", "ops", "granter"
OPERATOR, CONTROLLER = "operator", "controller"
KINDS = {row.resource: row for row in FRAMEWORKS}
GRANT = "queues.plimsoll.dev/lab"
TENANT_RULES = [
    {"apiGroups": ["batch"], "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": sorted({row.group for row in FRAMEWORKS}), "resources": ["*"], "verbs": ["*"]},
    {"apiGroups": [""], "resources": ["namespaces", "pods"], "verbs": ["*"]},
]
ONE_QUEUE = [
    {"apiGroups": ["plimsoll.dev"], "resources": ["queues"], "resourceNames": ["lab"], "verbs": ["grant"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]},
]  # fmt: skip


class Town:
    """A cluster of several tenants."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def post(self, path: str, body: Json, user: str = TENANT, *, dry: bool = True) -> Response:
        query = {"dryRun": "All"} if dry else {}
        api = self._plane.transport(user)
        return api.call("POST", path, query=query, body=body, content_type="application/json")

    def patch(self, path: str, body: Json, user: str = TENANT, *, dry: bool = True) -> Response:
        query = {"dryRun": "All"} if dry else {}
        api = self._plane.transport(user)
        return api.call("PATCH", path, query=query, body=body, content_type=MERGE_PATCH)

    def delete(self, path: str) -> Response:
        return self._plane.transport().call("DELETE", path, query={"gracePeriodSeconds": "0"})

    def label(self, user: str, labels: Mapping[str, str | None], *, dry: bool = True) -> Response:
        body = {"metadata": {"labels": {LABELS[name]: text for name, text in labels.items()}}}
        return self.patch(f"{NAMESPACES}/team", body, user, dry=dry)

    def apply(self, path: str, body: Json) -> None:
        answer = self.post(path, body, ADMIN, dry=False)
        assert answer.status == 201, answer.body

    def get(self, path: str) -> Json:
        found: Json = self._plane.transport().call("GET", path).body
        return found


LABELS = {
    "lab": GRANT,
    "other": "queues.plimsoll.dev/other",
    "queues": "plimsoll.dev/queues",
    "required": "plimsoll.dev/queue-required",
    "default": "plimsoll.dev/default-queue",
}


def bound(town: Town, role: str, rules: Any, *users: str) -> None:
    if rules is not None:
        town.apply(ROLES, {"metadata": {"name": role}, "rules": rules})
    group = "rbac.authorization.k8s.io"
    subjects = [{"apiGroup": group, "kind": "User", "name": user} for user in users]
    ref = {"apiGroup": group, "kind": "ClusterRole", "name": role}
    town.apply(BINDINGS, {"metadata": {"name": role}, "roleRef": ref, "subjects": subjects})


def in_team(job: Json, **labels: str | None) -> Json:
    job["metadata"]["namespace"] = "team"
    named = job["metadata"]["labels"] | {k.replace("__", "/"): v for k, v in labels.items()}
    job["metadata"]["labels"] = {k: v for k, v in named.items() if v is not None}
    return job


def without_queue(job: Json) -> Json:
    del job["metadata"]["labels"]["plimsoll.dev/queue"]
    return in_team(job)


@contextmanager
def a_town(**more: Any) -> Iterator[Town]:
    users: dict[str, tuple[str, ...]] = dict.fromkeys((TENANT, OPS, GRANTER, OPERATOR), ())
    users[CONTROLLER] = ("system:serviceaccounts:kube-system",)
    with ControlPlane(users=users, **more) as plane:
        town = Town(plane)
        for folder in (CLUSTER, CLUSTER / "batch", CLUSTER / "batch-access"):
            installation.install(plane.transport(), folder)
        for row in FRAMEWORKS:
            town.apply(CRDS, a_crd(row.kind))
        marks = {"plimsoll.dev/queues": "true"}
        town.apply(NAMESPACES, {"metadata": {"name": "team", "labels": marks}})
        town.apply(NAMESPACES, {"metadata": {"name": "plain"}})
        bound(town, "tenants", TENANT_RULES, TENANT, OPERATOR, CONTROLLER)
        bound(town, "grants-lab", ONE_QUEUE, OPS)
        bound(
            town,
            "edits",
            [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]}],
            GRANTER,
        )
        bound(town, "plimsoll-queues-granter", None, GRANTER)
        bound(town, "plimsoll-queues-controller", None, OPERATOR)
        until(lambda: "may not use" in message_of(town.post(JOBS, in_team(a_job("probe")))))
        until(lambda: town.label(TENANT, {"lab": "true"}).status == 403)
        until(lambda: all(town.post(path_of(p), framework(p)).status != 404 for p in KINDS))
        yield town


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    with a_town() as town:
        yield town


def path_of(plural: str) -> str:
    return f"/apis/{KINDS[plural].api_version}/namespaces/team/{plural}"


def framework(plural: str, queue: str | None = "lab") -> Json:
    row = KINDS[plural]
    labels = {} if queue is None else {"plimsoll.dev/queue": queue}
    meta = {"name": "one", "namespace": "team", "labels": labels}
    return {"apiVersion": row.api_version, "kind": row.kind, "metadata": meta, "spec": {}}


@pytest.fixture
def granted(town: Town) -> Iterator[None]:
    assert town.label(OPS, {"lab": "true"}, dry=False).status == 200
    until(lambda: town.post(JOBS, in_team(a_job("probe"))).status == 201)
    yield
    town.label(ADMIN, {"lab": None}, dry=False)
    until(lambda: town.post(JOBS, in_team(a_job("probe"))).status == 403)


def test_without_a_grant_no_kind_of_object_names_a_queue(town: Town):
    for path, body in (
        (JOBS, in_team(a_job("one"))),
        (PODS, in_team(a_bare_pod("one"))),
        *((path_of(plural), framework(plural)) for plural in KINDS),
    ):
        answer = town.post(path, body)
        assert answer.status == 403, (path, answer.body)
        assert "namespace team may not use queue lab" in message_of(answer)


def test_it_holds_in_namespaces_without_the_label_of_the_rules_too(town: Town):
    job = a_job("one")
    job["metadata"]["namespace"] = "plain"
    answer = town.post(JOBS.replace("/team/", "/plain/"), job)
    assert "namespace plain may not use queue lab" in message_of(answer)


def test_with_a_grant_they_do_and_of_no_other_queue(town: Town, granted: None):
    assert town.post(JOBS, in_team(a_job("one"))).status == 201
    assert town.post(path_of("trainjobs"), framework("trainjobs")).status == 201
    other = town.post(JOBS, in_team(a_job("one", queue="other")))
    assert "may not use queue other" in message_of(other)


def test_nothing_gets_into_a_queue_later(town: Town):
    named = {"metadata": {"labels": {"plimsoll.dev/queue": "lab"}}}
    for path, body in (
        (JOBS, without_queue(a_job("one"))),
        (PODS, without_queue(a_bare_pod("one"))),
        *((path_of(plural), framework(plural, None)) for plural in KINDS),
    ):
        town.apply(path, body)
        assert "may not use queue lab" in message_of(town.patch(f"{path}/one", named)), path
        assert town.delete(f"{path}/one").status == 200, path


def test_a_withdrawn_grant_refuses_no_update_of_what_is_there(town: Town, granted: None):
    assert town.post(JOBS, in_team(a_job("there")), dry=False).status == 201
    town.label(OPS, {"lab": None}, dry=False)
    until(lambda: town.post(JOBS, in_team(a_job("probe"))).status == 403)
    changed = {"spec": {"activeDeadlineSeconds": 600}}
    assert town.patch(f"{JOBS}/there", changed).status == 200
    moved = {"metadata": {"labels": {"plimsoll.dev/queue": "other"}}}
    assert town.patch(f"{JOBS}/there", moved).status == 403


def test_controllers_of_the_cluster_make_pods_and_no_jobs_of_a_queue_that_is_not_granted(
    town: Town,
):
    assert town.post(PODS, in_team(a_bare_pod("one")), CONTROLLER).status == 201
    of_a_cron_job = town.post(JOBS, in_team(a_job("tick")), CONTROLLER)
    assert "may not use queue lab" in message_of(of_a_cron_job)


@pytest.mark.long
def test_a_cron_job_without_a_grant_starts_nothing_and_an_event_on_it_says_why():
    accounts = ("--use-service-account-credentials",)
    with a_town(flags={"kube-controller-manager": accounts}) as town:
        job = in_team(a_job("tick"))
        template = {"metadata": {"labels": job["metadata"]["labels"]}, "spec": job["spec"]}
        spec = {"schedule": "* * * * *", "jobTemplate": template}
        cron_jobs = JOBS.replace("/jobs", "/cronjobs")
        town.apply(cron_jobs, {"metadata": {"name": "tick"}, "spec": spec})

        def said() -> list[str]:
            found = town.get(f"{NAMESPACES}/team/events")["items"]
            return [e["message"] for e in found if e["involvedObject"]["kind"] == "CronJob"]

        until(lambda: any("may not use queue lab" in words for words in said()), seconds=90)
        assert town.get(JOBS)["items"] == []


@pytest.mark.parametrize(
    ("user", "labels", "status"),
    [
        (TENANT, {"lab": "true"}, 403),
        (TENANT, {"lab": "false"}, 403),
        (TENANT, {"queues": None}, 403),
        (TENANT, {"queues": "false"}, 403),
        (TENANT, {"required": "true"}, 403),
        (TENANT, {"default": "lab"}, 403),
        (OPS, {"lab": "true"}, 200),
        (OPS, {"other": "true"}, 403),
        (OPS, {"lab": "true", "other": "true"}, 403),
        (OPS, {"queues": None}, 403),
        (GRANTER, {"lab": "true", "other": "true", "queues": None, "default": "lab"}, 200),
    ],
)
def test_who_may_patch_a_namespace_grants_nothing_and_takes_no_rule_off(
    town: Town, user: str, labels: dict[str, str | None], status: int
):
    assert town.label(user, labels).status == status


def test_a_tenant_makes_no_namespace_that_has_a_grant_already(town: Town):
    for label in LABELS.values():
        made = {"metadata": {"name": "new", "labels": {label: "true"}}}
        assert town.post(NAMESPACES, made).status == 403, label
    assert town.post(NAMESPACES, {"metadata": {"name": "new", "labels": {"a": "b"}}}).status == 201


def test_who_changes_other_labels_of_a_granted_namespace_may(town: Town, granted: None):
    body = {"metadata": {"labels": {"theirs": "1"}, "annotations": {"theirs": "1"}}}
    assert town.patch(f"{NAMESPACES}/team", body).status == 200


def test_operators_and_administrators_are_let_through(town: Town):
    assert town.post(JOBS, in_team(a_job("one")), OPERATOR).status == 201
    assert town.post(JOBS, in_team(a_job("one")), ADMIN).status == 201


def test_where_a_queue_is_required_what_names_none_is_refused(town: Town, granted: None):
    town.label(GRANTER, {"required": "true"}, dry=False)
    until(lambda: town.post(JOBS, without_queue(a_job("probe"))).status == 403)
    for path, body in (
        (JOBS, without_queue(a_job("one"))),
        (PODS, without_queue(a_bare_pod("one"))),
        *((path_of(plural), framework(plural, None)) for plural in KINDS),
    ):
        answer = town.post(path, body)
        assert "namespace team requires a queue" in message_of(answer), path
    assert town.post(JOBS, in_team(a_job("one"))).status == 201
    assert town.post(JOBS, without_queue(a_job("one")), OPERATOR).status == 201
    town.label(GRANTER, {"required": None}, dry=False)
    until(lambda: town.post(JOBS, without_queue(a_job("probe"))).status == 201)


def test_a_job_without_a_queue_gets_that_of_its_namespace_and_is_suspended(
    town: Town, granted: None
):
    town.label(GRANTER, {"default": "lab"}, dry=False)
    plain = without_queue(a_job("one", suspend=False))

    def queued() -> Any:
        return town.post(JOBS, plain).body["metadata"].get("labels", {}).get("plimsoll.dev/queue")

    until(lambda: queued() == "lab")
    made = town.post(JOBS, plain).body
    assert made["spec"]["suspend"] is True
    assert town.post(JOBS, in_team(a_job("one", queue="other"))).status == 403
    town.label(GRANTER, {"default": None}, dry=False)
    until(lambda: queued() is None)
