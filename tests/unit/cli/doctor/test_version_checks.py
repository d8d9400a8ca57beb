"""The doctor tells of a Kubernetes that is not tested, and of APIs that it no longer serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from plimsoll.adapters.kubernetes import Response, Transport
from plimsoll_cli.doctor.version_checks import NEWEST_TESTED, OLDEST_TESTED
from plimsoll_testbed.rigs.controlplane.modules import DEFAULT, versions
from tests.support.cli_environment import MemoryEnvironment
from tests.support.doctor import findings_by_check, guarding, healthy, refused


class Serving:
    """An API server whose discovery answers some paths otherwise."""

    def __init__(self, inner: Transport, pages: Mapping[str, Response]) -> None:
        self._inner = inner
        self._pages = pages

    def call(self, method: str, path: str, **request: Any) -> Response:
        return self._pages.get(path) or self._inner.call(method, path, **request)


def serve(environment: MemoryEnvironment, **pages: Response) -> None:
    environment.transports["harbor"] = Serving(
        environment.transports["harbor"], {f"/apis/{path}": page for path, page in pages.items()}
    )


def group(*served: str) -> Response:
    return Response(status=200, body={"versions": [{"version": each} for each in served]})


def serving(*resources: str) -> Response:
    return Response(status=200, body={"resources": [{"name": each} for each in resources]})


GONE = refused("the server could not find the requested resource", 404)


def test_the_minors_that_it_calls_tested_are_those_that_the_rigs_pin():
    pinned = [tuple(map(int, minor.split("."))) for minor in versions()]
    assert (pinned[-1], pinned[0]) == (OLDEST_TESTED, NEWEST_TESTED)
    assert versions()[0] == DEFAULT


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("v1.38.0-beta.1", "Kubernetes 1.38 is newer than 1.37"),
        ("v1.37.9-eks-5ae1bd1", None),
        ("v1.34.0", None),
        ("v1.33.2+k3s1", "Kubernetes 1.33 is older than 1.34"),
        ("of no version", None),
    ],
)
def test_a_kubernetes_that_no_test_ran_on_is_worth_knowing(version, words):
    environment = healthy()
    guarding(environment).version = version
    status, found = findings_by_check(environment)
    assert (status, found["API versions"]["state"]) == (0, "ok")
    assert ("Kubernetes" in found) == (words is not None)
    if words is not None:
        assert found["Kubernetes"]["state"] == "info"
        assert found["Kubernetes"]["says"].startswith(words)


@pytest.mark.parametrize(
    ("pages", "says"),
    [
        (
            {
                "policy/v1": GONE,
                "policy": group("v2", "v3alpha1"),
                "policy/v2": serving("poddisruptionbudgets"),
            },
            "poddisruptionbudgets: Plimsoll knows policy/v1, and the cluster serves only v2",
        ),
        (
            {"policy/v1": GONE, "policy": GONE},
            "poddisruptionbudgets: Plimsoll needs policy/v1, which the cluster does not serve",
        ),
        (
            {"policy/v1": serving("evictions"), "policy": group("v1")},
            "poddisruptionbudgets: Plimsoll needs policy/v1, which the cluster does not serve",
        ),
        (
            {
                "scheduling.k8s.io/v1beta1": GONE,
                "scheduling.k8s.io": group("v2", "v1"),
                "scheduling.k8s.io/v2": serving("podgroups", "workloads"),
                "scheduling.k8s.io/v1": serving("priorityclasses"),
            },
            "podgroups: Plimsoll knows scheduling.k8s.io/v1beta1, and the cluster serves only v2",
        ),
    ],
    ids=[
        "a newer version",
        "no version",
        "without the kind",
        "an optional kind in a newer version",
    ],
)
def test_an_api_that_is_not_served_as_plimsoll_knows_it_fails(pages, says):
    environment = healthy()
    serve(environment, **pages)
    status, found = findings_by_check(environment)
    assert (status, found["API versions"]["state"]) == (1, "fail")
    assert found["API versions"]["says"] == says


@pytest.mark.parametrize(
    "pages",
    [
        {"argoproj.io/v1alpha1": GONE, "argoproj.io": GONE},
        {
            "scheduling.k8s.io/v1beta1": GONE,
            "scheduling.k8s.io": group("v1"),
            "scheduling.k8s.io/v1": serving("priorityclasses"),
        },
    ],
    ids=["of a program that is not installed", "that is not turned on"],
)
def test_an_optional_api_is_not_missed(pages):
    environment = healthy()
    serve(environment, **pages)
    assert findings_by_check(environment)[1]["API versions"]["state"] == "ok"


def test_who_may_not_ask_what_is_served_skips_the_check():
    environment = healthy()
    serve(environment, **{"policy/v1": refused("forbidden")})
    assert findings_by_check(environment)[1]["API versions"]["state"] == "skipped"
