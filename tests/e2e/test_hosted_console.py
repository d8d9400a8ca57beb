"""The hosted console on the emulated stack, by people whom a real issuer names.

Rights are real here: the console's role reaches what its template says, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, Page, expect

from plimsoll.adapters.dynamodb.frames import DynamoFrames
from plimsoll.adapters.dynamodb.registry import DynamoRegistry
from plimsoll.adapters.dynamodb.reports import DynamoReports
from plimsoll.domain.registry import Cluster, ClusterKind
from plimsoll.domain.reports import Report
from plimsoll_console.hosted.cookies import SESSION
from plimsoll_service.domain.access import Binding, Grant, PersonRole, Role, subject_of
from plimsoll_service.domain.snapshots import Span
from plimsoll_service.services.kept_advice import RECOMMENDATIONS
from plimsoll_service.wire.advice import Recommendations
from plimsoll_service.wire.documents import encode
from plimsoll_testbed.rigs.emulated.emulator import REGION
from plimsoll_testbed.rigs.emulated.service import ServiceRig
from tests.package.template import requests_for_tables
from tests.support.browsers import launched, looked
from tests.support.hosted_consoles import a_recommendation, screens
from tests.support.oidc import CLIENT, Issuer, an_issuer
from tests.unit.core.frames.test_storm_messages import a_frame

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.cluster,
    pytest.mark.skipif(looked.returncode != 0, reason=looked.stderr.strip()),
]
DECISION = "c/shop/decisions/r-1"
TABLES = ("ClustersTable", "FramesTable", "ReportsTable")
PATIENCE_MILLISECONDS = 120_000
"""A page and what it loads start several functions, each a process of the emulator: on a busy machine for half a minute."""
PEOPLE = {"ann": ["acme-operators"], "ada": ["acme-admins"], "eve": ["globex-admins"]}


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return an_issuer(people=PEOPLE)


@pytest.fixture(scope="module")
def rig(issuer: Issuer) -> Iterator[ServiceRig]:
    """The service with a console, and the tables of an interruption stack beside it."""
    said = {
        "OidcIssuer": issuer.url,
        "OidcClientId": CLIENT,
        "OidcScopes": issuer.client.scopes,
        "InterruptionTables": ",".join(TABLES),
    }
    with ServiceRig(parameters=said) as rig:
        issuer.redirect_uris = (f"{rig.console_url}/sign-in/callback",)
        with issuer.running():
            filled(rig)
            yield rig


def filled(rig: ServiceRig) -> None:
    """Enrol a cluster of each tenant, of the same name; the stack tells of acme's."""
    now = datetime.now(UTC)
    for group, tenant, role in (
        ("acme-operators", "acme", PersonRole.OPERATOR),
        ("acme-admins", "acme", PersonRole.ADMIN),
        ("globex-admins", "globex", PersonRole.ADMIN),
    ):
        rig.people.bind(Binding(tenant=tenant, group=group, grant=Grant(role=role)))
    agent, _ = rig.enrolled("acme", "shop", Role.AGENT)
    rig.enrolled("globex", "quay", Role.AGENT)
    kept = Recommendations(recommendations=(a_recommendation(name="node-of-acme"),))
    expires = now + Span.DAY.kept
    rig.data("acme").put(agent, RECOMMENDATIONS, encode(kept), version=0, expires=expires)
    database = rig.emulator.client("dynamodb")
    for name in TABLES:
        database.create_table(TableName=name, **requests_for_tables()[name])
    harbor = Cluster(
        name="harbor", kind=ClusterKind.EKS, region=REGION, added=now, agent=agent, secret="x"
    )
    DynamoRegistry(rig.aws, TABLES[0]).add(harbor)
    storm = replace(a_frame(of=15, safe=3), storm=now, at=now, latest=now)
    DynamoFrames(rig.aws, TABLES[1]).put(replace(storm, next_by=now + timedelta(hours=1)))
    report = Report(interruption="i-1@x", cluster="harbor", node="n-1", kind="spot", noticed=now)
    DynamoReports(rig.aws, TABLES[2]).merge(report)


@pytest.fixture(scope="module")
def browser(rig: ServiceRig) -> Iterator[Browser]:
    """A browser. The rig comes first, because Playwright leaves an asyncio loop running."""
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with launched() as chromium:
        yield chromium
    expect.set_options(timeout=5_000)  # Playwright's own


@contextmanager
def opened(browser: Browser, rig: ServiceRig, **options: Any) -> Iterator[Page]:
    """Open a page in a browser of its own, and see that our pages complain of nothing."""
    complaints: list[str] = []

    def complained(page: str, text: str) -> None:
        if page.startswith(rig.console_url) and "status of 404" not in text:
            complaints.append(f"{page}: {text}")

    with browser.new_context(**options) as context:
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        context.on("console", lambda said: complained(said.location["url"], said.text))
        page = context.new_page()
        yield page
        assert complaints == []


def sign_in(page: Page, rig: ServiceRig, name: str, path: str) -> None:
    """Ask for a page, and sign in on the way to it: at the issuer, which asks for name and consent."""
    page.goto(f"{rig.console_url}/{path}")
    page.get_by_role("link", name="Sign in").click()
    page.locator("input[name=login]").fill(name)
    page.locator("input[name=password]").fill("any")
    page.locator("button[type=submit]").click()
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    assert page.url == f"{rig.console_url}/{path}"


def test_a_recommendation_is_accepted_and_the_audit_row_names_person_and_version(
    rig: ServiceRig, browser: Browser
):
    with opened(browser, rig) as page:
        sign_in(page, rig, "ann", DECISION)
        page.get_by_role("button", name="Accept version 7").click()
        expect(page.get_by_text("accepted by ann").first).to_be_visible()
    [(_, row)] = rig.data("acme").audit.list()
    assert (row.who, row.role, row.action) == ("ann", "operator", "accept")
    assert (row.version, row.outcome) == (7, "done")


def test_a_revoked_session_is_out_at_its_next_request(rig: ServiceRig, browser: Browser):
    with opened(browser, rig) as ann, opened(browser, rig) as ada:
        sign_in(ann, rig, "ann", "c/shop")
        sign_in(ada, rig, "ada", "people")
        while ada.get_by_role("button", name="End the session of ann").count():
            ada.get_by_role("button", name="End the session of ann").first.click()
        ann.reload()
        expect(ann.get_by_role("link", name="Sign in")).to_be_visible()
        ada.goto(f"{rig.console_url}/audit")
        expect(ada.get_by_role("cell", name="revoke").first).to_be_visible()


def test_storm_and_reports_of_a_bound_cluster_are_read_by_roles_that_read_nothing_else(
    rig: ServiceRig, browser: Browser
):
    with opened(browser, rig) as page:
        sign_in(page, rig, "ann", "c/harbor/storm")
        expect(page.locator("h1")).to_contain_text("3 of 15 pods are safe")
        page.goto(f"{rig.console_url}/c/shop/interruptions")
        expect(page.get_by_text("n-1")).to_be_visible()
        (bearer,) = (
            c["value"] for c in page.context.cookies(rig.console_url) if c["name"] == SESSION
        )
    agent = subject_of("acme", Role.AGENT, "shop")
    answer = requests.get(
        f"{rig.url}/v1/clusters/{agent}/reports",
        headers={"Authorization": f"Bearer {bearer}"},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    (row,) = answer.json()["items"]
    assert (row["node"], row["outcome"]) == ("n-1", "under way")


def test_two_tenants_see_nothing_of_each_other_on_any_screen(rig: ServiceRig, browser: Browser):
    with opened(browser, rig) as page:
        sign_in(page, rig, "eve", "")
        assert "quay" in page.content()
        for path in (*screens(), "c/harbor/storm"):
            answer = page.goto(f"{rig.console_url}/{path}")
            assert answer is not None
            assert answer.status == (404 if path.startswith("c/") else 200), path
            for secret in ("node-of-acme", "ann", "ada", "acme"):
                assert secret not in page.locator("main").inner_text(), path


def test_an_unknown_path_is_a_page_behind_the_gateway_too(rig: ServiceRig, browser: Browser):
    with opened(browser, rig) as page:
        answer = page.goto(f"{rig.console_url}/no/such/page")
        assert answer is not None
        assert answer.status == 404
        expect(page.locator("h1")).to_have_text("There is no such page.")
        page.goto(rig.console_url)
        assert page.url.startswith(f"{rig.console_url}/sign-in")
