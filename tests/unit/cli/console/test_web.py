"""The console on loopback: one browser, one host, no writes, and nothing from elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import re
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

import pytest

from plimsoll_cli.console.web import Access, application
from tests.support.console_sources import GivenSource, state_of
from tests.unit.console.test_screens import calm, shop

HOST = "127.0.0.1:8000"
FIRST_LOAD = 30_000
"""Bytes, compressed: the page of a storm with its style and scripts."""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Browser:
    """Sends requests to a console without a socket."""

    def __init__(self, source: GivenSource | None = None) -> None:
        self.access = Access(port=8000)
        self._application = application(
            source or GivenSource({"harbor": state_of(calm())}, seconds=5.0), self.access
        )
        self.cookie = ""

    def ask(self, path: str, *, method: str = "GET", query: str = "", **headers: str) -> Answer:
        sent = {"host": HOST, "cookie": self.cookie} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        said: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        asyncio.run(self._application(scope, receive, send))  # type: ignore[arg-type]  # a scope is a mapping
        start = said[0]
        return Answer(
            status=start["status"],
            headers={name.decode(): value.decode() for name, value in start["headers"]},
            body=b"".join(message.get("body", b"") for message in said[1:]),
        )

    def open(self) -> Answer:
        answer = self.ask("/", query=f"link={self.access.link}")
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        return answer


@pytest.fixture
def browser() -> Browser:
    made = Browser()
    made.open()
    return made


def test_the_link_opens_the_console_once():
    browser = Browser()
    link = browser.access.url().partition("?")[2]
    assert browser.ask("/").status == 403
    opened = browser.open()
    assert (opened.status, opened.headers["location"]) == (303, "/")
    assert "HttpOnly" in opened.headers["set-cookie"]
    assert browser.ask("/").status == 200
    other = browser.ask("/", query=link, cookie="")
    assert other.status == 403
    assert b"A link works once" in other.body


def test_the_cookie_carries_the_port_since_all_ports_share_cookies():
    assert Access(port=1).cookie != Access(port=2).cookie


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1:9", ""])
def test_another_host_is_not_answered(browser: Browser, host: str):
    assert browser.ask("/", host=host).status == 421
    assert browser.ask("/static/console.js", host=host).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/", "/c/harbor", "/c/harbor/storm", "/static/console.css"])
def test_nothing_is_written(browser: Browser, method: str, path: str):
    assert browser.ask(path, method=method, sec_fetch_site="same-origin").status in {404, 405}
    assert browser.ask(path, method=method, sec_fetch_site="cross-site").status in {403, 404, 405}


@pytest.mark.parametrize("path", ["/", "/c/harbor/storm", "/none", "/static/console.css"])
def test_every_answer_forbids_what_is_not_served_here(browser: Browser, path: str):
    policy = browser.ask(path).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy


def test_a_page_that_is_not_there_says_so(browser: Browser):
    answer = browser.ask("/c/harbor/none")
    assert answer.status == 404
    assert b"There is no such page." in answer.body
    assert browser.ask("/static/../web.py").status == 404


def test_links_hold_behind_any_prefix(browser: Browser):
    body = browser.ask("/c/harbor/w/Deployment/default/web").body.decode()
    links = re.findall(r'(?:href|src|action|hx-get)="([^"]*)"', body)
    assert links
    assert not [link for link in links if link.startswith("/")]


@pytest.mark.parametrize("name", ["arn:aws:eks:us-east-1:1:cluster/harbor", "a%2Fb", "a%b c?d#e"])
def test_a_context_may_have_any_name(name: str):
    browser = Browser(GivenSource({name: state_of(calm(), name=name)}, seconds=5.0))
    browser.open()
    rows = browser.ask("/").body.decode()
    (link,) = set(re.findall(r'<th scope="row"><a href="([^"]*)"', rows))
    answer = browser.ask(f"/{unquote(link)}")
    assert answer.status == 200
    assert escape(name) in answer.body.decode()


def test_the_first_load_of_a_storm_is_small():
    browser = Browser(GivenSource({"harbor": state_of(shop())}, seconds=5.0))
    browser.open()
    page = browser.ask("/c/harbor/storm", accept_encoding="gzip")
    names = re.findall(
        rb'(?:href|src)="../../(static/[^?"]+)', page.body and gzip.decompress(page.body)
    )
    parts = [browser.ask(f"/{name.decode()}", accept_encoding="gzip") for name in names]
    assert len(parts) == 4
    assert all(part.status == 200 for part in parts)
    assert sum(len(each.body) for each in (page, *parts)) < FIRST_LOAD


def test_the_vendored_script_is_the_one_that_its_note_names():
    folder = files("plimsoll_console").joinpath("static")
    note = folder.joinpath("htmx.txt").read_text()
    assert sha256(folder.joinpath("htmx.min.js").read_bytes()).hexdigest() in note
