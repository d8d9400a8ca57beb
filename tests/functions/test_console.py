"""The hosted console: who sees what, what is decided, and what nobody can forge."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape
from urllib.parse import quote

import pytest

from functions import console
from plimsoll.domain.errors import NotFound, Temporary
from plimsoll.domain.frames import Frame
from plimsoll.domain.reports import Report
from plimsoll_console.hosted.cookies import SESSION, way_back
from plimsoll_service import bootstrap
from plimsoll_service.domain.access import SESSION_IDLE, Grant, PersonRole, Role, subject_of
from plimsoll_service.services.savings import tell_what_was_saved
from plimsoll_service.wire.audit import AuditEntry
from plimsoll_simulation.fake_aws.service_stores import MemoryTenants
from tests.support.bills import LARGE, Months, keep_months
from tests.support.enrolled import Key, admitted, invitation
from tests.support.hosted_consoles import (
    NOW,
    TENANTS,
    Browser,
    HostedConsole,
    a_recommendation,
    event_of,
    screens,
)
from tests.unit.console.test_screens import HOSTILE
from tests.unit.core.frames.test_storm_messages import a_frame
from tests.unit.service.services.test_clusters import Counting

from .conftest import Context

DECISION = "c/shop/decisions/r-1"
ADMINS = ("audit", "people")
SCREENS = sorted(screens() - {*ADMINS})
"""All that are no admin's: a new route is among them."""
LISTS = ("", "decisions", "c/shop/decisions", "savings", *ADMINS)
WORKLOAD = "c/shop/w/Deployment/shop/web"


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> HostedConsole:
    """Two tenants with a cluster of the same name; only acme's is bound in the interruption stack."""
    made = HostedConsole()
    made.install(monkeypatch)
    for tenant in TENANTS:
        agent = made.enrol(tenant, "shop")
        made.see(tenant, agent, interrupted=4)
        made.advise(tenant, agent, a_recommendation(name=f"node-of-{tenant}"))
        key = invitation(tenant, name=f"key-of-{tenant}", role=Role.PERSON, now=NOW)
        admitted(made.members, Key(), key)
        if tenant == "acme":
            made.register("harbor", agent)
    made.frames.take(storm_at(0, safe=3))
    made.reports.merge(
        Report(interruption="i-1@x", cluster="harbor", node="n-1", kind="spot", noticed=NOW)
    )
    return made


def storm_at(seconds: float, *, safe: int) -> Frame:
    """Return what was seen so long after the first notice; the next frame is due ten seconds later."""
    at = NOW + timedelta(seconds=seconds)
    return replace(
        a_frame(of=15, safe=safe), storm=NOW, at=at, latest=at, next_by=at + timedelta(seconds=10)
    )


@pytest.fixture
def ann(hosted: HostedConsole) -> Browser:
    browser = Browser(hosted)
    assert browser.sign_in("acme-operators").status == 303
    return browser


@pytest.fixture
def admin(hosted: HostedConsole) -> Browser:
    browser = Browser(hosted)
    browser.sign_in("acme-admins", name="ada")
    return browser


def rows_of(hosted: HostedConsole, tenant: str = "acme") -> list[AuditEntry]:
    return [row for _, row in hosted.tenants.of(tenant).audit.list()]


# --- Signing in and out ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", [path for path in (*SCREENS, *ADMINS) if path])
def test_whoever_is_not_signed_in_is_led_to_the_sign_in_and_back(hosted: HostedConsole, path: str):
    browser = Browser(hosted)
    answer = browser.get(f"{path}?from=3")
    assert (answer.status, answer.body) == (303, b"")
    sign_in = browser.below(path, answer.headers["location"])
    page = browser.get(sign_in)
    assert page.status == 200
    (begin,) = re.findall(r'class="button" href="([^"]*)"', page.text)
    way = re.search(r"to=([^&]*)", begin)
    assert way
    back = f"{quote(path)}?from=3"
    assert browser.sign_in("acme-admins", to=back).headers["location"] == f"../{back}"


def test_a_session_is_a_cookie_of_this_host_that_no_script_reads(hosted: HostedConsole):
    browser = Browser(hosted)
    browser.sign_in("acme-viewers")
    assert set(browser.cookies) == {SESSION}
    said = {"Path=/", "Secure", "HttpOnly", "SameSite=Lax", "Max-Age=28800"}
    (line,) = (each for each in browser.lines if each.startswith(f"{SESSION}=plimsoll_s_acme_"))
    assert set(line.split("; ")[1:]) == said


@pytest.mark.parametrize(
    "to", ["https://evil.example", "//evil.example", "/\\evil.example", "../../x", "a b", "x" * 600]
)
def test_the_sign_in_leads_to_no_other_place(to: str):
    assert way_back(to) == ""


def test_another_browsers_sign_in_is_not_finished(hosted: HostedConsole):
    mine, other = Browser(hosted), Browser(hosted)
    mine.get("sign-in/begin")
    answer = other.get("sign-in/callback?code=c&state=s")
    assert (answer.status, other.cookies) == (401, {})
    assert mine.get("sign-in/callback?code=c&state=forged").status == 401
    assert SESSION not in mine.cookies


def test_whose_groups_are_bound_nowhere_is_told_so(hosted: HostedConsole):
    answer = Browser(hosted).sign_in("strangers", name=HOSTILE[0])
    assert answer.status == 403
    assert HOSTILE[0] in unescape(answer.text)
    assert HOSTILE[0] not in answer.text


def test_a_person_of_two_tenants_names_one(hosted: HostedConsole):
    browser = Browser(hosted)
    answer = browser.sign_in("acme-viewers", "globex-viewers")
    assert answer.status == 403
    assert "acme, globex" in answer.words
    browser.sign_in("acme-viewers", "globex-viewers", tenant="globex")
    browser.get("")
    assert "ann, viewer of globex" in browser.get("").words


def test_a_session_that_was_ended_is_out_at_its_next_request(hosted, admin: Browser, ann: Browser):
    assert ann.get("c/shop").status == 200
    (theirs,) = [s for s in hosted.people.sessions("acme") if s.name == "ann"]
    assert admin.send("people", theirs.id).status == 303
    assert ann.get("c/shop").status == 303
    (row,) = rows_of(hosted)
    assert (row.who, row.action, row.object) == ("ada", "revoke", f"sessions/{theirs.id}")


def test_a_session_ends_when_it_is_idle_unbound_or_signed_out(hosted: HostedConsole, ann: Browser):
    hosted.time += SESSION_IDLE
    assert ann.get("c/shop").status == 303
    ann.sign_in("acme-operators")
    hosted.people.unbind("acme", "acme-operators")
    assert ann.get("c/shop").status == 303
    ann.sign_in("acme-viewers")
    secret = dict(ann.cookies)
    (form,) = re.findall(r'name="csrf" value="(\w+)"', ann.get("c/shop").text)
    assert ann.post("sign-out", {"csrf": form}).status == 303
    ann.cookies = secret
    assert ann.get("c/shop").status == 303


def test_the_token_of_a_program_opens_no_screen(hosted: HostedConsole):
    grant = Grant(role=PersonRole.VIEWER)
    bearer, _ = hosted.sessions.make_token(
        "acme", "ci", grant, made_by="ada", life=timedelta(days=1), now=NOW
    )
    browser = Browser(hosted)
    browser.cookies[SESSION] = bearer.text
    assert browser.get("c/shop").status == 303


def test_a_storm_that_is_watched_stays_when_the_session_ends(hosted: HostedConsole):
    answer = Browser(hosted).get("c/shop/storm", hx_request="true")
    assert (answer.status, answer.body) == (401, b"")


def test_without_an_issuer_the_sign_in_says_so(hosted: HostedConsole, monkeypatch):
    def none():
        raise NotFound("people come in by keys: no issuer is configured")

    monkeypatch.setattr(bootstrap, "relying_party", none)
    answer = Browser(hosted).get("sign-in")
    assert answer.status == 404
    assert "no issuer is configured" in answer.words


# --- Who sees what ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*SCREENS, *ADMINS])
def test_two_tenants_see_nothing_of_each_other(hosted: HostedConsole, path: str):
    hosted.enrol("acme", "vault")
    for tenant, other in (TENANTS, TENANTS[::-1]):
        browser = Browser(hosted)
        browser.sign_in(f"{tenant}-admins", name=f"ada-of-{tenant}")
        answer = browser.get(path)
        # The storm that acme's stack tells of has no such workload.
        assert answer.status == (404 if (tenant, path) == ("acme", WORKLOAD) else 200)
        for secret in (f"node-of-{other}", f"ada-of-{other}", f"key-of-{other}", f"{other}-"):
            assert secret not in answer.text
        assert ("vault" in answer.text) is (tenant == "acme" and path in {"", "savings"})
        for name in ("vault", "harbor"):
            status = 200 if tenant == "acme" else 404
            assert browser.get(f"c/{name}/storm").status == status


@pytest.mark.parametrize("path", ADMINS)
def test_only_admins_see_audit_and_people(ann: Browser, path: str):
    answer = ann.get(path)
    assert answer.status == 403
    assert f'href="{path}"' not in ann.get("").text
    (form,) = set(re.findall(r'name="csrf" value="(\w+)"', ann.get("").text))
    assert ann.post("people", {"csrf": form, "id": "s-1"}).status == 403


def test_a_viewer_is_shown_no_form_and_may_send_none(hosted: HostedConsole, ann: Browser):
    viewer = Browser(hosted)
    viewer.sign_in("acme-viewers", name="vic")
    page = viewer.get(DECISION).text
    assert "Accept version" in ann.get(DECISION).text
    assert "Accept version" not in page
    (form,) = re.findall(r'name="csrf" value="(\w+)"', page)
    forged = {"csrf": form, "action": "accept", "version": "7"}
    assert viewer.post(DECISION, forged).status == 403
    (row,) = rows_of(hosted)
    assert (row.who, row.outcome) == ("vic", "refused")
    assert "accepted by" not in viewer.get(DECISION).words


def test_a_grant_for_one_cluster_shows_no_other(hosted: HostedConsole):
    vault = hosted.enrol("acme", "vault")
    only = Grant(role=PersonRole.OPERATOR, clusters=frozenset({vault}))
    hosted.bind("acme", "vault-people", only)
    browser = Browser(hosted)
    browser.sign_in("vault-people")
    fleet = browser.get("").text
    assert "vault" in fleet
    assert "shop" not in fleet
    for path in ("c/shop", "c/shop/storm", DECISION):
        assert browser.get(path).status == 404
    assert browser.get("c/vault/decisions").status == 200


# --- Deciding --------------------------------------------------------------------------------------


def test_accepting_names_the_version_that_was_seen(hosted: HostedConsole, ann: Browser):
    answer = ann.send(DECISION, "accept")
    assert (answer.status, answer.headers["location"]) == (303, "../../../c/shop/decisions/r-1")
    assert "accepted by ann" in ann.get(DECISION).words
    (row,) = rows_of(hosted)
    assert (row.who, row.action, row.version, row.outcome) == ("ann", "accept", 7, "done")
    (asked,) = hosted.queue.sent
    assert asked.tenant == "acme"


def test_accepting_twice_is_once(hosted: HostedConsole, ann: Browser):
    page = ann.get(DECISION).text
    (form,) = set(re.findall(r'name="csrf" value="(\w+)"', page))
    sent = {"csrf": form, "action": "accept", "version": "7"}
    assert [ann.post(DECISION, sent).status for _ in range(2)] == [303, 303]
    assert len(rows_of(hosted)) == 1


def test_what_has_changed_since_is_not_accepted(hosted: HostedConsole, ann: Browser):
    (form,) = set(re.findall(r'name="csrf" value="(\w+)"', ann.get(DECISION).text))
    agent = hosted.enrol("acme", "shop")
    hosted.advise("acme", agent, a_recommendation(version=8, change="it saves $3.00 a month"))
    answer = ann.post(DECISION, {"csrf": form, "action": "accept", "version": "7"})
    assert answer.status == 412
    assert "it saves $3.00 a month" in answer.words
    (row,) = rows_of(hosted)
    assert (row.outcome, row.version) == ("refused", 7)


def test_a_recommendation_is_dismissed_with_a_reason_and_that_is_cancelled(
    hosted: HostedConsole, ann: Browser
):
    assert ann.send(DECISION, "dismiss", reason="", until="2026-12-24").status == 400
    assert ann.send(DECISION, "dismiss", reason="freeze", until="soon").status == 400
    assert ann.send(DECISION, "dismiss", reason="freeze", until="2026-12-24").status == 303
    assert "dismissed by ann" in ann.get(DECISION).words
    assert "freeze, until 24 Dec 2026 23:59Z" in ann.get(DECISION).words
    assert "No recommendation is open" in ann.get("c/shop/decisions").words
    assert "node-of-acme" in ann.get("decisions?state=dismissed").words
    assert "No recommendation waits for a decision." in ann.get("decisions").words
    assert ann.send(DECISION, "cancel").status == 303
    assert "1 recommendation waits for a decision in 1 cluster." in ann.get("decisions").words
    assert "Accept version 8" in ann.get(DECISION).words
    assert {row.action for row in rows_of(hosted) if row.outcome == "done"} == {"dismiss", "cancel"}


@pytest.mark.parametrize(
    ("headers", "token", "status"),
    [
        pytest.param({}, True, 303, id="our own page"),
        pytest.param({"sec_fetch_site": "cross-site"}, True, 403, id="another site"),
        pytest.param({"sec_fetch_site": "same-site"}, True, 403, id="a neighbour"),
        pytest.param({"sec_fetch_site": "none"}, True, 403, id="no page"),
        pytest.param({}, False, 403, id="no token"),
        pytest.param(
            {"sec_fetch_site": "", "origin": "https://plimsoll.example"},
            True,
            303,
            id="old browser",
        ),
        pytest.param(
            {"sec_fetch_site": "", "origin": "https://evil.example"}, True, 403, id="its other site"
        ),
        pytest.param({"sec_fetch_site": ""}, True, 403, id="no origin"),
        pytest.param({"content_type": "text/plain"}, True, 404, id="no form"),
    ],
)
def test_no_other_site_decides(hosted: HostedConsole, ann: Browser, headers, token, status):
    (form,) = set(re.findall(r'name="csrf" value="(\w+)"', ann.get(DECISION).text))
    sent = {"csrf": form if token else "0" * 64, "action": "accept", "version": "7"}
    assert ann.post(DECISION, sent, **headers).status == status
    assert bool(rows_of(hosted)) is (status == 303)


def test_the_token_of_another_session_opens_no_form(hosted: HostedConsole, ann: Browser):
    other = Browser(hosted)
    other.sign_in("acme-operators", name="bob")
    (form,) = set(re.findall(r'name="csrf" value="(\w+)"', other.get(DECISION).text))
    assert ann.post(DECISION, {"csrf": form, "action": "accept", "version": "7"}).status == 403


# --- Storms ----------------------------------------------------------------------------------------


def test_the_storm_of_a_bound_cluster_is_shown_under_both_its_names(ann: Browser):
    for name in ("shop", "harbor"):  # a message of the stack links to the second
        words = ann.get(f"c/{name}/storm").words
        assert "3 of 15 pods are safe" in words
    assert "n-1" in ann.get("c/shop/interruptions").words
    assert ann.get("c/shop/interruptions/i-1@x").status == 200
    assert "Watch shop" in ann.get("").words


def test_a_storm_is_replayed_by_the_frame_that_was_the_last_one_then(hosted, ann: Browser):
    hosted.frames.take(storm_at(60, safe=15))
    assert "All 15 pods are safe" in ann.get("c/shop/storm").words
    assert "3 of 15 pods are safe" in ann.get("c/shop/storm?at=30").words


def test_a_stack_that_does_not_answer_hides_no_cluster(hosted, ann: Browser, monkeypatch):
    def away(*_: object) -> None:
        raise Temporary("DynamoDB does not answer")

    monkeypatch.setattr(hosted.frames, "latest", away)
    assert "storms not read" in ann.get("").words
    answer = ann.get("c/shop/storm")
    assert answer.status == 503
    assert "The service does not answer." in answer.words


def test_a_cluster_that_no_stack_tells_of_says_how_to_switch_that_on(hosted: HostedConsole):
    browser = Browser(hosted)
    browser.sign_in("globex-viewers")
    words = browser.get("c/shop/storm").words
    assert f"plimsoll clusters set NAME --agent {hosted.enrol('globex', 'shop')}" in words


def test_a_service_without_a_stack_names_the_parameter(monkeypatch: pytest.MonkeyPatch):
    made = HostedConsole(with_stack=False)
    made.install(monkeypatch)
    made.enrol("acme", "shop")
    browser = Browser(made)
    browser.sign_in("acme-viewers")
    assert "InterruptionTables" in browser.get("c/shop/storm").words
    assert browser.get("").status == 200


# --- Answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["", "c/shop", "nowhere", "nowhere/at/all", "sign-in", "static/none"]
)
def test_every_answer_forbids_what_is_not_served_here(ann: Browser, path: str):
    headers = ann.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert headers["strict-transport-security"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["nowhere", "nowhere/at/all", "c/shop/nothing"])
def test_an_unknown_path_is_a_page(hosted: HostedConsole, path: str):
    answer = Browser(hosted).get(path)
    assert answer.status == 404
    assert "There is no such page." in answer.words
    (style,) = re.findall(r'href="([^"]*console.css[^"]*)"', answer.text)
    browser = Browser(hosted)
    assert browser.get(browser.below(path, style)).status == 200


@pytest.mark.usefixtures("hosted")
def test_the_first_page_leads_to_the_root_of_the_console():
    answered = console.handler(event_of("GET", "/console", "", {}), Context())
    assert (answered["statusCode"], answered["headers"]["location"]) == (303, "console/")


def test_links_hold_behind_any_prefix(ann: Browser):
    for path in {*SCREENS} - {WORKLOAD}:
        links = re.findall(r'(?:href|src|action|hx-get)="([^"]*)"', ann.get(path).text)
        assert links
        assert not [link for link in links if link.startswith(("/", "http"))]


def test_a_fault_is_a_page_that_tells_nothing_of_itself(hosted, ann: Browser, monkeypatch, caplog):
    def broken(_tenant: str):
        raise RuntimeError("s3cret")

    monkeypatch.setattr(bootstrap, "tenants", lambda: type("T", (), {"of": staticmethod(broken)}))
    answer = ann.get("c/shop")
    assert answer.status == 500
    assert "s3cret" not in answer.text
    assert "This page failed." in answer.words


def test_one_session_asks_for_so_many_screens_and_no_more(ann: Browser, monkeypatch):
    monkeypatch.setattr(console, "SCREENS_PER_MINUTE", 3)
    statuses = [ann.get("people").status for _ in range(4)]
    assert statuses == [403, 403, 403, 429]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_words_on_every_screen(hosted: HostedConsole, name: str):
    agent = hosted.enrol("acme", "shop")
    evil = a_recommendation(reason=name, patch=name, note=name, change=name, accepted_by=name)
    hosted.advise("acme", agent, evil)
    browser = Browser(hosted)
    browser.sign_in("acme-admins", name=name)
    for path in {*SCREENS, *ADMINS} - {WORKLOAD}:
        answer = browser.get(path)
        assert answer.status == 200
        for raw in ("<script>document", "<img"):
            assert raw not in answer.text


@pytest.mark.parametrize(
    "query", ["from=-1", "from=1e308", "state=none", "name=%3Cb%3E", "limit=1e3", "at=nan"]
)
def test_hostile_queries_are_answered(ann: Browser, query: str):
    for path in {*SCREENS} - {WORKLOAD}:
        # A list refuses what is no page or filter of it; another screen does not look.
        assert ann.get(f"{path}?{query}").status == (400 if path in LISTS else 200)


# --- Lists -----------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the data of tenants."""
    found: list[str] = []
    usual = MemoryTenants.of
    monkeypatch.setattr(MemoryTenants, "of", lambda its, of: Counting(usual(its, of), found))
    return found


@pytest.mark.parametrize("path", ["", "savings", "decisions"])
def test_of_1200_clusters_a_page_is_one_query(hosted: HostedConsole, ann: Browser, path, asked):
    hosted.advise("acme", hosted.enrol("acme", "shop"))
    for number in range(1199):
        hosted.enrol("acme", f"c-{number:04}")
    ann.get(path)
    asked.clear()
    page = ann.get(path)
    assert (page.status, asked) == (200, ["list"])
    if path != "decisions":
        (further,) = re.findall(r'href="([^"]*after=[^"]*)"', page.text)
        asked.clear()
        answer = ann.get(ann.below(path, unescape(further)))
        assert "c-0050" in answer.words
        assert "c-0049" not in answer.words
        assert asked == ["list"]
        assert "1200 clusters" in answer.words


def test_the_decisions_of_all_clusters_are_filtered_by_what_stands_in_the_address(
    hosted: HostedConsole, ann: Browser
):
    hosted.advise(
        "acme",
        hosted.enrol("acme", "vault"),
        a_recommendation("r-2", "lesser", monthly=1.0),
        a_recommendation("r-3", "greater", monthly=2.0),
        a_recommendation("r-4", "over", state="done"),
    )
    words = ann.get("decisions").words
    assert "3 recommendations wait for a decision in 2 clusters" in words
    assert words.index("node-of-acme") < words.index("greater") < words.index("lesser")
    assert "over" not in words
    for query, found in {
        "state=done": {"over"},
        "state=all&name=v": {"lesser", "greater", "over"},
        "kind=right-size": set(),
        "name=shop": {"node-of-acme"},
    }.items():
        words = ann.get(f"decisions?{query}").words
        assert {n for n in ("node-of-acme", "lesser", "greater", "over") if f": {n} " in words} == (
            found
        )
    page = ann.get("decisions?state=all&limit=1&name=v").text
    (further,) = re.findall(r'href="([^"]*after=[^"]*)"', page)
    assert {"state=all", "limit=1", "name=v"} < {*unescape(further).partition("?")[2].split("&")}
    assert ": greater " in ann.get(ann.below("decisions", unescape(further))).words


def test_people_lists_who_holds_a_key(admin: Browser):
    words = admin.get("people").words
    assert "key-of-acme person, admin" in words
    assert "holds a key as agent" in admin.get("people?role=agent").words


# --- Savings ---------------------------------------------------------------------------------------


def test_savings_stand_beside_what_was_foreseen_by_month_and_by_recommendation(
    hosted: HostedConsole, ann: Browser
):
    months = Months(days=59)
    months.since(31, on_demand={"m5.large": 3})
    months.carry_out("consolidate-node", 30, LARGE, monthly=100.0)
    keep_months(hosted.tenants.of("acme"), subject_of("acme", Role.AGENT, "shop"), months)
    page = " ".join(re.sub(r"<[^>]*>", " ", ann.get("c/shop/savings").text).split())
    assert "consolidate-node-0 consolidate-node $100.00 $70.08" in page
    assert re.search(r"2026-11 \$[\d,.]+ \$[\d,.]+ \$[\d,.]+ 28 ", page)


def test_what_clusters_saved_stands_side_by_side_by_month_and_is_summed(
    hosted: HostedConsole, ann: Browser
):
    data, shop = hosted.tenants.of("acme"), hosted.enrol("acme", "shop")
    assert "No cluster has a whole day yet." in ann.get("savings").words
    months = Months(days=59)
    months.since(31, on_demand={"m5.large": 3})
    months.carry_out("consolidate-node", 30, LARGE, monthly=100.0)
    keep_months(data, shop, months)
    tell_what_was_saved(data, shop, NOW)
    hosted.enrol("acme", "vault")
    words = ann.get("savings").words
    found = re.search(r"2026-11: (\$[\d.]+) foreseen, (\$[\d.]+) realised\.", words)
    assert found
    assert f" {found[1]} {found[2]} 28 " in words
    assert "It leaves out 1 cluster without a comparison." in words
    assert "2026-10" in ann.get("savings?month=2026-10").words
    assert "2026-10: $0.00 foreseen" in ann.get("savings?month=2026-10").words


def test_of_a_cluster_without_a_whole_day_the_savings_say_what_would_fill_them(ann: Browser):
    page = unescape(ann.get("c/shop/savings").text)
    assert "No whole day of shop is known yet." in page
    assert "No recommendation was accepted in this time." in page
