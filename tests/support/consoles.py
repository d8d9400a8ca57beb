"""The console in the browser of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page

from plimsoll_cli.console.web import Access


@contextmanager
def looked_at(browser: Browser, access: Access, **options: Any) -> Iterator[Page]:
    """Open the console, and see that nothing is asked of others, and nothing complained of."""
    access.link = "again"
    complaints: list[str] = []
    elsewhere: list[str] = []
    home = f"http://127.0.0.1:{access.port}/"
    with browser.new_context(**options) as context:
        context.on("console", lambda message: complaints.append(message.text))
        context.on("weberror", lambda error: complaints.append(str(error.error)))
        context.on(
            "request",
            lambda asked: None if asked.url.startswith(home) else elsewhere.append(asked.url),
        )
        page = context.new_page()
        page.goto(access.url())
        yield page
        assert elsewhere == []
        assert complaints == []  # an error in a script, or something that the policy refused
