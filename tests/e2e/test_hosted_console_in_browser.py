"""The hosted console in a real browser: every screen in every form, by somebody who signed in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from plimsoll.domain.reports import Report
from plimsoll_service.domain.access import Grant, PersonRole, Role
from plimsoll_service.services.savings import tell_what_was_saved
from tests.support.bills import LARGE, Months, keep_months
from tests.support.browsers import NARROWEST, launched, looked
from tests.support.enrolled import Key, admitted, invitation
from tests.support.hosted_consoles import NOW, HostedConsole, a_recommendation, screens, served
from tests.unit.core.frames.test_storm_messages import a_frame

FORMS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "narrow": {"color_scheme": "light", "viewport": {"width": NARROWEST, "height": 800}},
}
DECISION = "c/shop/decisions/r-1"
SCREENS = (
    *sorted(screens()),
    "decisions?state=all",
    "c/shop/decisions?state=all",
    "c/vault/savings",
    "c/vault/storm",
    "sign-in",
    "nowhere",
)
STATUS = re.compile("status of 40[14]")
pytestmark = pytest.mark.skipif(looked.returncode != 0, reason=looked.stderr.strip())


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> HostedConsole:
    """A tenant with a storm, decisions, and two people who are signed in."""
    made = HostedConsole()
    made.install(monkeypatch)
    agent = made.enrol("acme", "shop")
    vault = made.enrol("acme", "vault")
    months = Months(days=59)
    months.since(31, on_demand={"m5.large": 3})
    months.carry_out("consolidate-node", 30, LARGE, monthly=100.0)
    keep_months(made.tenants.of("acme"), vault, months)
    tell_what_was_saved(made.tenants.of("acme"), vault, NOW)
    made.see("acme", agent, interrupted=4)
    for role, name in ((Role.PERSON, "root"), (Role.AGENT, "shop")):
        admitted(made.members, Key(), invitation("acme", name=name, role=role, now=NOW))
    made.register("harbor", agent)
    long = "a-very-long-name-of-a-workload-" * 4
    made.advise(
        "acme",
        agent,
        a_recommendation(),
        a_recommendation("r-2", "web", kind="right-size", patch=f"cpu: 250m # {long}"),
        a_recommendation("r-3", "c", state="done", accepted_by="ann", measured=60.0),
    )
    storm = replace(a_frame(of=15, safe=3, starting=12), storm=NOW, at=NOW, latest=NOW)
    made.frames.take(replace(storm, next_by=NOW + timedelta(seconds=10)))
    made.reports.merge(
        Report(interruption="i-1@x", cluster="harbor", node=long, kind="spot", noticed=NOW)
    )
    made.sessions.make_token(
        "acme",
        "ci",
        Grant(role=PersonRole.VIEWER),
        made_by="ada",
        life=timedelta(days=9),
        now=NOW,
    )
    made.issuer.name, made.issuer.groups = "ada", ("acme-admins",)
    return made


@pytest.fixture
def url(hosted: HostedConsole) -> Iterator[str]:
    with served(hosted) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as chromium:
        yield chromium


@contextmanager
def looked_at(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """Open the console, and see that nothing is asked of others, and nothing complained of."""
    complaints: list[str] = []
    elsewhere: list[str] = []
    origin = url.removesuffix("/live/console")
    with browser.new_context(**options) as context:
        # What is not there, and what nobody is signed in for, is meant to be refused.
        context.on(
            "console",
            lambda said: None if STATUS.search(said.text) else complaints.append(said.text),
        )
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        context.on(
            "request",
            lambda asked: None if asked.url.startswith(origin) else elsewhere.append(asked.url),
        )
        yield context.new_page()
        assert elsewhere == []
        assert complaints == []  # an error in a script, or something that the policy refused


def signed_in(page: Page, url: str, path: str = "") -> None:
    """Ask for a page, and sign in on the way to it."""
    page.goto(f"{url}/{path}")
    page.get_by_role("link", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    assert page.url == f"{url}/{path}"


def violations(page: Page) -> list[tuple[str, str]]:
    found = Axe().run(page).response["violations"]
    return [(each["id"], node["html"][:200]) for each in found for node in each["nodes"]]


@pytest.mark.parametrize("form", ["dark", "narrow", pytest.param("light", marks=pytest.mark.long)])
def test_every_screen_is_accessible_and_fits(browser: Browser, url: str, form: str):
    with looked_at(browser, url, **FORMS[form]) as page:
        signed_in(page, url, "c/shop")
        for path in SCREENS:
            page.goto(f"{url}/{path}")
            assert violations(page) == [], path
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= FORMS[form]["viewport"]["width"], path


@pytest.mark.parametrize("how", [{}, {"java_script_enabled": False}], ids=["usual", "no script"])
def test_a_recommendation_is_accepted_dismissed_and_cancelled(
    hosted: HostedConsole, browser: Browser, url: str, how: dict[str, Any]
):
    with looked_at(browser, url, **how) as page:
        signed_in(page, url, DECISION)
        page.get_by_role("button", name="Accept version 7").click()
        expect(page.get_by_text("accepted by ada").first).to_be_visible()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_label("Reason").fill("a freeze")
        page.get_by_label("Until").fill("2026-12-24")
        page.get_by_role("button", name="Dismiss").click()
        expect(page.get_by_text("dismissed by ada").first).to_be_visible()
        page.goto(f"{url}/audit")
        shown = page.locator("tbody tr").all_inner_texts()
        assert {row.split()[6] for row in shown} == {"dismiss", "cancel", "accept"}
    assert len([*hosted.tenants.of("acme").audit.list()]) == 3


def test_whoever_signs_out_is_asked_to_sign_in_again(browser: Browser, url: str):
    with looked_at(browser, url) as page:
        signed_in(page, url)
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("link", name="Sign in")).to_be_visible()
        page.goto(f"{url}/c/shop")
        expect(page.get_by_role("link", name="Sign in")).to_be_visible()


def test_a_storm_stays_and_says_that_the_session_ended(
    hosted: HostedConsole, browser: Browser, url: str
):
    with looked_at(browser, url) as page:
        signed_in(page, url, "c/shop/storm")
        expect(page.get_by_text("Your session has ended.")).to_be_hidden()
        hosted.people.unbind("acme", "acme-admins")
        expect(page.get_by_text("Your session has ended.")).to_be_visible(timeout=15_000)
        expect(page.locator("h1")).to_contain_text("3 of 15 pods are safe")
        page.get_by_role("link", name="Sign in again").click()
        expect(page.get_by_role("link", name="Sign in")).to_be_visible()
